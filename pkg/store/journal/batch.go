package journal

import "agentteam/pkg/team"

// Batch is mail that came faster than its reader took it in. One record with a Batch replaces a mail record for each
// message; the messages themselves stay in the message stream.
type Batch struct {
	Count   int            `json:"count"`
	Runs    []Run          `json:"runs"`                // the sequences of all its messages, in order
	Heard   uint64         `json:"heard_seq,omitempty"` // of the last one that is not of the watchdog
	Wakes   bool           `json:"wakes,omitempty"`     // one of them wakes its reader
	Whole   []BatchMessage `json:"whole,omitempty"`     // those that the reader is shown whole, in order
	Senders []SenderGroup  `json:"senders,omitempty"`   // the others, by sender; who sent most is first

	Talks team.Talks `json:"talks,omitzero"` // the reader's, after the last of them
}

// Run is a range of sequences without a gap.
type Run struct {
	First uint64 `json:"first"`
	Last  uint64 `json:"last"`
}

// BatchMessage is one message of a batch.
type BatchMessage struct {
	Seq     uint64       `json:"seq"`
	Message team.Message `json:"message"`
	Stored  string       `json:"stored,omitempty"` // as in a Record
}

// SenderGroup summarizes the messages of one sender in a batch.
type SenderGroup struct {
	From   team.AgentID `json:"from,omitempty"` // "": of several who sent few
	Count  int          `json:"count"`
	First  uint64       `json:"first"` // sequence
	Last   uint64       `json:"last"`
	Newest []Words      `json:"newest,omitempty"` // in order
}

// Words are the first words of a message.
type Words struct {
	Seq  uint64 `json:"seq"`
	Text string `json:"text"`
}

// Took reports whether the record put the message with this sequence into the conversation.
func (r Record) Took(seq uint64) bool {
	switch {
	case r.Kind == Mail:
		return r.InboxSeq == seq
	case r.Kind == Backlog && r.Backlog != nil:
		for _, run := range r.Backlog.Runs {
			if run.First <= seq && seq <= run.Last {
				return true
			}
		}
	}
	return false
}
