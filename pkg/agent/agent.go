package agent

import (
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
	"agentteam/pkg/team"
	"agentteam/pkg/tool"
)

// Model answers a conversation; *model.Router is one. Its errors are *model.Refusal,
// or ctx's.
type Model interface {
	Complete(ctx context.Context, r model.Request, onDelta func(string)) (model.Reply, error)
	Limits(alias string) model.Limits
}

// Journal records the conversation; *journal.Journal is one.
type Journal interface {
	Append(ctx context.Context, r journal.Record) (journal.Record, error)
}

// Tools runs what the model calls; *tool.Set is one.
type Tools interface {
	Specs() []tool.Spec
	Writes(name string) bool
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
	Adopt(ctx context.Context) (team.Task, bool, error)
	Confirm(ctx context.Context, id team.TaskID) (team.Task, error)
	Release(ctx context.Context, id team.TaskID, reason string, attempt bool) (team.Task, error)
	Fail(ctx context.Context, id team.TaskID, reason string) (team.Task, error)
	Inputs(ctx context.Context, t team.Task) ([]team.Input, error)
}

// Store keeps texts that are too long for a conversation; *stored.Store is one.
type Store interface {
	// Put stores a text and returns what read_file finds it by.
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

// Mover is what a tool's value implements if the call has moved a task.
type Mover interface{ Moved() team.Task }

// Ender is what a tool's value implements if the agent's work is over with it.
type Ender interface{ EndsRun() bool }

// Options are an agent's parts. All are required unless it says otherwise.
type Options struct {
	Member  team.Member
	Team    team.TeamID
	System  string        // the system message
	Past    *Conversation // the journal so far, with this incarnation's start; the agent's from then on
	Journal Journal
	Model   Model // nil: none is configured, and the agent can only wait
	Tools   Tools
	Hand    Hand
	Post    Post
	Heart   Heart
	Events  Events
	Store   Store // nil: long texts are cut
	Mail    <-chan mailbox.Delivery
	Offers  <-chan team.Task // tasks offered by the index
	Given   <-chan team.Task // tasks that the hand took by assignment, each once
	Lease   time.Duration    // the team's

	// Compacts asks for a shorter conversation, each time; nil: nobody does.
	Compacts <-chan struct{}
	// Look finds a claimable task for an agent that is idle and hears no leader; nil:
	// the agent never looks by itself. ok is false if nothing is claimable.
	Look func(ctx context.Context) (id team.TaskID, ok bool)
	// LeaderHeard tells when the leader's last beat was heard, or since when the agent
	// listens for one; default: it listens from the start and hears none.
	LeaderHeard func() time.Time
	// Parked is told when the model's endpoint begins to refuse the agent, with the
	// cause, and with "" when it answers again; default: nobody is told.
	Parked func(ctx context.Context, cause string)
	// EndGoal ends the leader's goal as failed, since its model refuses it; default:
	// nobody does.
	EndGoal func(ctx context.Context, cause string)
	// ModelChanged returns what is closed when the model's settings change; default:
	// they never do.
	ModelChanged func() <-chan struct{}

	MaxTurns int // in one run; 0: no limit
	Logger   *slog.Logger
	Registry prometheus.Registerer // default: metrics are not published
}

// modelRest is the rest between rounds of tries while the model is away.
const modelRest = 20 * time.Second

// ErrShutdown is returned by Run after a shutdown request was granted.
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
	said    atomic.Pointer[string]
	log     *slog.Logger

	shown team.MemberState // as the last beat told it
	retry *time.Time

	directed int             // words of people that were taken in
	changed  <-chan struct{} // closed once the model's settings are others than at the last question
	asked    bool            // to shorten the conversation, which could not be done at once
	lost     lost
	lookout  lookout
}

// New returns an agent that goes on with its conversation.
func New(o Options) *Agent {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.LeaderHeard == nil {
		begun := time.Now()
		o.LeaderHeard = func() time.Time { return begun }
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
	a := &Agent{o: o, conv: o.Past, gauge: newGauge(o), metrics: newMetrics(o.Registry), lookout: newLookout(), lost: lost{signal: make(chan struct{}, 1)}, log: o.Logger.With("team", o.Team, "agent", o.Member.AgentID)}
	o.Hand.OnLoss(a.revoked)
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

// Run works until ctx ends (then it returns nil), a shutdown request is granted
// ([ErrShutdown]), a tool ends the work ([ErrFinished]), or a later incarnation
// took over ([journal.ErrSuperseded]).
func (a *Agent) Run(ctx context.Context) error {
	err := a.resume(ctx)
	for err == nil {
		if !a.conv.Unseen {
			a.rest()
			err = a.await(ctx)
			continue
		}
		if err = a.run(ctx); err == nil && a.state.ended {
			return ErrFinished
		}
	}
	if ctx.Err() != nil && !errors.Is(err, ErrShutdown) && !errors.Is(err, journal.ErrSuperseded) {
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
		if err := a.renew(ctx, "a new goal", a.conv.fresh("")); err != nil {
			return err
		}
	}
	t, ok, err := a.o.Hand.Adopt(ctx)
	if r := a.conv.Shutdown; err == nil && r != nil && r.InboxSeq >= a.o.Member.ObeysFrom {
		return a.shutdown(ctx, *r.Message)
	}
	if err != nil {
		return err
	}
	if !ok {
		return a.warnLost(ctx)
	}
	if !a.conv.told(t) { // the predecessor claimed it by a tool, or had no time to record that
		if err := a.begin(ctx, t); err != nil {
			return err
		}
	}
	return a.record(ctx, journal.Record{Kind: journal.Note, Text: "Your process was restarted. " + string(t.ID) +
		" is still yours: check what is done already, and go on."})
}

// warnLost tells an agent that comes back in the middle of its work, and holds no
// task now, that it may have lost the one it was at: it would do it a second time.
func (a *Agent) warnLost(ctx context.Context) error {
	if a.conv.Task.ID == "" || !a.conv.Unseen && a.conv.Await == nil {
		return nil
	}
	return a.record(ctx, journal.Record{Kind: journal.Note, Text: "Your process was restarted, and you hold no task now. If you were at work on " +
		string(a.conv.Task.ID) + ", stop: it is no longer yours."})
}

// rest tells the team that the agent has nothing to do.
func (a *Agent) rest() {
	switch {
	case a.o.Model == nil:
		a.beat(team.WaitingModel) // not idle: it could do nothing with a task
	case a.waits():
		a.beat(team.WaitingAnswer)
	default:
		a.beat(team.Idle)
	}
}

// waits reports whether the agent waits for an answer. A teammate without a task
// does not: it takes the next one, and reads the answer when it comes.
func (a *Agent) waits() bool {
	_, holds := a.o.Hand.Task()
	return a.conv.Await != nil && (holds || a.o.Member.AgentID == team.Leader)
}

func (a *Agent) beat(state team.MemberState) { a.beatUntil(state, nil) }

// beatUntil is beat of an agent that is parked until then.
func (a *Agent) beatUntil(state team.MemberState, retry *time.Time) {
	a.shown, a.retry = state, retry
	a.beatAgain()
}

// beatAgain tells how the agent is, which is as before but for its conversation.
func (a *Agent) beatAgain() {
	t, seq := a.o.Hand.Now()
	a.o.Heart.Set(func(b *team.Beat) {
		if b.Turn != a.conv.Turns {
			b.ProgressAt = time.Now().UTC()
		}
		b.State, b.Turn, b.Task, b.Epoch, b.Begun = a.shown, a.conv.Turns, t.ID, t.Epoch, t.ID != "" && a.state.begun == hold{t.ID, t.Epoch}
		b.Unseen, b.InboxSeq, b.BoardSeq, b.RetryAt = a.conv.Unseen, a.conv.Inbox, seq, a.retry
		b.Context, b.Window = a.gauge.fill(a.conv), a.gauge.window()
		a.metrics.show(*b)
	})
}

// shutdown grants a request: the task goes back to the board, the asker is told.
func (a *Agent) shutdown(ctx context.Context, m team.Message) error {
	if t, ok := a.o.Hand.Task(); ok {
		if _, err := a.o.Hand.Release(ctx, t.ID, "its holder "+string(a.o.Member.AgentID)+" was asked to shut down", false); err != nil {
			a.log.WarnContext(ctx, "task not released at shutdown", "task", t.ID, "err", err)
		}
	}
	if err := a.record(ctx, journal.Record{Kind: journal.End}); err != nil {
		return err
	}
	if m.From != team.UserAgent && m.From != team.Watchdog {
		yes := true
		a.notify(ctx, team.Message{Type: team.MsgShutdownResponse, To: m.From, RequestID: m.RequestID, Approve: &yes,
			Content: string(a.o.Member.AgentID) + " shuts down"})
	}
	return ErrShutdown
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
	return a.conv.add(r)
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
