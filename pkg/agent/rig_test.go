package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"agentteam/pkg/model"
	"agentteam/pkg/store/board"
	"agentteam/pkg/store/board/boardtest"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/store/mailbox"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
	"agentteam/pkg/team/codec"
	"agentteam/pkg/tool"
)

// rig is an agent among fakes: a scripted model, a board and a journal in memory. It is to be used inside a synctest bubble.
type rig struct {
	t    *testing.T
	opts Options
	team *rigTeam

	journal []journal.Record
	asked   []model.Request // what the model was asked
	answers []func(model.Request) (model.Reply, error)
	model   func(context.Context, model.Request) (model.Reply, error) // answers in place of all else
	decide  func([]*model.Message) string                             // what the model says when no answer is queued; nil: an error
	tools   map[string]func(ctx context.Context, c tool.Call) tool.Result
	ran     []string // ids of the calls that were run

	records  boardtest.Records       // of the board
	hand     *board.ClaimSlot        // of the newest incarnation
	id       team.TaskID             // of the task that the test is about
	healthy  team.Task               // as it was before its record was damaged
	confirms int                     // how often the agent made sure that it still holds the task
	fence    chan struct{}           // not nil: the membership is uncertain until it is closed
	fenced   context.CancelCauseFunc // ends the step under way
	limits   model.Limits
	parked   []string // causes that were told, "" for the return
	released func()   // called when a release has found a loss, before its answer
	retires  func()   // called before the hand takes no task any more
	sent     []team.Message
	states   []team.MemberState // as told by beats, without repetitions
	beat     team.Heartbeat
	progress atomic.Int64 // when there was some last, in nanoseconds
	events   []team.EventType
	emits    func(context.Context, team.EventBody) // called with each event before it is stored
	acked    []uint64

	appends, killBefore, killAfter int    // the process dies before or after its n-th record is stored; 0: it does not
	stored                         func() // called when a record was stored, before its answer
	late                           bool   // what is enqueued is stored when it must be, not at once
	pending                        []func() error
	failed                         error // why what was enqueued could not be stored
	dead                           bool
	away                           bool // NATS is: what is to be stored waits until its context ends

	mail   chan mailbox.Delivery
	offers chan team.Task
	given  chan team.Task

	begun  time.Time
	agent  *Agent
	cancel context.CancelFunc
	ended  chan error
	turn   atomic.Int64 // orders the test's reads before what a timer sets off
}

func newRig(t *testing.T) *rig {
	r := &rig{t: t, tools: map[string]func(context.Context, tool.Call) tool.Result{}, mail: make(chan mailbox.Delivery, 1), offers: make(chan team.Task), given: make(chan team.Task, 1)}
	r.next(team.Task{ID: "T-001", Title: "Count", Status: team.Pending})
	r.opts = Options{
		Member: team.Member{AgentID: "coder-1", Role: "coder", Incarnation: 1}, TeamID: "t", System: "You are coder-1.",
		Journal: rigJournal{r}, Model: rigModel{r}, Tools: rigTools{r}, Post: rigPost{r}, Heart: rigHeart{r}, Events: rigEvents{r},
		Input: Input{Mail: r.mail, Offers: r.offers, Given: r.given}, Lease: team.DefaultLease,
	}
	r.team = &rigTeam{r: r}
	r.opts.Team = r.team
	r.journal = []journal.Record{{Kind: journal.Start, Incarnation: 1}}
	r.hold(t.Context())
	return r
}

// start runs the agent and waits until nothing moves.
func (r *rig) start() {
	r.t.Helper()
	var err error
	if r.opts.Past, err = Fold(r.opts.Dialect, r.journal); err != nil {
		r.t.Fatal(err)
	}
	r.pending, r.failed, r.dead = nil, nil, false // what a predecessor could not store is lost
	var ctx context.Context
	ctx, r.cancel = context.WithCancel(r.t.Context())
	if r.opts.Member.Holder() != r.hand.Holder() {
		r.hold(ctx)
	}
	a := New(r.opts)
	r.agent, r.begun = a, time.Now()
	r.ended = make(chan error, 1)
	go func() { r.ended <- a.Run(ctx) }()
	r.settle()
}

// stop ends the agent as a stopping process does.
func (r *rig) stop() {
	r.t.Helper()
	r.cancel()
	if err := <-r.ended; err != nil {
		r.t.Errorf("Run = %v", err)
	}
}

// settle waits until nothing moves, nor would once the agent has seen that no mail follows.
func (r *rig) settle() {
	synctest.Wait()
	r.pass(nextWithin)
}

func (r *rig) post(seq uint64, from team.AgentID, typ team.MessageType, text string) {
	r.mail <- mailbox.Delivery{Message: team.Message{ID: fmt.Sprintf("m%d", seq), Type: typ, From: from, To: r.opts.Member.AgentID, Content: text, RequestID: "r1"},
		Seq: seq, Ack: func() { r.acked = append(r.acked, seq) }}
	r.settle()
}

// delivery is a message of the user, for a channel of mail.
func delivery(seq uint64, typ team.MessageType) mailbox.Delivery {
	return mailbox.Delivery{Message: team.Message{ID: fmt.Sprintf("m%d", seq), Type: typ, From: team.UserAgent, Content: "please"}, Seq: seq, Ack: func() {}}
}

// pass lets time go by.
func (r *rig) pass(d time.Duration) {
	r.turn.Add(1)
	time.Sleep(d)
	synctest.Wait()
}

func (r *rig) offer() {
	r.offers <- r.task()
	synctest.Wait()
}

// says queues answers of the model: a text, or with "!" before it the name of a
// tool to call, several with commas between.
func (r *rig) says(answers ...string) {
	for _, text := range answers {
		r.answers = append(r.answers, func(model.Request) (model.Reply, error) { return r.reply(text), nil })
	}
}

// cuts queues an answer that meets its limit before it says anything.
func (r *rig) cuts() {
	r.answers = append(r.answers, func(model.Request) (model.Reply, error) {
		reply := r.reply("")
		reply.FinishReason = "length"
		return reply, nil
	})
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
	rec = r.stamped(rec)
	if err := r.Flush(); err != nil {
		return rec, err
	}
	err := r.store(ctx, rec)
	rec.Seq = uint64(len(r.journal))
	return rec, err
}

func (r rigJournal) Enqueue(ctx context.Context, rec journal.Record) journal.Record {
	rec = r.stamped(rec)
	r.rig.pending = append(r.pending, func() error { return r.store(ctx, rec) })
	if !r.late {
		_ = r.Flush()
	}
	return rec
}

func (r rigJournal) Flush() error {
	for len(r.pending) > 0 && r.failed == nil {
		next := r.pending[0]
		r.rig.pending = r.pending[1:]
		r.rig.failed = next()
	}
	return r.failed
}

func (r rigJournal) stamped(rec journal.Record) journal.Record {
	rec.ID, rec.At, rec.Incarnation = cmp.Or(rec.ID, recordID), time.Now(), r.opts.Member.Incarnation
	return rec
}

func (r rigJournal) store(ctx context.Context, rec journal.Record) error {
	if r.away {
		<-ctx.Done()
	}
	if ctx.Err() != nil || r.dead {
		return context.Canceled
	}
	r.rig.appends++
	if r.appends == r.killBefore {
		return r.die()
	}
	r.turn.Load()
	rec.Seq = uint64(len(r.journal) + 1)
	r.rig.journal = append(r.rig.journal, rec)
	if r.stored != nil {
		r.stored()
	}
	if r.appends == r.killAfter {
		return r.die()
	}
	return nil
}

// die ends the process: whatever it does from now on is of no effect.
func (r rigJournal) die() error {
	r.rig.dead = true
	r.cancel()
	return context.Canceled
}

type rigModel struct{ *rig }

func (r rigModel) Complete(ctx context.Context, req model.Request, _ func(string)) (model.Reply, error) {
	if req.Ready != nil {
		if err := req.Ready(); err != nil {
			return model.Reply{}, err
		}
	}
	if len(r.pending) > 0 {
		r.t.Errorf("the model was asked before %d records that led to it were stored", len(r.pending))
	}
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

func (r rigModel) Meant(name string) (string, string) {
	return cmp.Or(name, "default"), "model-of-" + cmp.Or(name, "default")
}

type rigTools struct{ *rig }

func (r rigTools) Specs() []tool.Spec { return []tool.Spec{{Name: "look", Description: "looks"}} }

func (r rigTools) Traits(name string) tool.Traits {
	switch name {
	case "read_file":
		return tool.Traits{ReadOnly: true, Yields: true, Bulky: true, Reads: []string{"path"}}
	case "bash":
		return tool.Traits{Yields: true, Bulky: true}
	case "write_file":
		return tool.Traits{Bulky: true, Stored: []string{"content"}}
	}
	return tool.Traits{Talk: name == "thank" || name == "ask", ReadOnly: strings.HasPrefix(name, "look"), Writes: name == "write", Yields: !strings.HasPrefix(name, "write")}
}

func (r rigTools) TraitsOf(c tool.Call) tool.Traits { return r.Traits(c.Name) }

func (r rigTools) Run(ctx context.Context, c tool.Call) tool.Result {
	r.rig.ran = append(r.ran, c.ID)
	if len(r.pending) > 0 && !r.Traits(c.Name).ReadOnly {
		r.t.Errorf("%s began before %d records that led to it were stored", c.ID, len(r.pending))
	}
	if f := r.tools[c.Name]; f != nil {
		return f(ctx, c)
	}
	return tool.Result{Content: "result of " + c.Name}
}

// rigHand is the agent's hand on a board in memory. It counts what it is asked.
type rigHand struct {
	*board.ClaimSlot
	r *rig
}

func (h rigHand) Confirm(ctx context.Context, id team.TaskID) (team.Task, error) {
	h.r.turn.Load()
	h.r.confirms++
	return h.ClaimSlot.Confirm(ctx, id)
}

func (h rigHand) Release(ctx context.Context, id team.TaskID, f team.Freed) (team.Task, error) {
	h.r.turn.Load()
	t, err := h.ClaimSlot.Release(ctx, id, f)
	if team.HoldLost(err) && h.r.released != nil {
		h.r.released()
	}
	return t, err
}

func (h rigHand) GiveBack(ctx context.Context, id team.TaskID, g team.GiveBack) (team.Task, error) {
	h.r.turn.Load()
	t, err := h.ClaimSlot.GiveBack(ctx, id, g)
	if team.HoldLost(err) && h.r.released != nil {
		h.r.released()
	}
	return t, err
}

func (h rigHand) Retire() {
	if f := h.r.retires; f != nil {
		f()
	}
	h.ClaimSlot.Retire()
}

// hold gives the present incarnation a hand that lives as long as life.
func (r *rig) hold(life context.Context) {
	r.hand = board.NewClaimSlot(life, board.New(&r.records, board.Options{}), r.opts.Member.Holder())
	r.opts.Slot = rigHand{r.hand, r}
}

// next puts t on the board; the rig's other methods are about it from now on.
func (r *rig) next(t team.Task) {
	r.t.Helper()
	r.id = t.ID
	r.put(t)
}

func (r *rig) put(t team.Task) {
	r.t.Helper()
	t.V = team.Protocol
	data, err := codec.Encode(&t, t.Kept)
	if err != nil {
		r.t.Fatal(err)
	}
	r.records.Set(subject.KeyTask(t.ID), data)
}

func (r *rig) task() team.Task {
	r.t.Helper()
	e, err := r.records.Get(context.Background(), subject.KeyTask(r.id))
	if err != nil {
		r.t.Fatal(err)
	}
	t, err := board.Decode(e)
	if err != nil {
		r.t.Fatal(err)
	}
	return t
}

// edit changes the task's record by f.
func (r *rig) edit(f func(*team.Task)) {
	r.t.Helper()
	t := r.task()
	f(&t)
	r.put(t)
}

func (r *rig) claim() team.Task {
	r.t.Helper()
	t, err := r.hand.Claim(r.t.Context(), r.id)
	if err != nil {
		r.t.Error(err)
	}
	return t
}

// complete completes the task with a summary, as a tool of the agent does.
func (r *rig) complete(summary string) tool.Result {
	r.t.Helper()
	t, err := r.hand.Complete(r.t.Context(), r.id, team.Done{Summary: summary})
	if err != nil {
		r.t.Error(err)
	}
	return tool.Result{Content: "completed", Effects: tool.Effects{Moved: &t}}
}

func (r *rig) holds() bool {
	_, holds := r.hand.Task()
	return holds
}

// reap gives the task to somebody else.
func (r *rig) reap() {
	r.t.Helper()
	freed, err := r.task().Reap(team.Freed{Reason: "silent"}, time.Now())
	if err == nil {
		freed, err = freed.Claim(team.Holder{Agent: "coder-9", Incarnation: 1}, time.Now())
	}
	if err != nil {
		r.t.Fatal(err)
	}
	r.put(freed)
}

// revoke has the hand look at its task, as it does when word comes that it was taken.
func (r *rig) revoke() { _, _ = r.hand.Confirm(r.t.Context(), r.id) }

// damage makes the task's record unreadable.
func (r *rig) damage() {
	r.healthy = r.task()
	r.records.Set(subject.KeyTask(r.id), []byte("{"))
}

func (r *rig) heal() { r.put(r.healthy) }

type rigPost struct{ *rig }

func (r rigPost) Send(_ context.Context, m team.Message) (team.Message, []team.AgentID, error) {
	r.rig.sent = append(r.sent, m)
	return m, []team.AgentID{m.To}, nil
}

type rigHeart struct{ *rig }

func (r rigHeart) Set(f func(*team.Heartbeat)) {
	r.turn.Load()
	f(&r.rig.beat)
	if n := len(r.states); n == 0 || r.states[n-1] != r.beat.State {
		r.rig.states = append(r.states, r.beat.State)
	}
}

func (r rigHeart) Progress() { r.progress.Store(time.Now().UnixNano()) }

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

func (r rigEvents) Emit(ctx context.Context, e team.Event) {
	if r.emits != nil {
		r.emits(ctx, e.Event)
	}
	r.rig.events = append(r.events, e.Event.Type)
}
