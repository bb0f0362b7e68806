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

	"agentteam/pkg/journal"
	"agentteam/pkg/mailbox"
	"agentteam/pkg/model"
	"agentteam/pkg/team"
	"agentteam/pkg/tool"
)

// Model answers a conversation; *model.Client is one.
type Model interface {
	Complete(ctx context.Context, r model.Request, onDelta func(string)) (model.Reply, error)
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
	Inputs(ctx context.Context, t team.Task) ([]team.Input, error)
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

// Ender is what a tool's value implements if the agent's work is over with it.
type Ender interface{ EndsRun() bool }

// Options are an agent's parts. All are required unless it says otherwise.
type Options struct {
	Member  team.Member
	Team    team.TeamID
	System  string           // the system message
	Records []journal.Record // the journal so far, with this incarnation's start
	Journal Journal
	Model   Model // nil: none is configured, and the agent can only wait
	Tools   Tools
	Hand    Hand
	Post    Post
	Heart   Heart
	Events  Events
	Mail    <-chan mailbox.Delivery
	Offers  <-chan team.Task // tasks offered by the index
	Given   <-chan team.Task // tasks that the hand took by assignment, each once
	Lease   time.Duration    // the team's

	// Look finds a claimable task for an agent that is idle and hears no leader; nil:
	// the agent never looks by itself. ok is false if nothing is claimable.
	Look func(ctx context.Context) (id team.TaskID, ok bool)
	// LeaderHeard tells when the leader's last beat was heard, or since when the agent
	// listens for one; default: it listens from the start and hears none.
	LeaderHeard func() time.Time
	// Broken is told when the model refuses for good, such as a wrong key.
	Broken func(ctx context.Context, err error)

	MaxTurns  int // in one run; default 50
	MaxTokens int // of one answer; default: the model client's
	Logger    *slog.Logger
}

const (
	defaultMaxTurns = 50
	modelRest       = 20 * time.Second // between rounds of tries while the model is away
)

// ErrShutdown is returned by Run after a shutdown request was granted.
var ErrShutdown = errors.New("the agent was asked to shut down")

// ErrFinished is returned by Run after a tool ended the agent's work ([Ender]).
var ErrFinished = errors.New("the agent ended its work")

// Agent is one incarnation of a member at work.
type Agent struct {
	o      Options
	conv   *conversation
	runID  string
	begun  hold // the newest for which a turn was begun
	spared bool // a run was cut short with a task that was not begun, which is the next one's
	ended  bool // a tool ended the run
	said   atomic.Pointer[string]
	log    *slog.Logger

	lost    lost
	lookout lookout
}

// New returns an agent whose conversation is that of its journal. Errors:
// InvalidState for a journal that cannot be read.
func New(o Options) (*Agent, error) {
	o.MaxTurns = cmp.Or(o.MaxTurns, defaultMaxTurns)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.LeaderHeard == nil {
		begun := time.Now()
		o.LeaderHeard = func() time.Time { return begun }
	}
	a := &Agent{o: o, conv: newConversation(), lookout: newLookout(), lost: lost{signal: make(chan struct{}, 1)}, log: o.Logger.With("team", o.Team, "agent", o.Member.AgentID)}
	for _, r := range o.Records {
		if err := a.conv.add(r); err != nil {
			return nil, err
		}
	}
	o.Hand.OnLoss(a.revoked)
	return a, nil
}

// InboxSeq is the sequence of the newest message in the journal at the start: the
// mail after it is to be received.
func InboxSeq(records []journal.Record) uint64 {
	var last uint64
	for _, r := range records {
		last = max(last, r.InboxSeq)
	}
	return last
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
		if !a.conv.unseen {
			a.rest()
			err = a.await(ctx)
			continue
		}
		if err = a.run(ctx); err == nil && a.ended {
			return ErrFinished
		}
	}
	if ctx.Err() != nil && !errors.Is(err, ErrShutdown) && !errors.Is(err, journal.ErrSuperseded) {
		return nil
	}
	return err
}

// resume answers the calls that a predecessor left open, takes over its task, and
// carries out a request to shut down that it had no time for.
func (a *Agent) resume(ctx context.Context) error {
	if len(a.conv.open) > 0 {
		for _, call := range a.conv.open {
			err := a.record(ctx, journal.Record{Kind: journal.Result, Result: &journal.ToolResult{
				CallID: call.ID, Name: call.Name, IsError: true,
				Content: `{"error":"the agent's process was replaced while this call was running; it may or may not have taken effect: look before you repeat it","code":"unavailable","status":"error"}`,
			}})
			if err != nil {
				return err
			}
		}
	}
	t, ok, err := a.o.Hand.Adopt(ctx)
	if r := a.conv.shutdown; err == nil && r != nil && r.InboxSeq >= a.o.Member.ObeysFrom {
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
	if a.conv.task.ID == "" || !a.conv.unseen && a.conv.await == nil {
		return nil
	}
	return a.record(ctx, journal.Record{Kind: journal.Note, Text: "Your process was restarted, and you hold no task now. If you were at work on " +
		string(a.conv.task.ID) + ", stop: it is no longer yours."})
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
	return a.conv.await != nil && (holds || a.o.Member.AgentID == team.Leader)
}

func (a *Agent) beat(state team.MemberState) {
	t, seq := a.o.Hand.Now()
	a.o.Heart.Set(func(b *team.Beat) {
		if b.Turn != a.conv.turns {
			b.ProgressAt = time.Now().UTC()
		}
		b.State, b.Turn, b.Task, b.Epoch, b.Begun = state, a.conv.turns, t.ID, t.Epoch, t.ID != "" && a.begun == hold{t.ID, t.Epoch}
		b.Unseen, b.InboxSeq, b.BoardSeq = a.conv.unseen, a.conv.inboxSeq, seq
	})
}

// await waits for the next input and records it.
func (a *Agent) await(ctx context.Context) error {
	var answer <-chan time.Time
	if a.waits() {
		answer = time.After(time.Until(a.conv.await.Until))
	}
	var offers <-chan team.Task
	var found <-chan team.TaskID
	if !a.waits() && a.o.Model != nil { // else it has work, the task that it waits with; or it can do none
		var stop func()
		found, stop = a.look(ctx)
		defer stop()
		offers = a.o.Offers
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case d := <-a.o.Mail:
		return a.receive(ctx, d)
	case t := <-a.o.Given:
		return a.given(ctx, t)
	case <-a.lost.signal:
		return a.noteLost(ctx)
	case t := <-offers:
		return a.claim(ctx, func() (team.Task, error) { return a.o.Hand.Take(ctx, t) })
	case id := <-found:
		return a.claim(ctx, func() (team.Task, error) { return a.o.Hand.Claim(ctx, id) })
	case <-answer:
		from := a.conv.await.From
		a.conv.await = nil
		return a.record(ctx, journal.Record{Kind: journal.Note, Text: "No answer came from " + string(from) +
			" within 10 minutes. Go on without it, ask somebody else, or release your task."})
	}
}

// claim tries to get a task; losing the race for it is the normal case and no
// error.
func (a *Agent) claim(ctx context.Context, get func() (team.Task, error)) error {
	if err := a.o.Heart.Certain(ctx); err != nil {
		return err
	}
	t, err := get()
	switch {
	case err == nil:
		return a.given(ctx, t)
	case ctx.Err() != nil:
		return ctx.Err()
	}
	a.log.DebugContext(ctx, "no claim", "err", err)
	return nil
}

// given begins a task that was assigned, perhaps a while ago: it may have been taken
// away again since, or been told together with the loss of the one before.
func (a *Agent) given(ctx context.Context, t team.Task) error {
	if err := a.noteLost(ctx); err != nil { // first, since it may be the same task
		return err
	}
	held, ok := a.o.Hand.Task()
	if !ok || held.ID != t.ID || held.Epoch != t.Epoch || a.conv.told(t) {
		return nil
	}
	return a.begin(ctx, t)
}

// begin records a task that the hand has taken, with where its inputs are.
func (a *Agent) begin(ctx context.Context, t team.Task) error {
	inputs, err := a.o.Hand.Inputs(ctx, t)
	if err != nil {
		return err
	}
	return a.record(ctx, journal.Record{Kind: journal.Task, Task: &t, Inputs: inputs})
}

// receive records a message, which makes it part of the conversation, and only
// then acknowledges it. One that is recorded already came again, or was stored twice
// by a sender that had no answer for longer than the server remembers.
func (a *Agent) receive(ctx context.Context, d mailbox.Delivery) error {
	if d.Seq <= a.conv.inboxSeq || a.conv.read[d.ID] {
		a.conv.inboxSeq = max(a.conv.inboxSeq, d.Seq)
		d.Ack()
		return nil
	}
	if err := a.record(ctx, journal.Record{Kind: journal.Mail, Message: &d.Message, InboxSeq: d.Seq}); err != nil {
		return err
	}
	d.Ack()
	if d.Type == team.MsgShutdownRequest && d.Seq >= a.o.Member.ObeysFrom {
		return a.shutdown(ctx, d.Message)
	}
	return nil
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

// drain records all input that has come, without waiting, before a turn of the model.
func (a *Agent) drain(ctx context.Context) error {
	for {
		select {
		case d := <-a.o.Mail:
			if err := a.receive(ctx, d); err != nil {
				return err
			}
		case t := <-a.o.Given:
			if err := a.given(ctx, t); err != nil {
				return err
			}
		case <-a.lost.signal:
			if err := a.noteLost(ctx); err != nil {
				return err
			}
		default:
			a.lost.newTurn()
			return nil
		}
	}
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
