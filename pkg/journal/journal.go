// Package journal is an agent's persisted conversation: an append-only list of
// records on one subject of the team's log stream, each append guarded by the
// sequence of the one before, so that two processes can never both write it.
//
// The journal is also the fence of an agent's process: whoever appends a start
// record with a higher incarnation shuts out the one before. It does not know
// what a model is told; package agent makes the conversation from the records.
package journal

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"

	"agentteam/pkg/broker"
	"agentteam/pkg/subject"
	"agentteam/pkg/team"
)

// Kind says what a record holds.
type Kind string

// The kinds of records. Each names the field of Record that it fills.
const (
	Start   Kind = "start"   // an incarnation began
	Mail    Kind = "mail"    // a message came
	Task    Kind = "task"    // a task was claimed, assigned or adopted
	Note    Kind = "note"    // the runtime told the agent something
	Turn    Kind = "turn"    // the model answered, completely
	Result  Kind = "result"  // a tool call of the last turn was answered
	Refused Kind = "refused" // the model endpoint gave no turn
	Compact Kind = "compact" // the conversation was made shorter
	End     Kind = "end"     // the run ended and the agent went idle
)

// Record is one entry.
type Record struct {
	V           int       `json:"v"`
	ID          string    `json:"id"` // ULID; tells this write from every other
	Kind        Kind      `json:"kind"`
	Incarnation uint64    `json:"incarnation"`
	RunID       string    `json:"run_id,omitempty"`
	At          time.Time `json:"at"`

	Message  *team.Message   `json:"message,omitempty"`   // mail
	InboxSeq uint64          `json:"inbox_seq,omitempty"` // mail: the message's sequence in the stream
	Task     *team.Task      `json:"task,omitempty"`      // task
	Inputs   []team.Input    `json:"inputs,omitempty"`    // task: its dependencies' deliverables
	Text     string          `json:"text,omitempty"`      // note
	Turn     json.RawMessage `json:"turn,omitempty"`      // turn: the assistant message and its usage, as package agent wrote it
	Result   *ToolResult     `json:"result,omitempty"`    // result
	Refusal  *Refusal        `json:"refusal,omitempty"`   // refused
	TaskID   team.TaskID     `json:"task_id,omitempty"`   // turn, refused: the task that the agent held
	Stored   string          `json:"stored,omitempty"`    // mail, result: where its whole text lies, "stored:" and a digest; given is its head and tail

	// Context, if there is one, is the conversation as it is from this record on, as
	// package agent wrote it: what came before is for people.
	Context json.RawMessage `json:"context,omitempty"`
	Base    uint64          `json:"base,omitempty"` // sequence of the newest record before this one that has a Context

	// StoredRecord, if it is set, is the reference of the stored text that this record
	// is as a whole, since it would not fit into a message. Whoever reads gets that one.
	StoredRecord string `json:"stored_record,omitempty"`

	Seq uint64 `json:"-"` // in the log stream
}

// ToolResult answers one tool call.
type ToolResult struct {
	CallID  string `json:"call_id"`
	Name    string `json:"name"`
	Content string `json:"content"`
	IsError bool   `json:"is_error,omitempty"`
	Await   *Await `json:"await,omitempty"`
}

// Refusal is a call of the model that gave no turn.
type Refusal struct {
	Advice string          `json:"advice"`          // what package model says is to be done
	Reason string          `json:"reason"`          // in a word, of package model
	Cause  string          `json:"cause"`           // for people
	Usage  json.RawMessage `json:"usage,omitempty"` // what the tries have cost
}

// Await says that the agent waits for an answer to a message it sent.
type Await struct {
	MessageID string       `json:"message_id"`
	From      team.AgentID `json:"from"`
	Until     time.Time    `json:"until"`
}

// ErrSuperseded: a later incarnation of the agent has begun, or another process
// began as the same one first. The process must end.
var ErrSuperseded = errors.New("another process writes this journal")

// Journal appends for one incarnation. Safe for concurrent use; appends are made
// strictly one after another.
type Journal struct {
	team        *broker.Team
	subject     string
	incarnation uint64

	mu   sync.Mutex
	last uint64 // sequence of the newest record that this process knows
}

// Open appends the incarnation's start record and returns the whole journal up to
// and including it. From then on an earlier incarnation can append nothing, and
// nobody else can open it as this one. Errors: [ErrSuperseded]; InvalidState for a
// record that cannot be read; Unavailable.
func Open(ctx context.Context, t *broker.Team, a team.AgentID, incarnation uint64) (*Journal, []Record, error) {
	j := &Journal{team: t, subject: subject.Log(t.ID, a), incarnation: incarnation}
	var records []Record
	for {
		tail, err := read(ctx, t, j.subject, j.last)
		if err != nil {
			return nil, nil, err
		}
		if superseded(tail, incarnation) {
			return nil, nil, ErrSuperseded
		}
		records = append(records, tail...)
		if n := len(records); n > 0 {
			j.last = records[n-1].Seq
		}
		start, err := j.append(ctx, Record{Kind: Start})
		switch {
		case err == nil:
			return j, append(records, start), nil
		case !errors.Is(err, team.Conflict):
			return nil, nil, err
		}
		// The predecessor wrote in between: take in its tail only, or one that writes
		// fast could not be caught up with.
	}
}

// read returns the records of an agent's journal that follow the sequence after.
func read(ctx context.Context, t *broker.Team, subj string, after uint64) ([]Record, error) {
	var records []Record
	err := t.Logs.Read(ctx, after+1, func(m broker.Msg) error {
		r, err := Decode(ctx, t, m)
		if err != nil {
			return err
		}
		records = append(records, r)
		return nil
	}, subj)
	return records, err
}

// missing names the field that a record of this kind must have and r has not.
func (r Record) missing() string {
	switch {
	case r.Kind == Mail && r.Message == nil:
		return "message"
	case r.Kind == Task && r.Task == nil:
		return "task"
	case r.Kind == Turn && len(r.Turn) == 0:
		return "turn"
	case r.Kind == Result && r.Result == nil:
		return "result"
	}
	return ""
}

// Append stores r as the next record and returns it with its sequence and time.
// Errors: [ErrSuperseded]; Unavailable, and then the outcome is unknown until the
// next Append, which settles it.
func (j *Journal) Append(ctx context.Context, r Record) (Record, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for {
		done, err := j.append(ctx, r)
		if !errors.Is(err, team.Conflict) {
			return done, err
		}
		// Somebody wrote in between: a later incarnation ends this one; a record of
		// an earlier one, which was on its way when this one started, is taken in.
		tail, err := read(ctx, j.team, j.subject, j.last)
		if err != nil {
			return r, err
		}
		if superseded(tail, j.incarnation) {
			return r, ErrSuperseded
		}
		if len(tail) == 0 {
			return r, team.Errorf(team.InvalidState, "the journal %s has lost records", j.subject)
		}
		j.last = tail[len(tail)-1].Seq
	}
}

func (j *Journal) append(ctx context.Context, r Record) (Record, error) {
	r.V, r.Incarnation, r.ID, r.At = team.Protocol, j.incarnation, ulid.Make().String(), time.Now().UTC()
	data, err := j.fit(ctx, r)
	if err != nil {
		return r, err
	}
	seq, err := j.team.Logs.Append(ctx, j.subject, data, j.last)
	if err != nil {
		return r, err
	}
	r.Seq, j.last = seq, seq
	return r, nil
}

// superseded reports whether records of others show that the incarnation is not to
// write: a later one began, or another process began as this one.
func superseded(records []Record, incarnation uint64) bool {
	return slices.ContainsFunc(records, func(r Record) bool {
		return r.Incarnation > incarnation || r.Incarnation == incarnation && r.Kind == Start
	})
}

// Each calls f for every record of all journals of the team from sequence from on,
// up to the present end. Records that cannot be read are passed over. Errors:
// Unavailable.
func Each(ctx context.Context, t *broker.Team, from uint64, f func(Record)) error {
	return t.Logs.Read(ctx, from, func(m broker.Msg) error {
		switch r, err := Decode(ctx, t, m); {
		case err == nil:
			f(r)
		case errors.Is(err, team.Unavailable):
			return err
		}
		return nil
	})
}

// Usage is what the model call of a turn cost, in tokens; ok is false for records
// of other kinds.
func (r Record) Usage() (prompt, completion int, ok bool) {
	var t struct {
		Usage struct {
			Prompt     int `json:"prompt_tokens"`
			Completion int `json:"completion_tokens"`
		} `json:"usage"`
	}
	if r.Kind != Turn || json.Unmarshal(r.Turn, &t) != nil {
		return 0, 0, false
	}
	return t.Usage.Prompt, t.Usage.Completion, true
}
