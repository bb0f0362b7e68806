package approval_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"agentteam/pkg/store/approval"
	"agentteam/pkg/store/board"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/mailbox"
	"agentteam/pkg/store/roster"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
	"agentteam/pkg/team/codec"
	"agentteam/pkg/tool"
)

// rig is a team with coder-1 in plan mode, as one process sees it.
type rig struct {
	t      *testing.T
	bt     *broker.Storage
	board  *board.Board
	roster *roster.Roster
	plans  *approval.Plans
	post   *post
}

// post notes what is sent, and may be cut off.
type post struct {
	approval.Mailer
	mu   sync.Mutex
	cut  bool
	sent []team.Message
}

func (p *post) Send(ctx context.Context, m team.Message) (team.Message, []team.AgentID, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cut {
		return m, nil, team.Errorf(team.Unavailable, "cut off")
	}
	m, to, err := p.Mailer.Send(ctx, m)
	p.sent = append(p.sent, m)
	return m, to, err
}

func newRig(t *testing.T) *rig {
	t.Helper()
	t.Parallel()
	r := process(t, brokertest.Team(t, "t"))
	if _, err := r.roster.Put(t.Context(), team.Member{AgentID: "coder-1", Role: "coder", State: team.Joined, Incarnation: 1, Backend: team.Pool, PlanMode: true}); err != nil {
		t.Fatal(err)
	}
	return r
}

func process(t *testing.T, bt *broker.Storage) *rig {
	b, members := board.New(bt.Bucket, board.Options{}), roster.New(bt)
	p := &post{Mailer: mailbox.New(bt, mailbox.Options{Members: members})}
	return &rig{t, bt, b, members, approval.New(bt.Bucket, approval.Options{Tasks: b, Members: members, Post: p}), p}
}

// another is a second process, with a connection of its own.
func (r *rig) another() *rig {
	r.t.Helper()
	bt, err := brokertest.Connect(r.t, r.bt.Conn.Server()).Open(r.t.Context(), r.bt.ID)
	if err != nil {
		r.t.Fatal(err)
	}
	return process(r.t, bt)
}

// agent is an incarnation of coder-1 at work.
type agent struct {
	*approval.Gate
	hand *board.ClaimSlot
	t    *testing.T
}

// agent begins an incarnation, which takes over what an earlier one held.
func (r *rig) agent(incarnation uint64, by team.Approver) agent {
	r.t.Helper()
	m := team.Member{AgentID: "coder-1", Role: "coder", Incarnation: incarnation, PlanMode: true, Approver: by}
	hand := board.NewClaimSlot(r.t.Context(), r.board, m.Holder())
	if _, _, err := hand.Adopt(r.t.Context(), ""); err != nil {
		r.t.Fatal(err)
	}
	g, err := r.plans.Gate(r.t.Context(), m, hand)
	if err != nil {
		r.t.Fatal(err)
	}
	return agent{g, hand, r.t}
}

// task adds a task and has the agent claim it.
func (r *rig) task(a agent) team.Task {
	r.t.Helper()
	created, err := r.board.Create(r.t.Context(), team.UserAgent, team.NewTask{Title: "写 code"})
	if err != nil {
		r.t.Fatal(err)
	}
	task, err := a.hand.Claim(r.t.Context(), created[0].ID)
	if err != nil {
		r.t.Fatal(err)
	}
	return task
}

func (a agent) submit(plan string) team.Approval {
	a.t.Helper()
	p, err := a.Submit(a.t.Context(), plan)
	if err != nil {
		a.t.Fatal(err)
	}
	return p
}

// passes checks what the gate says of a call.
func (a agent) passes(when string, want bool) {
	a.t.Helper()
	if err := a.Pass(a.t.Context(), tool.Request{Called: "write_file"}); (err == nil) != want || err != nil && team.CodeOf(err) != team.PermissionDenied {
		a.t.Errorf("%s: %v, want it to pass: %v", when, err, want)
	}
}

// decide is a decision that must be taken.
func (r *rig) decide(id string, d team.Decision) team.Approval {
	r.t.Helper()
	p, err := r.plans.Decide(r.t.Context(), id, d)
	if err != nil {
		r.t.Fatal(err)
	}
	return p
}

func (r *rig) stored(id string) team.Approval {
	r.t.Helper()
	p, err := r.plans.Get(r.t.Context(), id)
	if err != nil {
		r.t.Fatal(err)
	}
	return p
}

// forge writes a record past all rules.
func (r *rig) forge(a team.Approval) {
	r.t.Helper()
	data, err := codec.Encode(a, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	if err := r.bt.Bucket.Set(r.t.Context(), subject.KeyPlan(a.ID), data); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) wants(what string, err error, want team.Code) {
	r.t.Helper()
	if team.CodeOf(err) != want || want == "" && err != nil {
		r.t.Errorf("%s: %v, want %q", what, err, want)
	}
}

var yes = team.Decision{By: team.Leader, Approve: true}

func TestPlanIsApprovedAndUsed(t *testing.T) {
	r := newRig(t)
	a := r.agent(1, "")
	task := r.task(a)
	a.passes("no plan", false)
	first := a.submit("do all at once")
	a.passes("pending", false)
	r.decide(first.ID, team.Decision{By: team.Leader, Feedback: "in two steps"})
	a.passes("rejected", false)
	second := a.submit("first this, then that")
	r.wants("approval of the first plan", failed(r.plans.Decide(t.Context(), first.ID, yes)), team.Conflict)
	a.passes("the second is pending", false)
	if waiting, err := r.plans.Waiting(t.Context()); err != nil || len(waiting) != 1 || waiting[0].ID != second.ID {
		t.Errorf("waiting: %v, %v", waiting, err)
	}
	r.decide(second.ID, yes)
	if got := r.stored(second.ID); got.Status != team.PlanApproved {
		t.Errorf("before the first call it is %s", got.Status)
	}
	a.passes("approved", true)
	if got := r.stored(second.ID); got.Status != team.PlanUsed || got.Task != task.ID || got.PlanHash == "" {
		t.Errorf("after the first call: %+v", got)
	}
	a.passes("used", true)
	if _, err := a.hand.Complete(t.Context(), task.ID, team.Done{Summary: "done"}); err != nil {
		t.Fatal(err)
	}
	a.passes("once the task has ended", false)
	r.task(a)
	a.passes("the next task", false)

	var kinds []string
	for _, m := range r.post.sent {
		kinds = append(kinds, string(m.Type)+" "+string(m.From)+" "+string(m.To)+" "+m.RequestID)
	}
	want := []string{"plan_approval_request coder-1 leader " + first.ID, "plan_approval_response leader coder-1 " + first.ID,
		"plan_approval_request coder-1 leader " + second.ID, "plan_approval_response leader coder-1 " + second.ID}
	if strings.Join(kinds, "\n") != strings.Join(want, "\n") {
		t.Errorf("mail:\n%s\nwant:\n%s", strings.Join(kinds, "\n"), strings.Join(want, "\n"))
	}
	if m := r.post.sent[0]; !strings.Contains(m.Content, "do all at once") || !strings.Contains(m.Content, string(task.ID)) {
		t.Errorf("the approver reads %q", m.Content)
	}
	if m := r.post.sent[1]; m.Approve == nil || *m.Approve || !strings.Contains(m.Content, "in two steps") {
		t.Errorf("the agent reads %q", m.Content)
	}
}

func failed(_ team.Approval, err error) error { return err }

// Without a task an approval is good until the agent goes idle.
func TestWithoutTask(t *testing.T) {
	r := newRig(t)
	a := r.agent(1, "")
	p := a.submit("write a note")
	r.decide(p.ID, yes)
	a.passes("approved", true)
	next := r.agent(2, "") // killed in the middle of its run
	next.passes("after a respawn", true)
	a.passes("the process that was replaced", true) // knows no better: its journal and its lease stop it
	if err := next.Requeue(t.Context()); err != nil {
		t.Fatal(err)
	}
	next.passes("after it was idle", false)
	r.agent(3, "").passes("after it was idle, and a respawn", false)
	if got := r.stored(p.ID); got.Status != team.PlanUsed || got.EndedAt == nil {
		t.Errorf("it stands as %+v", got)
	}
}

// Killed at any point, the next incarnation goes on with what is stored.
func TestKilled(t *testing.T) {
	for _, point := range []string{"submitted", "approved", "used"} {
		t.Run(point, func(t *testing.T) {
			r := newRig(t)
			a := r.agent(1, "")
			r.task(a)
			p := a.submit("plan")
			if point != "submitted" {
				r.decide(p.ID, yes)
			}
			if point == "used" {
				a.passes("approved", true)
			}
			next := r.another().agent(2, "")
			if point == "submitted" {
				next.passes("pending", false)
				r.decide(p.ID, yes)
			}
			next.passes(point, true)
			if got := r.stored(p.ID); got.Status != team.PlanUsed || got.Incarnation != 2 {
				t.Errorf("it stands as %+v", got)
			}
			r.another().agent(3, "").passes("the next but one", true)
		})
	}
}

// Of those that decide at once one wins, and every other is told so.
func TestApproversRace(t *testing.T) {
	r := newRig(t)
	a := r.agent(1, "")
	r.task(a)
	p := a.submit("plan")
	const n = 8
	outcomes := make(chan error, n)
	for i := range n {
		d := team.Decision{By: []team.AgentID{team.Leader, team.UserAgent}[i%2], Approve: i%3 == 0, Feedback: "as I say"}
		terminal := r.another()
		go func() { outcomes <- failed(terminal.plans.Decide(t.Context(), p.ID, d)) }()
	}
	won := 0
	for range n {
		switch err := brokertest.Receive(t, "all have decided", outcomes); {
		case err == nil:
			won++
		case !errors.Is(err, team.Conflict):
			t.Errorf("a loser is told %v", err)
		}
	}
	writes := 0
	err := r.bt.Bucket.Past(t.Context(), 1, func(broker.Entry) error { writes++; return nil }, subject.KeyPlan(p.ID))
	if err != nil || won != 1 || writes != 2 {
		t.Errorf("%d have won, after %d writes, %v", won, writes, err)
	}
}

// An approval is for one plan, one hold of one task and one agent; what is written past the
// rules does not pass.
func TestForged(t *testing.T) {
	r := newRig(t)
	a := r.agent(1, "")
	task := r.task(a)
	old := a.submit("an old plan")
	old = r.decide(old.ID, yes)
	p := a.submit("a new plan")
	a.passes("an approval of an earlier plan", false)

	forged := old
	forged.ID, forged.EndedAt = p.ID, nil
	r.forge(forged)
	a.passes("the old approval under the new id", false)
	forged = p
	forged.Status, forged.DecidedBy = team.PlanApproved, "coder-1"
	r.forge(forged)
	a.passes("approved by itself", false)
	forged = p
	forged.Status, forged.DecidedBy, forged.Plan = team.PlanApproved, team.Leader, "another plan"
	r.forge(forged)
	a.passes("another plan", false)
	forged.Status, forged.DecidedBy = team.PlanPending, ""
	r.forge(forged)
	r.wants("approval of a changed plan", failed(r.plans.Decide(t.Context(), p.ID, yes)), team.Conflict)
	r.forge(p)
	r.wants("approval by the agent itself", failed(r.plans.Decide(t.Context(), p.ID, team.Decision{By: "coder-1", Approve: true})), team.PermissionDenied)
	r.wants("approval by another", failed(r.plans.Decide(t.Context(), p.ID, team.Decision{By: "coder-2", Approve: true})), team.PermissionDenied)
	for _, id := range []string{"", "0123456789abcdef", "../../team", "*", "a.b", strings.Repeat("a", 5000)} {
		r.wants("approval of "+id[:min(len(id), 20)], failed(r.plans.Decide(t.Context(), id, yes)), team.NotFound)
	}

	// The task goes to somebody else while the plan waits.
	if _, err := r.board.Release(t.Context(), task.ID, team.Actor{Holder: team.Holder{Agent: team.Leader, Incarnation: 1}, Leads: true}, 0, team.Freed{Reason: "elsewhere"}); err != nil {
		t.Fatal(err)
	}
	r.wants("approval after the task was given away", failed(r.plans.Decide(t.Context(), p.ID, yes)), team.Conflict)
	if waiting, err := r.plans.Waiting(t.Context()); err != nil || len(waiting) != 0 {
		t.Errorf("still waiting: %v, %v", waiting, err)
	}
}

// An approval stays with the task while nobody else has that, also if the agent loses it with
// its process and claims it again. Once somebody else has held it, the approval is void.
func TestReassigned(t *testing.T) {
	r := newRig(t)
	a := r.agent(1, "")
	task := r.task(a)
	p := a.submit("plan")
	leads := team.Actor{Holder: team.Holder{Agent: team.Leader, Incarnation: 1}, Leads: true}
	free := func() {
		t.Helper()
		if _, err := r.board.Release(t.Context(), task.ID, leads, 0, team.Freed{Reason: "lost"}); err != nil {
			t.Fatal(err)
		}
	}
	claim := func(a agent) {
		t.Helper()
		if _, err := a.hand.Claim(t.Context(), task.ID); err != nil {
			t.Fatal(err)
		}
	}
	free()
	next := r.agent(2, "")
	if err := next.Requeue(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.wants("a decision while nobody has the task", failed(r.plans.Decide(t.Context(), p.ID, yes)), team.Conflict)
	claim(next)
	next.passes("pending, claimed again", false)
	r.decide(p.ID, yes)
	next.passes("approved, claimed again", true)
	free()
	third := r.agent(3, "")
	third.passes("without the task", false)
	claim(third)
	third.passes("used, claimed again", true)
	free()
	if _, err := board.NewClaimSlot(t.Context(), r.board, team.Holder{Agent: "coder-2", Incarnation: 1, Role: "coder"}).Claim(t.Context(), task.ID); err != nil {
		t.Fatal(err)
	}
	free()
	fourth := r.agent(4, "")
	claim(fourth)
	fourth.passes("after somebody else has held it", false)
	r.agent(5, "").passes("the same, after a respawn", false)
}

// A person decides where that is said, and the leader does not.
func TestHumanApprover(t *testing.T) {
	r := newRig(t)
	a := r.agent(1, team.ByHuman)
	p := a.submit("plan")
	if m := r.post.sent[0]; m.To != team.UserAgent {
		t.Errorf("%s is asked", m.To)
	}
	r.wants("the leader", failed(r.plans.Decide(t.Context(), p.ID, yes)), team.PermissionDenied)
	a.passes("after the leader's word", false)
	r.decide(p.ID, team.Decision{By: team.UserAgent, Approve: true})
	a.passes("after a person's word", true)
}

// A decision whose mail is lost is seen in the record.
func TestDecided(t *testing.T) {
	r := newRig(t)
	a := r.agent(1, "")
	p := a.submit("plan")
	seen := make(chan team.Approval, 1)
	go func() {
		got, _ := r.plans.Decided(t.Context(), p.ID)
		seen <- got
	}()
	r.post.mu.Lock()
	r.post.cut = true
	r.post.mu.Unlock()
	r.decide(p.ID, team.Decision{By: team.Leader, Feedback: "no"})
	if got := brokertest.Receive(t, "the decision is seen", seen); got.Status != team.PlanRejected || !strings.Contains(got.Verdict(), "no") {
		t.Errorf("seen: %+v", got)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := r.plans.Decided(ctx, a.submitUnheard(r, "plan").ID); err == nil {
		t.Error("what nobody decides on is decided")
	}
}

// submitUnheard submits while mail is cut off: the plan is stored all the same.
func (a agent) submitUnheard(r *rig, plan string) team.Approval {
	p, err := a.Submit(a.t.Context(), plan)
	r.wants("submit without mail", err, team.Unavailable)
	return p
}

// A damaged record harms that plan only.
func TestDamaged(t *testing.T) {
	r := newRig(t)
	a := r.agent(1, "")
	p := a.submit("plan")
	r.decide(p.ID, yes)
	if err := r.bt.Bucket.Set(t.Context(), subject.KeyPlan(p.ID), []byte("{")); err != nil {
		t.Fatal(err)
	}
	a.passes("damaged", false)
	if all, err := r.plans.List(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("list: %v, %v", all, err)
	}
	next := a.submit("again")
	r.decide(next.ID, yes)
	a.passes("the next plan", true)
}
