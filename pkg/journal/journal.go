// Package journal is an agent's persisted conversation: an append-only list of
// records on one subject of the team's log stream, each append guarded by the
// sequence of the one before, so that two processes can never both write it.
//
// The journal is also the fence of an agent's process: whoever appends a start
// record with a higher incarnation shuts out the one before. A record that carries
// the conversation as a whole is where the next process begins to read, so that
// opening a journal takes no longer the older the agent is. It does not know what a
// model is told; package agent makes the conversation from the records.
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
	Goal        int       `json:"goal,omitempty"` // start, of a leader: the number of the team's goal, or of its next one
	Incarnation uint64    `json:"incarnation"`
	RunID       string    `json:"run_id,omitempty"`
	At          time.Time `json:"at"`

	Message  *team.Message   `json:"message,omitempty"`   // mail
	InboxSeq uint64          `json:"inbox_seq,omitempty"` // mail: the message's sequence in the stream
	Task     *team.Task      `json:"task,omitempty"`      // task
	Inputs   []team.Input    `json:"inputs,omitempty"`    // task: its dependencies' deliverables
	Text     string          `json:"text,omitempty"`      // note; compact: why
	Turn     json.RawMessage `json:"turn,omitempty"`      // turn: the model's reply; compact: the one that was a summary, if any
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

	Seq   uint64       `json:"-"` // in the log stream
	Agent team.AgentID `json:"-"` // whose journal it is in; set by whatever reads
}

// ToolResult answers one tool call.
type ToolResult struct {
	CallID  string   `json:"call_id"`
	Name    string   `json:"name"`
	Content string   `json:"content"`
	IsError bool     `json:"is_error,omitempty"`
	Await   *Await   `json:"await,omitempty"`
	Outcome *Outcome `json:"outcome,omitempty"` // the call ended the agent's hold of a task
}

// Outcome is what became of a task that the agent held.
type Outcome struct {
	Task  team.TaskID `json:"task"`
	Title string      `json:"title"`
	Text  string      `json:"text"` // such as "completed: 5 endpoints"
}

// Refusal is a call of the model that gave no turn.
type Refusal struct {
	Advice string          `json:"advice"`          // what package model says is to be done
	Reason string          `json:"reason"`          // in a word, of package model
	Cause  string          `json:"cause"`           // for people
	Usage  json.RawMessage `json:"usage,omitempty"` // what the tries have cost
	Alias  string          `json:"alias,omitempty"` // of the model that was asked first
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

	keep time.Duration

	mu   sync.Mutex
	last uint64    // sequence of the newest record that this process knows
	base uint64    // of the newest of those that has a Context; 0 if none has
	at   time.Time // when that one was made
}

// Options say what a journal is opened for.
type Options struct {
	Goal int           // for a leader: the number of the team's goal or, while it has none, of its next one; it stands in the start record
	Keep time.Duration // how long records stay that a newer context has replaced; 0 = for ever
}

// Open appends the incarnation's start record and returns the journal up to and
// including it, from the newest record that has a Context on. From then on an earlier
// incarnation can append nothing, and nobody else can open it as this one. Errors:
// [ErrSuperseded]; InvalidState for a record that cannot be read; Unavailable.
func Open(ctx context.Context, t *broker.Team, a team.AgentID, incarnation uint64, o Options) (*Journal, []Record, error) {
	j := &Journal{team: t, subject: subject.Log(t.ID, a), incarnation: incarnation, keep: o.Keep}
	from, err := j.begin(ctx)
	if err != nil {
		return nil, nil, err
	}
	var records []Record
	for {
		tail, err := read(ctx, t, j.subject, from)
		if err != nil {
			return nil, nil, err
		}
		// What is read may begin after the start record of its own incarnation.
		if slices.ContainsFunc(tail, func(r Record) bool { return r.Incarnation >= incarnation }) {
			return nil, nil, ErrSuperseded
		}
		records = append(records, tail...)
		j.know(tail)
		from = max(from, j.last+1)
		start, err := j.append(ctx, Record{Kind: Start, Goal: o.Goal})
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

// begin returns the sequence of the newest record that has a Context, which the newest
// of all names, or 0.
func (j *Journal) begin(ctx context.Context) (uint64, error) {
	m, err := j.team.Logs.Last(ctx, j.subject)
	if errors.Is(err, team.NotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	r, err := Decode(ctx, j.team, m)
	if err != nil {
		return 0, err
	}
	if r.Context != nil {
		return r.Seq, nil
	}
	return r.Base, nil
}

// know takes in records that stand in the journal, newest last.
func (j *Journal) know(records []Record) {
	for _, r := range records {
		j.last = r.Seq
		if r.Context != nil {
			j.base, j.at = r.Seq, r.At
		}
	}
}

// trim removes what stood before the context that a new one has just replaced, if that
// is old enough. What cannot be removed now is removed with the next.
func (j *Journal) trim(ctx context.Context, before uint64, since time.Time) {
	if j.keep > 0 && before > 0 && time.Since(since) >= j.keep {
		_ = j.team.Logs.Trim(ctx, j.subject, before)
	}
}

// read returns the records of an agent's journal from the sequence from on.
func read(ctx context.Context, t *broker.Team, subj string, from uint64) ([]Record, error) {
	var records []Record
	err := t.Logs.Read(ctx, from, func(m broker.Msg) error {
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
	case r.Kind == Refused && r.Refusal == nil:
		return "refusal"
	case r.Kind == Compact && len(r.Context) == 0:
		return "context"
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
		tail, err := read(ctx, j.team, j.subject, j.last+1)
		if err != nil {
			return r, err
		}
		if superseded(tail, j.incarnation) {
			return r, ErrSuperseded
		}
		if len(tail) == 0 {
			return r, team.Errorf(team.InvalidState, "the journal %s has lost records", j.subject)
		}
		j.know(tail)
	}
}

func (j *Journal) append(ctx context.Context, r Record) (Record, error) {
	r.V, r.Incarnation, r.ID, r.At, r.Base = team.Protocol, j.incarnation, ulid.Make().String(), time.Now().UTC(), j.base
	data, err := j.fit(ctx, r)
	if err != nil {
		return r, err
	}
	seq, err := j.team.Logs.Append(ctx, j.subject, data, j.last)
	if err != nil {
		return r, err
	}
	r.Seq = seq
	base, since := j.base, j.at
	j.know([]Record{r})
	if j.base != base {
		j.trim(ctx, base, since)
	}
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
