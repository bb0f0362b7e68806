package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/client_golang/prometheus"

	"agentteam/pkg/agent/engine"
	"agentteam/pkg/model"
	"agentteam/pkg/shutdown"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/store/mailbox"
	"agentteam/pkg/team"
	"agentteam/pkg/telemetry"
)

// ClaimSlot holds the agent's task; *board.ClaimSlot is one.
type ClaimSlot interface {
	OnLoss(f func(t team.Task, why error))
	BeforeRelease(f func(ctx context.Context, id team.TaskID))
	Task() (team.Task, bool)
	Confirmed() time.Time
	Now() (t team.Task, seq uint64)
	Take(ctx context.Context, t team.Task) (team.Task, error)
	Claim(ctx context.Context, id team.TaskID) (team.Task, error)
	Adopt(ctx context.Context, atWork team.TaskID) (team.Task, bool, error)
	Confirm(ctx context.Context, id team.TaskID) (team.Task, error)
	Release(ctx context.Context, id team.TaskID, f team.Freed) (team.Task, error)
	GiveBack(ctx context.Context, id team.TaskID, g team.GiveBack) (team.Task, error)
	Retire()
	Inputs(ctx context.Context, t team.Task) ([]team.Input, error)
	LastTry(ctx context.Context, t team.Task) (last, unmerged *team.Try, err error)
}

// Mailer sends the agent's notices; *mailbox.Mailbox is one.
type Mailer interface {
	Send(ctx context.Context, m team.Message) (team.Message, []team.AgentID, error)
}

// Heart publishes the agent's state in heartbeats, and reports whether the membership still holds;
// *roster.Heart is one.
type Heart interface {
	Set(f func(*team.Heartbeat))
	Progress()
	Certain(ctx context.Context) error
	Within(ctx context.Context) (context.Context, context.CancelFunc)
}

// Events records what the agent does; *runlog.Log is one.
type Events interface {
	Emit(ctx context.Context, e team.Event)
}

// Options are an agent's parts. All are required unless a comment says otherwise.
type Options struct {
	Member    team.Member
	TeamID    team.TeamID
	System    string        // the system message; replaced by that of Mode
	Past      *Conversation // the journal so far, with this incarnation's start record; New takes it over
	Journal   engine.Journal
	Model     engine.Model // nil: none is configured, and the agent can only wait
	Tools     engine.Tools
	Mode      func() (system string, t engine.Tools) // how the agent works as from its next turn; nil: System and Tools stay
	Dialect   team.Dialect                           // of the tools, in which the runtime's texts name them; default: native
	Slot      ClaimSlot
	Post      Mailer
	Heart     Heart
	Events    Events
	Input     Input
	Team      Team
	Folders   Folders                          // nil: no instructions of folders below the workspace are shown
	Jobs      Jobs                             // default: no background jobs
	Footprint func(ctx context.Context) string // returns a text that changes with the files of the work; default: nothing changes
	Changes   func(ctx context.Context) string // returns the files that differ from the last commit, a line each; default: none is shown
	Store     engine.Store                     // nil: long texts are cut
	Live      func(team.Delta)                 // receives the text that the model is writing; must not block. nil: a text is shown only once it is complete
	Lease     time.Duration                    // the team's

	MaxTurns   int           // in one run; 0: no limit
	StillTurns int           // turns in a row without progress, after which the agent gives its task back; default [team.StillTurns]
	Effort     team.Effort   // of its model's thinking; default: that of the model's alias
	Idle       time.Duration // the agent leaves after this long without work; 0: it stays
	Logger     *slog.Logger
	Metrics    prometheus.Registerer // default: metrics are not published
}

// Input is the channels from which an agent takes work. A nil channel delivers nothing.
type Input struct {
	Mail     <-chan mailbox.Delivery
	Offers   <-chan team.Task // tasks offered by the index
	Given    <-chan team.Task // tasks that the slot claimed by assignment, each once
	Compacts <-chan struct{}  // requests for a shorter conversation
}

// ErrShutdown is returned by Run after the agent agreed to leave.
var ErrShutdown = errors.New("the agent was asked to shut down")

// Idled is the [ErrShutdown] of an agent that leaves because it had no work.
type Idled struct {
	Role string
	For  time.Duration
}

func (e *Idled) Error() string {
	return fmt.Sprintf("it had no work for %v (idle_timeout of role %s)", e.For, e.Role)
}

// Unwrap returns [ErrShutdown].
func (e *Idled) Unwrap() error { return ErrShutdown }

// ErrFinished is returned by Run after a tool ended the agent's work ([tool.Effects]).
var ErrFinished = errors.New("the agent ended its work")

// Agent is one incarnation of a member and runs its loop.
type Agent struct {
	o         Options
	conv      *Conversation
	state     state
	engine    *engine.Engine
	metrics   metrics
	runID     string
	able      atomic.Bool // a copy of Conversation.Able for other goroutines
	announced atomic.Pointer[string]
	log       *slog.Logger

	unused  time.Time        // since when it has had no work; zero: it has work
	retired bool             // the slot takes no further task, since the agent is about to leave
	short   string           // the budget that it waits for, in words; "": none
	shown   team.MemberState // the state in the last heartbeat
	retry   *time.Time

	tree     string            // the files that differed from the last commit when the agent seemed to make no progress
	touched  []string          // files that calls have read or written since the last turn
	done     []journal.Outcome // outcomes of tasks since the agent last notified the leader that it is idle
	moved    bool              // Conversation.Moved of runs that have ended
	reminded map[string]bool   // messages that the agent was reminded to answer
	directed int               // how many messages of people have arrived
	changed  <-chan struct{}   // closed when the model's settings change after the last request
	before   team.Task         // the task held when the call under way began
	telling  sync.WaitGroup    // events that are being sent
	writes   context.Context   // context for storing enqueued records; set by Run
	obeys    uint64            // shutdown requests from this sequence on are for this incarnation
	follows  bool              // more mail may follow the last message
	poller   poller

	losses chan struct{}                // a task was taken away, which must be recorded
	taken  atomic.Pointer[mailbox.Mark] // the newest message in the journal
	missed atomic.Uint64                // sequence up to which urgent mail did not arrive and is no longer waited for
}

// speak returns the stream for the text of the turn that will be recorded under id; nil if
// Options.Live is nil.
func (a *Agent) speak(id string) engine.TextStream {
	if a.o.Live == nil {
		return nil
	}
	return engine.StreamTo(a.o.Live, team.Delta{TeamID: a.o.TeamID, AgentID: a.o.Member.AgentID,
		Incarnation: a.o.Member.Incarnation, RunID: a.runID, MessageID: id})
}

// New returns an agent that continues the conversation Options.Past.
func New(o Options) *Agent {
	o.Logger = telemetry.OrDiscard(o.Logger)
	o.Jobs = cmp.Or[Jobs](o.Jobs, noJobs{})
	o.StillTurns = cmp.Or(o.StillTurns, team.StillTurns)
	if o.Footprint == nil {
		o.Footprint = func(context.Context) string { return "" }
	}
	if o.Changes == nil {
		o.Changes = func(context.Context) string { return "" }
	}
	a := &Agent{o: o, conv: o.Past, metrics: newMetrics(o.Metrics), poller: newPoller(), losses: make(chan struct{}, 1), log: o.Logger.With("team", o.TeamID, "agent", o.Member.AgentID)}
	w := owner{a}
	a.engine = engine.New(engine.Options{Name: string(o.Member.AgentID), System: o.System, Alias: o.Member.Model, Effort: string(o.Effort), Model: o.Model, Tools: o.Tools,
		Journal: w, Conversation: &o.Past.Conversation, Memory: w, Owner: w, Watcher: w, Stream: a.speak, Store: o.Store, Logger: a.log,
		Changes: func(ctx context.Context) string { return neutral(o.Changes(ctx)) }})
	o.Slot.OnLoss(a.revoked)
	o.Slot.BeforeRelease(a.beforeRelease)
	a.obeys = o.Member.ObeysFrom
	a.conv.forgetRequests(a.obeys)
	a.noteTaken()
	a.able.Store(a.conv.Able)
	return a
}

// LastText returns the newest text that the model answered in this incarnation, or "". Safe for
// concurrent use.
func (a *Agent) LastText() string {
	if s := a.announced.Load(); s != nil {
		return *s
	}
	return ""
}

// HasCalled reports whether the model that answered last has called a tool in this conversation.
// Safe for concurrent use.
func (a *Agent) HasCalled() bool { return a.able.Load() }

// Taken returns the position of the newest message in the journal. All mail up to it is there. Safe
// for concurrent use.
func (a *Agent) Taken() mailbox.Mark { return *a.taken.Load() }

func (a *Agent) noteTaken() {
	m := a.conv.mark()
	a.taken.Store(&m)
}

// Run works until ctx ends (then it returns nil), a shutdown request is granted
// ([ErrShutdown]), a tool ends the work ([ErrFinished]), or a later incarnation
// took over ([team.ErrSuperseded]).
func (a *Agent) Run(ctx context.Context) error {
	// What was enqueued is stored also if the process is asked to stop meanwhile.
	writes, end := shutdown.Outlive(ctx, shutdown.Journal)
	a.writes = writes
	defer func() {
		late := time.AfterFunc(shutdown.Journal, end)
		defer late.Stop()
		if t, holds := a.o.Slot.Task(); holds && t.ID == a.conv.ActiveTask && ctx.Err() != nil { // if there is no time to put it back, that is no attempt
			last, done := context.WithTimeout(context.WithoutCancel(ctx), shutdown.Journal) // a tool may have taken the time of writes
			defer done()
			_ = a.engine.Enqueue(last, journal.Record{Kind: journal.Stop})
		}
		_ = a.o.Journal.Flush() // the error that ended the agent is returned
		a.telling.Wait()
		end()
	}()
	err := a.resume(ctx)
	for err == nil {
		if !a.conv.Unseen {
			a.backoff(ctx)
			err = a.await(ctx)
			continue
		}
		if err = a.run(ctx); err == nil && a.state.ended {
			return ErrFinished
		}
	}
	for _, l := range a.lost() {
		if !l.noted { // there was no time for it
			a.storeLost(l)
		}
	}
	if ctx.Err() != nil && !errors.Is(err, ErrShutdown) && !errors.Is(err, team.ErrSuperseded) {
		return nil
	}
	return err
}

// interrupted is the result of a call that a predecessor left open.
const interrupted = `{"error":"the agent's process was replaced while this call was running; what it ran has ended; it may or may not have taken effect: look before you repeat it","code":"unavailable","status":"error"}`

// resume answers the calls that the previous process left open, adopts its task, and carries out a
// shutdown request that is still pending. A leader with a new goal begins a new context.
func (a *Agent) resume(ctx context.Context) error {
	if err := a.engine.AnswerOpen(ctx, interrupted); err != nil {
		return err
	}
	if a.conv.Stale {
		if err := a.renew(ctx, journal.NewGoal, a.conv.fresh("", a.engine.Lasting())); err != nil {
			return err
		}
	}
	t, ok, err := a.o.Slot.Adopt(ctx, a.conv.LostAt)
	if err != nil {
		return err
	}
	if a.wasFree() {
		return a.leave(ctx)
	}
	a.drains()
	if err := a.answers(ctx); err != nil {
		return err
	}
	if err := a.noteLostJobs(ctx); err != nil {
		return err
	}
	if !ok {
		if err := a.warnLost(ctx); err != nil {
			return err
		}
		if err := a.prompt(ctx); err != nil {
			return err
		}
		return a.claimReserved(ctx)
	}
	if err := a.prompt(ctx); err != nil {
		return err
	}
	if !a.conv.notified(t) { // the predecessor claimed it by a tool, or had no time to record that
		if err := a.begin(ctx, t); err != nil {
			return err
		}
	}
	return a.engine.Record(ctx, journal.Record{Kind: journal.Note, Text: "Your process was restarted. " + string(t.ID) +
		" is still yours: check what is done already, and go on."})
}

// prompt records the prompt that the agent was spawned with as its first mail, from the member that
// requested it, and only once, however often the process is replaced.
func (a *Agent) prompt(ctx context.Context) error {
	mail, ok := a.o.Member.PromptMail()
	since := max(a.o.Member.PromptFor, 1)
	if !ok || a.conv.Prompted >= since {
		return nil
	}
	var ref string
	mail.Content, ref = a.engine.Excerpt(ctx, mail.Content)
	return a.engine.Record(ctx, journal.Record{Kind: journal.Mail, Message: &mail, Spawn: since, Stored: ref})
}

// claimReserved claims a task that is reserved for the agent, if there is one, so that the model
// sees the task before the mail that arrived meanwhile.
func (a *Agent) claimReserved(ctx context.Context) error {
	if a.o.Model == nil || a.conv.Parked != nil || a.leads() {
		return nil
	}
	id, ok := a.o.Team.Reserved(ctx)
	if !ok {
		return nil
	}
	return a.claim(ctx, func() (team.Task, error) { return a.o.Slot.Claim(ctx, id) })
}

// warnLost notes for an agent that restarts in the middle of its work without a task that its last
// task may be lost. Without the note the model would continue that task.
func (a *Agent) warnLost(ctx context.Context) error {
	if a.conv.Task.ID == "" || !a.conv.Unseen && a.conv.Await == nil {
		return nil
	}
	return a.engine.Record(ctx, journal.Record{Kind: journal.Note, Text: "Your process was restarted, and you hold no task now. If you were at work on " +
		string(a.conv.Task.ID) + ", stop: it is no longer yours."})
}

// leads reports whether the agent is the team's leader.
func (a *Agent) leads() bool { return a.o.Member.AgentID == team.Leader }

// backoff sets the agent's state in its heartbeat to idle, or to the state that it waits in.
func (a *Agent) backoff(ctx context.Context) {
	wait, waits := a.waiting()
	switch {
	case a.o.Model == nil:
		a.heartbeat(team.WaitingModel) // not idle: without a model it could not work on a task
	case waits:
		a.heartbeat(wait.State)
	default:
		a.o.Team.Backoff(ctx)
		a.heartbeat(team.Idle)
	}
}

func (a *Agent) heartbeat(state team.MemberState) { a.heartbeatUntil(state, nil) }

// heartbeatUntil is beat for an agent that is parked until retry.
func (a *Agent) heartbeatUntil(state team.MemberState, retry *time.Time) {
	a.shown, a.retry = state, retry
	a.heartbeatAgain()
}

// heartbeatAgain updates the heartbeat after the conversation has changed, in the same state.
func (a *Agent) heartbeatAgain() {
	t, seq := a.o.Slot.Now()
	a.o.Heart.Set(func(b *team.Heartbeat) {
		b.State, b.Turn, b.Task, b.Epoch, b.Begun = a.shown, a.conv.Turns, t.ID, t.Epoch, t.ID != "" && a.state.begun == holding{t.ID, t.Epoch}
		b.Unseen, b.InboxSeq, b.HeardSeq, b.BoardSeq, b.RetryAt = a.conv.Unseen, a.conv.Inbox, a.conv.Heard, seq, a.retry
		b.Context, b.Window = a.engine.Fill(), a.engine.Window()
		b.Alias, b.Model = a.engine.Named()
		b.Tokens = a.conv.Usage.PromptTokens + a.conv.Usage.CompletionTokens + a.conv.JobTokens
		b.Trouble, b.Awaits, b.Asked, b.About = a.engine.Trouble, "", "", ""
		b.Project = a.conv.notedFiles()
		b.Drains = a.drained()
		if b.State == team.WaitingBudget {
			b.Awaits, b.About = team.UserAgent, a.short
		} else if w, ok := a.waiting(); ok && b.State.Waits() {
			b.Awaits, b.Asked, b.About = w.Awaits, w.Asked, w.About
		}
		a.metrics.show(*b)
	})
}

func (a *Agent) notify(ctx context.Context, m team.Message) {
	m.From = a.o.Member.AgentID
	a.send(ctx, m)
}

// send sends a notice; a failure is only logged.
func (a *Agent) send(ctx context.Context, m team.Message) {
	if _, _, err := a.o.Post.Send(ctx, m); err != nil {
		a.log.WarnContext(ctx, "notice not sent", "type", m.Type, "to", m.To, "err", err)
	}
}

// renew records that next replaces the conversation.
func (a *Agent) renew(ctx context.Context, why string, next *Conversation) error {
	return a.engine.Renew(ctx, why, engine.JSON(next), model.Reply{})
}

func (a *Agent) emit(ctx context.Context, b team.EventBody) {
	b.RunID = a.runID
	a.o.Events.Emit(ctx, team.Event{AgentID: a.o.Member.AgentID, RoleName: a.o.Member.Role, RunID: a.runID, Event: b})
}

func newRunID() string { return ulid.Make().String() }
