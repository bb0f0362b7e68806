package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/client_golang/prometheus"

	"agentteam/pkg/journal"
	"agentteam/pkg/mailbox"
	"agentteam/pkg/model"
	"agentteam/pkg/shutdown"
	"agentteam/pkg/team"
	"agentteam/pkg/telemetry"
	"agentteam/pkg/tool"
)

// Model answers a conversation; *model.Router is one. Its errors are *model.Refusal,
// or ctx's.
type Model interface {
	Complete(ctx context.Context, r model.Request, onDelta func(string)) (model.Reply, error)
	Limits(alias string) model.Limits
	// Meant returns the alias that is asked for a name, and the endpoint's name of its model.
	Meant(name string) (alias, model string)
}

// Journal records the conversation; *journal.Journal is one.
type Journal interface {
	Append(ctx context.Context, r journal.Record) (journal.Record, error)
	Enqueue(ctx context.Context, r journal.Record) journal.Record
	Flush() error
}

// Tools runs what the model calls; *tool.Set is one.
type Tools interface {
	Specs() []tool.Spec
	Writes(name string) bool
	ReadOnly(name string) bool
	Yields(name string) bool
	Bulky(name string) (stored []string, bulky bool)
	Run(ctx context.Context, c tool.Call) tool.Result
}

// Hand holds the agent's task; *board.Hand is one.
type Hand interface {
	OnLoss(f func(id team.TaskID, why error))
	Task() (team.Task, bool)
	Confirmed() time.Time
	Now() (t team.Task, seq uint64)
	Take(ctx context.Context, t team.Task) (team.Task, error)
	Claim(ctx context.Context, id team.TaskID) (team.Task, error)
	Adopt(ctx context.Context, atWork team.TaskID) (team.Task, bool, error)
	Confirm(ctx context.Context, id team.TaskID) (team.Task, error)
	Release(ctx context.Context, id team.TaskID, reason string, attempt bool) (team.Task, error)
	GiveBack(ctx context.Context, id team.TaskID, g team.GiveBack) (team.Task, error)
	Retire()
	Inputs(ctx context.Context, t team.Task) ([]team.Input, error)
	LastTry(ctx context.Context, t team.Task) (*team.Try, error)
}

// Store keeps texts that are too long for a conversation; *stored.Texts is one.
type Store interface {
	// Put stores a text and returns the reference by which read_file finds it.
	Put(ctx context.Context, text string) (ref string, err error)
}

// Post sends the agent's notices; *mailbox.Mailbox is one.
type Post interface {
	Send(ctx context.Context, m team.Message) (team.Message, []team.AgentID, error)
}

// Heart tells the team how the agent is, and the agent whether it may go on;
// *roster.Heart is one.
type Heart interface {
	Set(f func(*team.Beat))
	Progress()
	Certain(ctx context.Context) error
	Within(ctx context.Context) (context.Context, context.CancelFunc)
}

// Events records what the agent does; *event.Log is one.
type Events interface {
	Emit(ctx context.Context, e team.Event)
}

// Awaiter is what a tool's value implements if the agent waits for an answer
// because of it; nil means that it does not.
type Awaiter interface{ Awaits() *journal.Await }

// Mover is what a tool's value implements if the call has changed a task's status.
type Mover interface{ Moved() team.Task }

// Decider is what a tool's value implements if the call has answered a request to shut
// down; nil means that it has not.
type Decider interface{ Decides() *journal.Verdict }

// Ender is what a tool's value implements if the agent's work is over with it.
type Ender interface{ EndsRun() bool }

// Rester is what a tool's value implements if the run may end with it: the agent has nothing
// to do until there is input.
type Rester interface{ Rests() bool }

// Options are an agent's parts. All are required unless a comment says otherwise.
type Options struct {
	Member  team.Member
	Team    team.TeamID
	System  string        // the system message
	Past    *Conversation // the journal so far, with this incarnation's start record; New takes it over
	Journal Journal
	Model   Model // nil: none is configured, and the agent can only wait
	Tools   Tools
	Dialect team.Dialect // of the tools, in which the runtime's texts name them; default: native
	Hand    Hand
	Post    Post
	Heart   Heart
	Events  Events
	Store   Store // nil: long texts are cut
	Live    Live  // nil: nobody is told of a text before it is complete
	Mail    <-chan mailbox.Delivery
	Offers  <-chan team.Task // tasks offered by the index
	Given   <-chan team.Task // tasks that the hand took by assignment, each once
	Lease   time.Duration    // the team's

	// Compacts asks for a shorter conversation, each time; nil: nobody does.
	Compacts <-chan struct{}
	// Backlog reads the member's stored mail from a sequence on; see [mailbox.Mailbox.Read].
	// Default: mail that has piled up is taken in one by one.
	Backlog func(ctx context.Context, from uint64, f func(mailbox.Delivery) error) error
	// Look finds a claimable task for an agent that is idle and hears no leader; nil:
	// the agent never looks by itself. ok is false if nothing is claimable.
	Look func(ctx context.Context) (id team.TaskID, ok bool)
	// Reserved finds a task that is reserved for the agent and that it could claim now; it is
	// asked once, before the agent reads its mail. Default: there is none.
	Reserved func(ctx context.Context) (id team.TaskID, ok bool)
	// Left blocks until a person whom the agent waits for has left the team, and then
	// returns nil, or until ctx ends; default: nobody leaves.
	Left func(ctx context.Context, person team.AgentID) error
	// Decided blocks until a plan of the agent is decided on and returns what the agent is
	// told of that, or until ctx ends; default: no plan ever is.
	Decided func(ctx context.Context, plan string) (verdict string, err error)
	// Rests is called when the agent goes idle; default: nobody is told.
	Rests func(ctx context.Context)
	// LeaderHeard returns when the leader's last beat was heard. Before the first beat it
	// returns since when the agent listens. Default: no beat is ever heard.
	LeaderHeard func() time.Time
	// Asking returns the last beats of the members that wait for an answer of this one;
	// default: nobody is known to.
	Asking func() []team.Beat
	// Peers returns how the team's members stand: who else could take a task that the agent's
	// model refuses. Default: nobody.
	Peers func(ctx context.Context) (team.Situation, error)
	// Overview returns how the team stands, of which the agent is told before a turn if it
	// has changed; default: it is not told. An error leaves it out.
	Overview func(ctx context.Context) (team.Overview, error)
	// Parked is called with the cause when the model's endpoint begins to refuse the
	// agent, and with "" when it answers again; default: nobody is told.
	Parked func(ctx context.Context, cause string)
	// EndGoal ends the leader's goal as failed, since its model refuses it; default:
	// nobody does.
	EndGoal func(ctx context.Context, cause string)
	// ModelChanged returns a channel that is closed when the model's settings change;
	// default: they never do.
	ModelChanged func() <-chan struct{}

	MaxTurns int // in one run; 0: no limit
	Logger   *slog.Logger
	Metrics  prometheus.Registerer // default: metrics are not published
}

// ErrShutdown is returned by Run after the agent agreed to leave.
var ErrShutdown = errors.New("the agent was asked to shut down")

// ErrFinished is returned by Run after a tool ended the agent's work ([Ender]).
var ErrFinished = errors.New("the agent ended its work")

// Agent is one incarnation of a member at work.
type Agent struct {
	o       Options
	conv    *Conversation
	state   state
	gauge   gauge
	metrics metrics
	runID   string
	able    atomic.Bool // Conversation.Able, for others
	said    atomic.Pointer[string]
	log     *slog.Logger

	shown   team.MemberState // the state in the last beat
	retry   *time.Time
	trouble string // why the model gives no answer, while it is tried again

	done     []journal.Outcome // what became of tasks in this run
	reminded map[string]bool   // messages that it was reminded to answer
	directed int               // how many messages of people have come
	changed  <-chan struct{}   // closed once the model's settings have changed since the last request
	asked    bool              // somebody asked for a compaction, which could not be done at once
	writes   context.Context   // within which enqueued records are stored; set by Run
	follows  bool              // more mail may stand behind the last message
	lost     lost
	urgent   urgent
	taken    atomic.Uint64 // sequence of the newest message in the journal
	lookout  lookout
}

// New returns an agent that goes on with its conversation.
func New(o Options) *Agent {
	o.Logger = telemetry.OrDiscard(o.Logger)
	if o.LeaderHeard == nil {
		begun := time.Now()
		o.LeaderHeard = func() time.Time { return begun }
	}
	if o.Peers == nil {
		o.Peers = func(context.Context) (team.Situation, error) { return team.Situation{}, nil }
	}
	if o.Asking == nil {
		o.Asking = func() []team.Beat { return nil }
	}
	if o.Left == nil {
		o.Left = func(ctx context.Context, _ team.AgentID) error {
			<-ctx.Done()
			return ctx.Err()
		}
	}
	if o.Decided == nil {
		o.Decided = func(ctx context.Context, _ string) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		}
	}
	if o.Rests == nil {
		o.Rests = func(context.Context) {}
	}
	if o.Parked == nil {
		o.Parked = func(context.Context, string) {}
	}
	if o.EndGoal == nil {
		o.EndGoal = func(context.Context, string) {}
	}
	if o.ModelChanged == nil {
		o.ModelChanged = func() <-chan struct{} { return nil }
	}
	a := &Agent{o: o, conv: o.Past, gauge: newGauge(o), metrics: newMetrics(o.Metrics), lookout: newLookout(), lost: lost{signal: make(chan struct{}, 1)}, log: o.Logger.With("team", o.Team, "agent", o.Member.AgentID)}
	o.Hand.OnLoss(a.revoked)
	a.conv.forgetRequests(o.Member.ObeysFrom)
	a.taken.Store(a.conv.Inbox)
	a.able.Store(a.conv.Able)
	return a
}

// LastText is the newest text that the model answered in this incarnation, or "".
// It may be called at any time.
func (a *Agent) LastText() string {
	if s := a.said.Load(); s != nil {
		return *s
	}
	return ""
}

// HasCalled reports whether the model that answered last has called a tool in this
// conversation. It may be called at any time.
func (a *Agent) HasCalled() bool { return a.able.Load() }

// Taken is the sequence up to which all mail is in the journal. It may be called at any time.
func (a *Agent) Taken() uint64 { return a.taken.Load() }

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
		_ = a.o.Journal.Flush() // the error that ended the agent is told
		end()
	}()
	err := a.resume(ctx)
	for err == nil {
		if !a.conv.Unseen {
			a.rest(ctx)
			err = a.await(ctx)
			continue
		}
		if err = a.run(ctx); err == nil && a.state.ended {
			return ErrFinished
		}
	}
	if ctx.Err() != nil && !errors.Is(err, ErrShutdown) && !errors.Is(err, team.ErrSuperseded) {
		return nil
	}
	return err
}

// resume answers the calls that a predecessor left open, takes over its task, and
// carries out a request to shut down that it had no time for. A leader with a new goal
// begins a new context.
func (a *Agent) resume(ctx context.Context) error {
	if len(a.conv.Open) > 0 {
		for _, call := range a.conv.Open {
			err := a.record(ctx, journal.Record{Kind: journal.Result, Result: &journal.ToolResult{
				CallID: call.ID, Name: call.Name, IsError: true,
				Content: `{"error":"the agent's process was replaced while this call was running; it may or may not have taken effect: look before you repeat it","code":"unavailable","status":"error"}`,
			}})
			if err != nil {
				return err
			}
		}
	}
	if a.conv.Stale {
		if err := a.renew(ctx, journal.NewGoal, a.conv.fresh("", a.gauge.lasting())); err != nil {
			return err
		}
	}
	t, ok, err := a.o.Hand.Adopt(ctx, a.conv.LostAt)
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
	if !a.conv.told(t) { // the predecessor claimed it by a tool, or had no time to record that
		if err := a.begin(ctx, t); err != nil {
			return err
		}
	}
	return a.record(ctx, journal.Record{Kind: journal.Note, Text: "Your process was restarted. " + string(t.ID) +
		" is still yours: check what is done already, and go on."})
}

// prompt takes in what the agent was spawned with, as the first of its mail: from whoever
// asked for it, and once, however often its process is replaced.
func (a *Agent) prompt(ctx context.Context) error {
	mail, ok := a.o.Member.PromptMail()
	since := max(a.o.Member.PromptFor, 1)
	if !ok || a.conv.Prompted >= since {
		return nil
	}
	var ref string
	mail.Content, ref = a.excerpt(ctx, mail.Content)
	return a.record(ctx, journal.Record{Kind: journal.Mail, Message: &mail, Spawn: since, Stored: ref})
}

// claimReserved claims a task that is reserved for the agent, if there is one, so that it is
// told of that before the mail that came meanwhile.
func (a *Agent) claimReserved(ctx context.Context) error {
	if a.o.Model == nil || a.conv.Parked != nil || a.o.Reserved == nil {
		return nil
	}
	id, ok := a.o.Reserved(ctx)
	if !ok {
		return nil
	}
	return a.claim(ctx, func() (team.Task, error) { return a.o.Hand.Claim(ctx, id) })
}

// warnLost tells an agent that comes back in the middle of its work and holds no task
// that its last task may be lost. Without the note it would go on with that task.
func (a *Agent) warnLost(ctx context.Context) error {
	if a.conv.Task.ID == "" || !a.conv.Unseen && a.conv.Await == nil {
		return nil
	}
	return a.record(ctx, journal.Record{Kind: journal.Note, Text: "Your process was restarted, and you hold no task now. If you were at work on " +
		string(a.conv.Task.ID) + ", stop: it is no longer yours."})
}

// rest tells the team that the agent has nothing to do.
func (a *Agent) rest(ctx context.Context) {
	switch {
	case a.o.Model == nil:
		a.beat(team.WaitingModel) // not idle: without a model it could not work on a task
	case a.waits() && a.conv.Await.Plan != "":
		a.beat(team.WaitingApproval)
	case a.waits() && a.conv.Await.OfPerson():
		a.beat(team.WaitingUser)
	case a.waits():
		a.beat(team.WaitingAnswer)
	default:
		a.o.Rests(ctx)
		a.beat(team.Idle)
	}
}

// waits reports whether the agent waits for an answer. A teammate that has no task does
// not wait for another member: it takes the next task, and reads the answer when it comes.
// Nor does it wait on if it asked a person for the sake of a task that it has no more, or
// has submitted a plan for one.
func (a *Agent) waits() bool {
	w := a.conv.Await
	t, holds := a.o.Hand.Task()
	if w != nil && w.Plan != "" {
		return w.Task == t.ID
	}
	return w != nil && (holds || a.o.Member.AgentID == team.Leader || w.OfPerson() && w.Task == "")
}

func (a *Agent) beat(state team.MemberState) { a.beatUntil(state, nil) }

// beatUntil is beat of an agent that is parked until then.
func (a *Agent) beatUntil(state team.MemberState, retry *time.Time) {
	a.shown, a.retry = state, retry
	a.beatAgain()
}

// beatAgain updates the beat after the conversation has changed; the state is as before.
func (a *Agent) beatAgain() {
	t, seq := a.o.Hand.Now()
	a.o.Heart.Set(func(b *team.Beat) {
		b.State, b.Turn, b.Task, b.Epoch, b.Begun = a.shown, a.conv.Turns, t.ID, t.Epoch, t.ID != "" && a.state.begun == holding{t.ID, t.Epoch}
		b.Unseen, b.InboxSeq, b.HeardSeq, b.BoardSeq, b.RetryAt = a.conv.Unseen, a.conv.Inbox, a.conv.Heard, seq, a.retry
		b.Context, b.Window = a.gauge.fill(a.conv), a.gauge.window()
		b.Alias, b.Model = a.gauge.named()
		b.Tokens = a.conv.Usage.PromptTokens + a.conv.Usage.CompletionTokens
		b.Trouble, b.Awaits, b.Asked, b.About = a.trouble, "", "", ""
		b.Drains = a.drained()
		if w := a.conv.Await; w != nil && b.State.Waits() {
			b.Awaits, b.Asked, b.About = w.From, cmp.Or(w.Plan, w.MessageID), w.About
		}
		a.metrics.show(*b)
	})
}

func (a *Agent) notify(ctx context.Context, m team.Message) {
	m.From = a.o.Member.AgentID
	if _, _, err := a.o.Post.Send(ctx, m); err != nil {
		a.log.WarnContext(ctx, "notice not sent", "type", m.Type, "to", m.To, "err", err)
	}
}

// record appends to the journal and then to the conversation.
func (a *Agent) record(ctx context.Context, r journal.Record) error {
	r.RunID = a.runID
	r, err := a.o.Journal.Append(ctx, r)
	if err != nil {
		return err
	}
	err = a.conv.add(r)
	a.taken.Store(a.conv.Inbox)
	return err
}

// enqueue is record that does not wait until the record is stored. Before the agent does
// what others can see, it must flush the journal: a successor knows only what is stored.
func (a *Agent) enqueue(r journal.Record) error {
	r.RunID = a.runID
	return a.conv.add(a.o.Journal.Enqueue(a.writes, r))
}

func (a *Agent) emit(ctx context.Context, b team.EventBody) {
	b.RunID = a.runID
	a.o.Events.Emit(ctx, team.Event{AgentID: a.o.Member.AgentID, RoleName: a.o.Member.Role, RunID: a.runID, Event: b})
}

func newRunID() string { return ulid.Make().String() }

func asJSON(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return data
}
