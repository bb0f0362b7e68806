// Package journal is an agent's persisted conversation: an append-only list of records on one subject of the team's log
// stream. Each append is guarded by the sequence of the record before, so that two processes can never both write it.
//
// The journal is also the fence of an agent's process: a start record with a higher incarnation shuts out the one
// before. The next process begins to read at the newest record that carries the whole conversation, so that opening a
// journal takes no longer the older the agent is. The journal does not know the model's prompt; package agent makes the
// conversation from the records.
package journal

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"

	"agentteam/pkg/execenv/projectcontext"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

// Kind is the type of a record.
type Kind string

// The kinds of records. Most name the field of Record that they fill.
const (
	Start    Kind = "start"    // an incarnation began
	Mail     Kind = "mail"     // a message came
	Backlog  Kind = "backlog"  // many messages had come, and were taken in as one
	Task     Kind = "task"     // a task was claimed, assigned or adopted
	Note     Kind = "note"     // the runtime told the agent something
	Turn     Kind = "turn"     // the model answered, completely
	Result   Kind = "result"   // a tool call of the last turn was answered
	Refused  Kind = "refused"  // the model endpoint gave no turn
	Compact  Kind = "compact"  // the conversation was made shorter
	Project  Kind = "project"  // what the repository states to agents about a folder in which the agent works
	Overview Kind = "overview" // how the team stands, as a leader is told before a turn
	End      Kind = "end"      // the run ended and the agent went idle
	Stop     Kind = "stop"     // the process was told to stop while the agent was at work on a task: what ends it is not the task
)

// Record is one entry.
type Record struct {
	V           int                   `json:"v"`
	ID          string                `json:"id"` // ULID; tells this write from every other; may be set by whoever needs it before, see [NewID]
	Kind        Kind                  `json:"kind"`
	Goal        int                   `json:"goal,omitempty"`       // start, of a leader: the number of the team's goal, or of its next one
	Place       *projectcontext.Place `json:"place,omitempty"`      // start: where the incarnation works
	PastGoals   []team.PastGoal       `json:"past_goals,omitempty"` // start, of a leader: the team's newest goals that have ended, oldest first
	Incarnation uint64                `json:"incarnation"`
	RunID       string                `json:"run_id,omitempty"`
	At          time.Time             `json:"at"`

	Message    *team.Message         `json:"message,omitempty"`    // mail
	InboxSeq   uint64                `json:"inbox_seq,omitempty"`  // mail: the message's sequence in the stream; 0 of a prompt; backlog: that of the last one
	InboxAt    time.Time             `json:"inbox_at,omitzero"`    // when the server stored that message
	Spawn      uint64                `json:"spawn,omitempty"`      // mail: it is the prompt that this incarnation was spawned with
	Backlog    *Batch                `json:"backlog,omitempty"`    // backlog
	Task       *team.Task            `json:"task,omitempty"`       // task
	Inputs     []team.Input          `json:"inputs,omitempty"`     // task: what came of its dependencies
	LastTry    *team.Try             `json:"last_try,omitempty"`   // task: how the hold before this one ended
	Unmerged   *team.Try             `json:"unmerged,omitempty"`   // task: the last hold whose work was returned, if that is an earlier one
	Inherited  *team.Inherited       `json:"inherited,omitempty"`  // task: its plan, and what was asked for it before; nil: nothing
	Text       string                `json:"text,omitempty"`       // note, overview; compact: why
	Folder     string                `json:"folder,omitempty"`     // project: relative to the workspace
	Files      []projectcontext.File `json:"files,omitempty"`      // project: the instructions of the folder
	NoAnswer   bool                  `json:"no_answer,omitempty"`  // note: the agent waits for no answer any more
	Unreadable []uint64              `json:"unreadable,omitempty"` // note: the sequences of records that could not be read; see [SkipUnreadable]
	SetBack    *uint64               `json:"set_back,omitempty"`   // note: where the message stream ended when it was found to hold less than the journal has taken in
	Jobs       []team.Job            `json:"jobs,omitempty"`       // note: that have ended, or were lost
	Turn       json.RawMessage       `json:"turn,omitempty"`       // turn: the model's reply; compact: the one that was a summary, if any
	Result     *ToolResult           `json:"result,omitempty"`     // result
	Refusal    *Refusal              `json:"refusal,omitempty"`    // refused
	TaskID     team.TaskID           `json:"task_id,omitempty"`    // turn, refused: the task that the agent held
	Stored     string                `json:"stored,omitempty"`     // mail, result: where its whole text lies, "stored:" and a digest; given is its head and tail

	// Context, if set, is the whole conversation from this record on, as package agent wrote it: earlier records
	// are for people.
	Context json.RawMessage `json:"context,omitempty"`
	Base    uint64          `json:"base,omitempty"` // sequence of the newest record before this one that has a Context

	// StoredRecord, if set, is the reference of the stored text that holds this whole record, which would not fit
	// into a message. Readers get that record.
	StoredRecord string `json:"stored_record,omitempty"`

	Seq   uint64       `json:"-"` // in the log stream
	Agent team.AgentID `json:"-"` // whose journal it is in; set by whatever reads
}

// ToolResult answers one tool call.
type ToolResult struct {
	CallID  string        `json:"call_id"`
	Name    string        `json:"name"`
	Content string        `json:"content"`
	IsError bool          `json:"is_error,omitempty"`
	Await   *team.Await   `json:"await,omitempty"`
	News    bool          `json:"news,omitempty"`    // the call was none that only sends mail or shows how the team stands
	Changes bool          `json:"changes,omitempty"` // and one that may change something
	Sent    *team.Sent    `json:"sent,omitempty"`    // the call has sent mail to members
	Outcome *Outcome      `json:"outcome,omitempty"` // the call ended the agent's hold of a task
	Verdict *team.Verdict `json:"verdict,omitempty"` // the call has answered a request to shut down
	Jobs    []team.Job    `json:"jobs,omitempty"`    // that the call has begun, or shows to have ended
	Images  []Image       `json:"images,omitempty"`  // what the result has beside its text
	Account *team.Account `json:"account,omitempty"` // how the call was made, for audits
}

// Image is a picture that lies in the team's object store.
type Image struct {
	MediaType string `json:"media_type"`
	Ref       string `json:"ref"`  // "stored:" and a digest
	Size      int    `json:"size"` // bytes
}

// Outcome is the end of a hold of a task by the agent.
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

// NewGoal is the text of a Compact record by which a member leaves the conversation about an earlier goal.
const NewGoal = "a new goal"

// Journal appends for one incarnation. Safe for concurrent use; appends run strictly one after another.
type Journal struct {
	team        *broker.Storage
	subject     string
	incarnation uint64

	keep     time.Duration
	outlives func(ctx context.Context, before uint64) error

	mu    sync.Mutex
	queue chan struct{} // closed once all writes that were begun are over; nil: none was

	// Guarded by the head of the queue.
	failed error     // why an enqueued record was not stored; nothing can follow it
	last   uint64    // sequence of the newest record that this process knows
	base   uint64    // of the newest of those that has a Context; 0 if none has
	at     time.Time // when that one was made
}

// Options configure Open.
type Options struct {
	Goal int           // for a leader: the number of the team's goal or, while it has none, of its next one; it stands in the start record
	Keep time.Duration // how long records stay that a newer context has replaced; 0 = for ever
	// Outlives stores elsewhere the data to keep of the records before a sequence; nil: the records stay for ever. On
	// an error they are not removed.
	Outlives  func(ctx context.Context, before uint64) error
	Place     *projectcontext.Place // where the incarnation works; it stands in the start record
	PastGoals []team.PastGoal       // for a leader: the goals that have ended; they stand in the start record
	Takes     Takes                 // required of what is read; nil: all is taken
}

// Takes returns nil if a conversation can apply a record, else the reason: [team.ErrUnreadable].
type Takes func(Record) error

// Open appends the incarnation's start record and returns the journal up to and including it, from the newest record
// that has a Context on. From then on an earlier incarnation can append nothing, and no other process can open it as this
// one. Errors: [team.ErrSuperseded]; [*Bad] for a record that cannot be read, and then nothing is appended; Unavailable.
func Open(ctx context.Context, t *broker.Storage, a team.AgentID, incarnation uint64, o Options) (*Journal, []Record, error) {
	j := &Journal{team: t, subject: subject.Log(t.ID, a), incarnation: incarnation, keep: o.Keep, outlives: o.Outlives}
	from, fresh, err := j.begin(ctx)
	if err != nil {
		return nil, nil, err
	}
	var records []Record
	for ; ; fresh = false {
		var tail []Record
		if !fresh { // else there is no record, or the append finds it
			if tail, err = read(ctx, t, j.subject, from, o.Takes); err != nil {
				return nil, nil, err
			}
		}
		// The records read may begin after the start record of their own incarnation.
		if slices.ContainsFunc(tail, func(r Record) bool { return r.Incarnation >= incarnation }) {
			return nil, nil, team.ErrSuperseded
		}
		records = append(records, tail...)
		j.know(tail)
		from = max(from, j.last+1)
		start := Record{Kind: Start, Goal: o.Goal, Place: o.Place, PastGoals: o.PastGoals}
		j.stamp(&start)
		start, err = j.append(ctx, start)
		switch {
		case err == nil:
			return j, append(records, start), nil
		case !errors.Is(err, team.Conflict):
			return nil, nil, err
		}
		// The predecessor wrote in between: read only the records that follow, or Open could not catch up with a
		// fast writer.
	}
}

// begin returns the sequence of the newest record that has a Context, which the last record names, or 0; none reports
// whether there is no record.
func (j *Journal) begin(ctx context.Context) (from uint64, none bool, err error) {
	m, err := j.team.Logs.Last(ctx, j.subject)
	if errors.Is(err, team.NotFound) {
		return 0, true, nil
	}
	if err != nil {
		return 0, false, err
	}
	r, err := taken(ctx, j.team, m, nil)
	if err != nil {
		return 0, false, err
	}
	if r.Context != nil {
		return r.Seq, false, nil
	}
	return r.Base, false, nil
}

// know updates j by records that are in the journal, newest last.
func (j *Journal) know(records []Record) {
	for _, r := range records {
		j.last = r.Seq
		if r.Context != nil {
			j.base, j.at = r.Seq, r.At
		}
	}
}

// trimWithin bounds a trim: the agent's work waits for it.
const trimWithin = 30 * time.Second

// trim removes the records before the context that a new one has just replaced, if that context is old enough. A later
// trim removes the records that this one could not.
func (j *Journal) trim(ctx context.Context, before uint64, since time.Time) {
	if j.keep == 0 || j.outlives == nil || before == 0 || time.Since(since) < j.keep {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, trimWithin)
	defer cancel()
	if j.outlives(ctx, before) == nil {
		_ = j.team.Logs.Trim(ctx, j.subject, before)
	}
}

// read returns the records of an agent's journal from the sequence from on. Errors: [*Bad];
// Unavailable.
func read(ctx context.Context, t *broker.Storage, subj string, from uint64, takes Takes) ([]Record, error) {
	var records []Record
	err := t.Logs.Read(ctx, from, func(m broker.Msg) error {
		r, err := taken(ctx, t, m, takes)
		records = append(records, r)
		return err
	}, subj)
	return records, err
}

// tail returns the records of other writers after the last record that j knows. An unreadable record does not stop an
// open journal: j keeps its sequence, kind and incarnation. The next Open of the journal fails on it.
func (j *Journal) tail(ctx context.Context) ([]Record, error) {
	var records []Record
	err := j.team.Logs.Read(ctx, j.last+1, func(m broker.Msg) error {
		r, err := Decode(ctx, j.team, m)
		if errors.Is(err, team.ErrUnreadable) {
			r, err = Record{Seq: m.Seq}, nil
			_ = json.Unmarshal(m.Data, &struct {
				Kind        *Kind   `json:"kind"`
				Incarnation *uint64 `json:"incarnation"`
			}{&r.Kind, &r.Incarnation})
		}
		records = append(records, r)
		return err
	}, j.subject)
	return records, err
}

// missing returns the name of the field that a record of this kind must have and r lacks, else "".
func (r Record) missing() string {
	switch {
	case r.Kind == Mail && r.Message == nil:
		return "message"
	case r.Kind == Backlog && r.Backlog == nil:
		return "backlog"
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

// Append stores r as the next record and returns it with its sequence and time. It waits for the records that were
// enqueued before. Errors: [team.ErrSuperseded]; Unavailable, and then the outcome is unknown until the next Append,
// which settles it; the error of a record that was enqueued before, see Flush.
func (j *Journal) Append(ctx context.Context, r Record) (Record, error) {
	j.stamp(&r)
	done := j.wait()
	defer done()
	return j.store(ctx, r)
}

// Enqueue returns r as it will be stored, with its time but without its sequence, and stores it in the background, after
// the records enqueued before and within ctx. The next Flush or Append returns the error, if any. Before the process
// does anything that others can see, it must have stored the records that led to it: see Flush.
func (j *Journal) Enqueue(ctx context.Context, r Record) Record {
	j.stamp(&r)
	before, done := j.enter()
	go func() {
		defer done()
		<-before
		if _, err := j.store(ctx, r); err != nil && j.failed == nil {
			j.failed = err
		}
	}()
	return r
}

// Flush waits until every enqueued record is stored or has failed, at the latest when their contexts end. It returns the
// error of the first that was not stored: [team.ErrSuperseded], Unavailable, the context's. Later calls of Flush and
// Append return it too, since a later record would follow a gap.
func (j *Journal) Flush() error {
	done := j.wait()
	defer done()
	return j.failed
}

// enter takes a place in the queue. The caller's turn begins when before is closed, and the next caller's turn after
// done.
func (j *Journal) enter() (before <-chan struct{}, done func()) {
	j.mu.Lock()
	defer j.mu.Unlock()
	before = j.queue
	if before == nil {
		over := make(chan struct{})
		close(over)
		before = over
	}
	mine := make(chan struct{})
	j.queue = mine
	return before, func() { close(mine) }
}

// wait is enter, and blocks until the caller's turn.
func (j *Journal) wait() (done func()) {
	before, done := j.enter()
	<-before
	return done
}

// NewID returns the id for a new record. It may be used once.
func NewID() string { return ulid.Make().String() }

// stamp gives r its version, incarnation, id and time.
func (j *Journal) stamp(r *Record) {
	r.V, r.Incarnation, r.ID, r.At = team.Protocol, j.incarnation, cmp.Or(r.ID, NewID()), time.Now().UTC()
}

// store appends r, a stamped record, at the head of the queue.
func (j *Journal) store(ctx context.Context, r Record) (Record, error) {
	if j.failed != nil {
		return r, j.failed
	}
	for {
		done, err := j.append(ctx, r)
		if !errors.Is(err, team.Conflict) {
			return done, err
		}
		// Somebody wrote in between: a later incarnation ends this one; a record of
		// an earlier one, which was on its way when this one started, is taken in.
		tail, err := j.tail(ctx)
		if err != nil {
			return r, err
		}
		if superseded(tail, j.incarnation) {
			return r, team.ErrSuperseded
		}
		if len(tail) == 0 {
			return r, team.Errorf(team.InvalidState, "the journal %s has lost records", j.subject)
		}
		j.know(tail)
	}
}

func (j *Journal) append(ctx context.Context, r Record) (Record, error) {
	r.Base = j.base
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

// superseded reports whether records of others forbid the incarnation to write: a later one began, or another process
// began as this one.
func superseded(records []Record, incarnation uint64) bool {
	return slices.ContainsFunc(records, func(r Record) bool {
		return r.Incarnation > incarnation || r.Incarnation == incarnation && r.Kind == Start
	})
}

// Answered reports whether the model of a task's holder has answered in that hold, and so has begun to work on it; false
// if its process was stopped during that work. Errors: InvalidState for a record that cannot be read; Unavailable.
func Answered(ctx context.Context, t *broker.Storage, held team.Task) (bool, error) {
	j := &Journal{team: t, subject: subject.Log(t.ID, held.Assignee)}
	from, _, err := j.begin(ctx)
	if err != nil {
		return false, err
	}
	records, err := read(ctx, t, j.subject, from, nil)
	answered := false
	for _, r := range records {
		switch {
		case r.Incarnation != held.Incarnation:
		case r.Kind == Task && r.Task.ID == held.ID:
			answered = false // a new hold begins
		case r.Kind == Stop:
			answered = false
		case r.Kind == Turn && r.TaskID == held.ID:
			answered = true
		}
	}
	return answered, err
}

// Each calls f for every record in the journals of these agents and their subagents (no agents: all journals), from
// sequence from on, up to the present end. An error of f ends it; [broker.ErrEnough] ends it without an error. Each skips
// records that cannot be read. Errors: those of f; Unavailable.
func Each(ctx context.Context, t *broker.Storage, from uint64, f func(Record) error, agents ...team.AgentID) error {
	var filters []string
	for _, a := range agents {
		filters = append(filters, subject.Log(t.ID, a), subject.LogsBelow(t.ID, a))
	}
	return t.Logs.Read(ctx, from, func(m broker.Msg) error {
		switch r, err := Decode(ctx, t, m); {
		case err == nil:
			return f(r)
		case errors.Is(err, team.Unavailable):
			return err
		}
		return nil
	}, filters...)
}
