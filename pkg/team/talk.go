package team

import (
	"maps"
	"strings"
)

// HeldFrom is the number of messages in a row from which on two members do not wake each other: in that row neither has
// called another tool, and no task has changed.
const HeldFrom = 7

// Exchange is the position of a message in a row that two members have written to each other without news.
type Exchange struct {
	N        int    `json:"n"`                   // this one included, as its sender knows
	News     bool   `json:"news,omitempty"`      // its sender had news since it wrote to the receiver last
	BoardSeq uint64 `json:"board_seq,omitempty"` // revision of the task that had changed last
	Held     bool   `json:"held,omitempty"`      // mail of the row is held already, and the person notified
}

// Sent is a message of a model to another member, or to all.
type Sent struct {
	To       AgentID  `json:"to"`
	Exchange Exchange `json:"exchange"`
	Question bool     `json:"question,omitempty"` // its sender waits for the answer
}

// talk is the state of an agent's exchange with another member.
type talk struct {
	N     int  `json:"n"`               // messages in a row, of both, since either had news
	Fresh bool `json:"fresh,omitempty"` // the agent had news since, of which the other does not know
	Held  bool `json:"held,omitempty"`  // mail of the row is held, and the person notified
}

// Talks are the exchanges of an agent. Methods return the new state.
type Talks struct {
	With     map[AgentID]talk `json:"with,omitempty"`      // since the last news; under [Everyone] that of its broadcasts
	Fresh    bool             `json:"fresh,omitempty"`     // the others do not know of that news
	BoardSeq uint64           `json:"board_seq,omitempty"` // revision of the newest change of a task that the agent knows of
}

// News records news: the agent has called another tool, was given a task, or has read mail of a person or of the
// runtime.
func (t Talks) News() Talks { return Talks{Fresh: true, BoardSeq: t.BoardSeq} }

// changed records that a task has changed at a revision.
func (t Talks) changed(seq uint64) Talks {
	if seq > t.BoardSeq {
		return Talks{Fresh: true, BoardSeq: seq}
	}
	return t
}

func (t Talks) with(a AgentID) talk {
	k, ok := t.With[a]
	if !ok {
		k, ok = t.With[Everyone] // it has heard the broadcasts
	}
	if !ok {
		k.Fresh = t.Fresh
	}
	return k
}

// Next returns the Exchange of the next message to a member, or to [Everyone]; seq is the revision of the last change
// of a task.
func (t Talks) Next(to AgentID, seq uint64) Exchange {
	t = t.changed(seq)
	k := t.with(to)
	for _, other := range t.With {
		if to == Everyone {
			k.N, k.Held = max(k.N, other.N), k.Held || other.Held
		}
	}
	return Exchange{N: k.N + 1, News: k.Fresh, BoardSeq: seq, Held: k.Held}
}

// Sent records a message of the agent's own.
func (t Talks) Sent(s Sent) Talks {
	t = t.changed(s.Exchange.BoardSeq)
	after := func(k talk) talk {
		if s.Question {
			return talk{}
		}
		return talk{N: k.N + 1, Held: k.Held || s.Exchange.Held}
	}
	next := t.set(s.To, after(t.with(s.To)))
	for a, k := range t.With {
		if s.To == Everyone {
			next.With[a] = after(k)
		}
	}
	return next
}

// Heard records a message to the agent. held: it does not wake the agent, which reads it with the next news; first: it
// is the first held message of its row. A question is never held, and starts a new row.
func (t Talks) Heard(m Message) (next Talks, held, first bool) {
	if m.Exchange == nil { // of a person or the runtime
		if m.Type == MsgWatchdog && strings.HasPrefix(m.Content, AllIdle) {
			return t, false, false
		}
		return t.News(), false, false
	}
	t = t.changed(m.Exchange.BoardSeq)
	if m.AwaitReply {
		return t.set(m.From, talk{}), false, false
	}
	k := t.with(m.From)
	if k.N++; m.Exchange.News {
		k.N = min(k.N, m.Exchange.N)
	}
	k.Fresh = k.Fresh && m.Exchange.N > k.N // else the sender counts no more than that
	k.Held = k.N > 1 && k.Held
	held = k.N >= HeldFrom
	first = held && !k.Held && !m.Exchange.Held
	k.Held = k.Held || held
	return t.set(m.From, k), held, first
}

func (t Talks) set(a AgentID, k talk) Talks {
	if t.With = maps.Clone(t.With); t.With == nil {
		t.With = map[AgentID]talk{}
	}
	t.With[a] = k
	return t
}
