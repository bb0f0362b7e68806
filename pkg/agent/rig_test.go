package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"agentteam/pkg/broker"
	"agentteam/pkg/journal"
	"agentteam/pkg/mailbox"
	"agentteam/pkg/model"
	"agentteam/pkg/team"
	"agentteam/pkg/tool"
)

// rig is an agent among fakes: a scripted model, a board of one task, a journal in
// memory. It is to be used inside a synctest bubble.
type rig struct {
	t    *testing.T
	opts Options

	journal []journal.Record
	asked   []model.Request // what the model was asked
	answers []func(model.Request) (model.Reply, error)
	model   func(context.Context, model.Request) (model.Reply, error) // answers in place of all else
	decide  func([]*model.Message) string                             // what the model says when no answer is queued; nil: an error
	tools   map[string]func(ctx context.Context, c tool.Call) tool.Result
	ran     []string // ids of the calls that were run
	task    team.Task
	held    bool   // the agent's hand holds task
	epoch   uint64 // under which it took it
	// how often the agent made sure that it still holds the task
	confirms int
	fence    chan struct{}           // not nil: the membership is uncertain until it is closed
	fenced   context.CancelCauseFunc // ends the step under way
	losing   string                  // the next claim is lost with this reason
	damaged  bool                    // the task's record cannot be read
	known    time.Time               // when the agent was last known to hold the task
	onLoss   func(team.TaskID, error)
	limits   model.Limits
	parked   []string // causes that were told, "" for the return
	released func()   // called when a release has found a loss, before its answer
	sent     []team.Message
	states   []team.MemberState // as told by beats, without repetitions
	beat     team.Beat
	events   []team.EventType
	acked    []uint64

	appends, killBefore, killAfter int // the process dies before or after its n-th append; 0: it does not

	mail   chan mailbox.Delivery
	offers chan team.Task
	given  chan team.Task

	agent  *Agent
	cancel context.CancelFunc
	ended  chan error
	turn   atomic.Int64 // orders the test's reads before what a timer sets off
}

func newRig(t *testing.T) *rig {
	r := &rig{t: t, tools: map[string]func(context.Context, tool.Call) tool.Result{}, mail: make(chan mailbox.Delivery, 1), offers: make(chan team.Task), given: make(chan team.Task, 1)}
	r.task = team.Task{ID: "T-001", Title: "Count", Status: team.Pending}
	r.opts = Options{
		Member: team.Member{AgentID: "coder-1", Role: "coder", Incarnation: 1}, Team: "t", System: "You are coder-1.",
		Journal: rigJournal{r}, Model: rigModel{r}, Tools: rigTools{r}, Hand: rigHand{r}, Post: rigPost{r}, Heart: rigHeart{r}, Events: rigEvents{r},
		Mail: r.mail, Offers: r.offers, Given: r.given, Lease: team.DefaultLease,
	}
	r.opts.Parked = func(_ context.Context, cause string) { r.parked = append(r.parked, cause) }
	r.journal = []journal.Record{{Kind: journal.Start, Incarnation: 1}}
	return r
}

// start runs the agent and waits until nothing moves.
func (r *rig) start() {
	r.t.Helper()
	var err error
	if r.opts.Past, err = Fold(r.journal); err != nil {
		r.t.Fatal(err)
	}
	a := New(r.opts)
	r.agent = a
	var ctx context.Context
	ctx, r.cancel = context.WithCancel(r.t.Context())
	r.ended = make(chan error, 1)
	go func() { r.ended <- a.Run(ctx) }()
	synctest.Wait()
}

// stop ends the agent as a stopping process does.
func (r *rig) stop() {
	r.t.Helper()
	r.cancel()
	if err := <-r.ended; err != nil {
		r.t.Errorf("Run = %v", err)
	}
}

func (r *rig) post(seq uint64, from team.AgentID, typ team.MessageType, text string) {
	r.mail <- mailbox.Delivery{Message: team.Message{ID: fmt.Sprintf("m%d", seq), Type: typ, From: from, To: r.opts.Member.AgentID, Content: text, RequestID: "r1"},
		Seq: seq, Ack: func() { r.acked = append(r.acked, seq) }}
	synctest.Wait()
}

// moved is what a tool returns that has moved the task.
type moved struct{ task team.Task }

func (m moved) Moved() team.Task { return m.task }

// delivery is a message of the user, for a channel of mail.
func delivery(seq uint64, typ team.MessageType) mailbox.Delivery {
	return mailbox.Delivery{Message: team.Message{ID: fmt.Sprintf("m%d", seq), Type: typ, From: team.UserAgent, Content: "please"}, Seq: seq, Ack: func() {}}
}

// reap gives the task to somebody else.
func (r *rig) reap() {
	r.t.Helper()
	freed, err := r.task.Reap("silent", false, time.Now())
	if err == nil {
		freed, err = freed.Claim(team.Holder{Agent: "coder-9", Incarnation: 1}, time.Now())
	}
	if err != nil {
		r.t.Fatal(err)
	}
	r.task = freed
}

// pass lets time go by.
func (r *rig) pass(d time.Duration) {
	r.turn.Add(1)
	time.Sleep(d)
	synctest.Wait()
}

func (r *rig) offer() {
	r.offers <- r.task
	synctest.Wait()
}

// says queues answers of the model: a text, or with "!" before it the name of a
// tool to call, several with commas between.
func (r *rig) says(answers ...string) {
	for _, text := range answers {
		r.answers = append(r.answers, func(model.Request) (model.Reply, error) { return r.reply(text), nil })
	}
}

func (r *rig) reply(text string) model.Reply {
	reply := model.Reply{Message: model.Message{Role: "assistant", Content: text}, FinishReason: "stop", Usage: model.Usage{PromptTokens: 10, CompletionTokens: 2}}
	if len(r.asked) > 0 {
		reply.Usage.PromptTokens = max(10, sizeOf(r.asked[len(r.asked)-1].Messages))
	}
	if names, ok := strings.CutPrefix(text, "!"); ok {
		reply.Message.Content, reply.FinishReason = "", "tool_calls"
		for name := range strings.SplitSeq(names, ",") {
			reply.Message.ToolCalls = append(reply.Message.ToolCalls, model.ToolCall{ID: fmt.Sprintf("call%d-%s", len(r.asked), name), Name: name, Arguments: "{}"})
		}
	}
	return reply
}

// refuses queues a refusal of the model's endpoint.
func (r *rig) refuses(advice model.Advice, reason model.Reason) {
	r.answers = append(r.answers, func(model.Request) (model.Reply, error) { return model.Reply{}, no(advice, reason) })
}

func no(advice model.Advice, reason model.Reason) error {
	return &model.Refusal{Advice: advice, Reason: reason, Err: errors.New("the endpoint says no")}
}

// kinds is the journal in short, one word a record.
func (r *rig) kinds() string {
	var words []string
	for _, rec := range r.journal {
		words = append(words, string(rec.Kind))
	}
	return strings.Join(words, " ")
}

func (r *rig) notes() string {
	var b strings.Builder
	for _, rec := range r.journal {
		b.WriteString(rec.Text)
	}
	return b.String()
}

func (r *rig) wantStates(want ...team.MemberState) {
	r.t.Helper()
	if !slices.Equal(r.states, want) {
		r.t.Errorf("states told: %v, want %v", r.states, want)
	}
}

func (r *rig) wantKinds(want string) {
	r.t.Helper()
	if got := r.kinds(); got != want {
		r.t.Errorf("journal: %s\nwant:    %s", got, want)
	}
}

type rigJournal struct{ *rig }

func (r rigJournal) Append(ctx context.Context, rec journal.Record) (journal.Record, error) {
	if ctx.Err() != nil {
		return rec, ctx.Err()
	}
	r.rig.appends++
	if r.appends == r.killBefore {
		r.cancel()
		return rec, ctx.Err()
	}
	r.turn.Load()
	rec.ID, rec.At, rec.Seq, rec.Incarnation = recordID, time.Now(), uint64(len(r.journal)+1), r.opts.Member.Incarnation
	r.rig.journal = append(r.rig.journal, rec)
	if r.appends == r.killAfter {
		r.cancel()
		return rec, ctx.Err()
	}
	return rec, nil
}

type rigModel struct{ *rig }

func (r rigModel) Complete(ctx context.Context, req model.Request, _ func(string)) (model.Reply, error) {
	if r.model != nil {
		return r.model(ctx, req)
	}
	if ctx.Err() != nil { // as an HTTP client, which sends nothing then
		return model.Reply{}, ctx.Err()
	}
	if err := validProtocol(req.Messages[1:]); err != nil || req.Messages[0].Role != "system" {
		r.t.Errorf("the model was asked: %v (first a %s message)", err, req.Messages[0].Role)
	}
	r.rig.asked = append(r.asked, req)
	if len(r.answers) == 0 && r.decide != nil {
		return r.reply(r.decide(req.Messages)), nil
	}
	if len(r.answers) == 0 {
		return model.Reply{}, errors.New("the test has no more answers")
	}
	answer := r.answers[0]
	r.rig.answers = r.answers[1:]
	return answer(req)
}

func (r rigModel) Limits(string) model.Limits { return r.limits }

type rigTools struct{ *rig }

func (r rigTools) Specs() []tool.Spec { return []tool.Spec{{Name: "look", Description: "looks"}} }

func (r rigTools) Writes(name string) bool { return name == "write" }

func (r rigTools) Run(ctx context.Context, c tool.Call) tool.Result {
	r.rig.ran = append(r.ran, c.ID)
	if f := r.tools[c.Name]; f != nil {
		return f(ctx, c)
	}
	return tool.Result{Content: "result of " + c.Name}
}

// rigHand keeps the rules of the board by the transitions of team.Task themselves.
type rigHand struct{ *rig }

func (r rigHand) Task() (team.Task, bool) {
	r.turn.Load()
	if !r.held {
		return team.Task{}, false
	}
	t := r.task
	t.Epoch = r.epoch // what others have done to it since is not known
	return t, true
}

func (r rigHand) OnLoss(f func(team.TaskID, error)) { r.rig.onLoss = f }

func (r rigHand) Confirmed() time.Time { return r.known }

func (r rigHand) Now() (team.Task, uint64) {
	t, _ := r.Task()
	return t, 0
}

func (r rigHand) Take(_ context.Context, t team.Task) (team.Task, error) {
	if r.losing != "" {
		return team.Task{}, team.Errorf(team.Conflict, "%s", r.losing)
	}
	return r.hold(t.Claim(r.opts.Member.Holder(), time.Now()))
}

func (r rigHand) Claim(ctx context.Context, id team.TaskID) (team.Task, error) {
	return r.Take(ctx, r.task)
}

func (r rigHand) hold(t team.Task, err error) (team.Task, error) {
	if err == nil {
		r.rig.task, r.rig.held, r.rig.epoch, r.rig.known = t, true, t.Epoch, time.Now()
	}
	return t, err
}

func (r rigHand) Adopt(context.Context) (team.Task, bool, error) {
	t, err := r.task.Adopt(r.opts.Member.Holder(), time.Now())
	if err != nil {
		r.rig.held = false
		return t, false, nil
	}
	t, err = r.hold(t, nil)
	return t, true, err
}

func (r rigHand) Release(_ context.Context, _ team.TaskID, reason string, attempt bool) (team.Task, error) {
	r.turn.Load()
	if r.damaged {
		r.rig.known = time.Time{}
		return team.Task{}, errDamaged
	}
	t, err := r.task.Release(team.Actor{Holder: r.opts.Member.Holder()}, r.epoch, reason, attempt, time.Now())
	if err != nil && r.held {
		r.rig.held = false
		r.onLoss(r.task.ID, err)
		if r.released != nil {
			r.released()
		}
	}
	if err == nil {
		r.rig.task, r.rig.held = t, false
	}
	return t, err
}

func (r rigHand) Fail(_ context.Context, _ team.TaskID, reason string) (team.Task, error) {
	t, err := r.task.Fail(team.Actor{Holder: r.opts.Member.Holder()}, r.epoch, reason, time.Now())
	if err == nil {
		r.rig.task, r.rig.held = t, false
	}
	return t, err
}

func (r rigHand) Confirm(context.Context, team.TaskID) (team.Task, error) {
	r.turn.Load()
	r.rig.confirms++
	r.rig.known = time.Now()
	if r.damaged {
		r.rig.known = time.Time{}
		return team.Task{}, errDamaged
	}
	err := r.task.MayComplete(r.opts.Member.Holder(), r.epoch)
	if err != nil && r.held {
		r.rig.held = false
		r.onLoss(r.task.ID, err)
	}
	return r.task, err
}

// revoke has the hand look at its task, as it does when word comes that it was taken.
func (r *rig) revoke() { _, _ = (rigHand{r}).Confirm(r.t.Context(), r.task.ID) }

var errDamaged = team.Errorf(team.InvalidState, "record task.T-001 %w", broker.ErrUnreadable)

func (r rigHand) Inputs(context.Context, team.Task) ([]team.Input, error) { return nil, nil }

type rigPost struct{ *rig }

func (r rigPost) Send(_ context.Context, m team.Message) (team.Message, []team.AgentID, error) {
	r.rig.sent = append(r.sent, m)
	return m, []team.AgentID{m.To}, nil
}

type rigHeart struct{ *rig }

func (r rigHeart) Set(f func(*team.Beat)) {
	r.turn.Load()
	f(&r.rig.beat)
	if n := len(r.states); n == 0 || r.states[n-1] != r.beat.State {
		r.rig.states = append(r.states, r.beat.State)
	}
}

func (r rigHeart) Certain(ctx context.Context) error {
	if r.fence == nil {
		return nil
	}
	select {
	case <-ctx.Done():
	case <-r.fence:
	}
	return ctx.Err()
}

func (r rigHeart) Within(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	r.rig.fenced = cancel
	return ctx, func() { cancel(nil) }
}

type rigEvents struct{ *rig }

func (r rigEvents) Emit(_ context.Context, e team.Event) {
	r.rig.events = append(r.events, e.Event.Type)
}
