package approval_test

import (
	"errors"
	"strings"
	"testing"

	"agentteam/pkg/store/board"
	"agentteam/pkg/team"
	"agentteam/pkg/tool"
)

// member begins an incarnation of a member, which takes over what an earlier one held.
func (r *rig) member(m team.Member) agent {
	r.t.Helper()
	m.Role, m.State, m.Backend = "coder", team.Joined, team.Pool
	if old, err := r.roster.Get(r.t.Context(), m.AgentID); err == nil {
		m.Revision = old.Revision
	}
	stored, err := r.roster.Put(r.t.Context(), m)
	if err != nil {
		r.t.Fatal(err)
	}
	hand := board.NewClaimSlot(r.t.Context(), r.board, stored.Holder())
	if _, _, err := hand.Adopt(r.t.Context(), ""); err != nil {
		r.t.Fatal(err)
	}
	g, err := r.plans.Gate(r.t.Context(), stored, hand)
	if err != nil {
		r.t.Fatal(err)
	}
	return agent{g, hand, r.t}
}

// joe is in plan mode, and a person approves his plans; bob is plain.
func (r *rig) joe(incarnation uint64) agent {
	return r.member(team.Member{AgentID: "joe", Incarnation: incarnation, PlanMode: true, Approver: team.ByHuman})
}

func (r *rig) bob(incarnation uint64) agent {
	return r.member(team.Member{AgentID: "bob", Incarnation: incarnation})
}

// moves frees the task and has another member claim it.
func (r *rig) moves(id team.TaskID, to agent) team.Task {
	r.t.Helper()
	leads := team.Actor{Holder: team.Holder{Agent: team.Leader, Incarnation: 1}, Leads: true}
	if _, err := r.board.Release(r.t.Context(), id, leads, 0, team.Freed{Reason: "lost"}); err != nil {
		r.t.Fatal(err)
	}
	task, err := to.hand.Claim(r.t.Context(), id)
	if err != nil {
		r.t.Fatal(err)
	}
	return task
}

// taken is what the holder of a task reads of its plan.
func (a agent) taken(task team.Task) (string, team.Approval) {
	a.t.Helper()
	note, plan, err := a.Taken(a.t.Context(), task)
	if err != nil {
		a.t.Fatal(err)
	}
	return note, plan
}

// waits checks that a call is refused, and that the agent waits for a decision on its plan.
func (a agent) waits(when string) (plan string) {
	a.t.Helper()
	err := a.Pass(a.t.Context(), tool.Request{Called: "bash"})
	w := tool.EffectsOf(err).Await
	if team.CodeOf(err) != team.PermissionDenied || w == nil || w.Permission {
		a.t.Fatalf("%s: %v, it waits for %+v", when, err, w)
	}
	return w.Plan
}

// A plain member that takes a task from one in plan mode changes nothing before a person has approved; the plan that
// waits is submitted again in its name, once, and an approval of the old one comes too late.
func TestPlainMemberOfGatedTask(t *testing.T) {
	r := newRig(t)
	joe := r.joe(1)
	task := r.task(joe)
	if task.Gate != team.ByHuman {
		t.Fatalf("joe has claimed it, and its gate is %q", task.Gate)
	}
	p := joe.submit("delete the lexer")
	bob := r.bob(1)
	bob.passes("bob, without a task", true)
	task = r.moves(task.ID, bob)
	note, plan := bob.taken(task)
	if plan.Plan != p.Plan || plan.AgentID != "bob" || plan.Author != "joe" || plan.Status != team.PlanPending || plan.Approver != team.ByHuman || !strings.Contains(note, "of joe for this task is submitted again in your name") {
		t.Errorf("bob reads %q of %+v", note, plan)
	}
	if w := bob.waits("before a decision"); w != plan.ID {
		t.Errorf("he waits for %s, not for %s", w, plan.ID)
	}
	if _, again := bob.taken(task); again.ID != plan.ID {
		t.Errorf("a second look submits %s", again.ID)
	}
	if old := r.stored(p.ID); old.EndedAt == nil || old.Status != team.PlanPending {
		t.Errorf("the old one stands as %+v", old)
	}
	if waiting, err := r.plans.Waiting(t.Context()); err != nil || len(waiting) != 1 || waiting[0].ID != plan.ID {
		t.Errorf("waiting: %v, %v", waiting, err)
	}
	last := r.post.sent[len(r.post.sent)-1]
	if len(r.post.sent) != 2 || last.To != team.UserAgent || last.From != "bob" || last.RequestID != plan.ID || !strings.Contains(last.Content, "for T-001 (写 code), which joe had submitted before bob took the task, and changes nothing before.") || !strings.Contains(last.Content, "delete the lexer") {
		t.Errorf("mail: %+v", r.post.sent)
	}
	r.wants("a decision on the old one", failed(r.plans.Decide(t.Context(), p.ID, user(""))), team.Conflict)
	r.wants("the leader", failed(r.plans.Decide(t.Context(), plan.ID, yes)), team.PermissionDenied)
	bob.passes("after the leader's word", false)
	r.decide(plan.ID, user(""))
	bob.passes("approved", true)
	joe.passes("joe, by the approval of bob", false)
	if _, err := bob.hand.Complete(t.Context(), task.ID, team.Done{Summary: "done"}); err != nil {
		t.Fatal(err)
	}
	bob.passes("once it has ended", true)
	if next := r.task(bob); next.Gate != "" {
		t.Errorf("bob's next task has the gate %q", next.Gate)
	}
	bob.passes("with the next task", true)
}

// Killed at any step between the claim and the gate, a plain member's successor finds the gate closed and the plan waiting
// under the same id, and no person is asked twice.
func TestKilledBetweenClaimAndGate(t *testing.T) {
	for _, step := range []string{"claimed", "stored", "ended"} {
		t.Run(step, func(t *testing.T) {
			r := newRig(t)
			joe := r.joe(1)
			joe.submit("before a task") // of no task: it is not taken for that of one
			task := r.task(joe)
			p := joe.submit("rewrite it")
			bob := r.bob(1)
			task = r.moves(task.ID, bob)
			if step == "stored" { // and the old one has not ended
				again, err := p.Again(team.Holder{Agent: "bob", Incarnation: 1}, task, team.ByHuman)
				if err != nil {
					t.Fatal(err)
				}
				again.V = team.Protocol
				r.forge(again)
			}
			if step == "ended" {
				bob.taken(task)
			}
			next := r.another()
			successor := next.bob(2)
			held, ok := successor.hand.Task()
			if !ok || held.Gate != team.ByHuman {
				t.Fatalf("the successor holds %+v", held)
			}
			plan := successor.waits("the successor, before it has looked")
			if _, shown := successor.taken(held); shown.ID != plan || shown.Plan != "rewrite it" {
				t.Errorf("it is shown %+v, and waits for %s", shown, plan)
			}
			if waiting, err := r.plans.Waiting(t.Context()); err != nil || len(waiting) != 1 || waiting[0].ID != plan {
				t.Errorf("waiting: %v, %v", waiting, err)
			}
			if asked := len(r.post.sent) + len(next.post.sent); step == "ended" && asked != 3 {
				t.Errorf("%d messages", asked)
			}
			r.decide(plan, user(""))
			successor.passes("approved", true)
		})
	}
}

// An approval is for the agent that it was given to: for the next holder it does not count, unused or used, and the plan
// is shown; nor does one count that the leader has given, once a person is to approve.
func TestApprovalLapses(t *testing.T) {
	for name, used := range map[string]bool{"unused": false, "used": true} {
		t.Run(name, func(t *testing.T) { approvalLapses(t, used) })
	}
}

func approvalLapses(t *testing.T, used bool) {
	r := newRig(t)
	joe := r.joe(1)
	task := r.task(joe)
	p := joe.submit("in two steps")
	r.decide(p.ID, user(""))
	if used {
		joe.passes("joe", true)
	}
	bob := r.bob(1)
	task = r.moves(task.ID, bob)
	note, plan := bob.taken(task)
	if !strings.Contains(note, "does not count for you") || plan.ID != p.ID || plan.Plan != "in two steps" {
		t.Errorf("used %v: bob reads %q of %+v", used, note, plan)
	}
	bob.passes("by joe's approval", false)
	r.decide(bob.submit("in two steps").ID, user(""))
	bob.passes("by his own", true)
	task = r.moves(task.ID, joe)
	if note, _ := joe.taken(task); !strings.Contains(note, "does not count for you") {
		t.Errorf("joe, who has it back, reads %q", note)
	}
	joe.passes("joe, after bob has held it", false)
}

func TestRejectedPlanGoesAlong(t *testing.T) {
	r := newRig(t)
	joe := r.joe(1)
	task := r.task(joe)
	r.decide(joe.submit("all at once").ID, team.Decision{By: team.UserAgent, Feedback: "not the schema"})
	bob := r.bob(1)
	task = r.moves(task.ID, bob)
	if note, plan := bob.taken(task); !strings.Contains(note, "was rejected: not the schema") || plan.Plan != "all at once" {
		t.Errorf("bob reads %q of %+v", note, plan)
	}
	bob.passes("after a rejection", false)
}

// A member in plan mode whose plans the leader approves needs a person's approval for a task that one needs, also for a
// plan that the leader had approved before.
func TestStricterApprover(t *testing.T) {
	r := newRig(t)
	mia := r.member(team.Member{AgentID: "mia", Incarnation: 1, PlanMode: true})
	task := r.task(mia)
	waits := mia.submit("in three steps")
	leads := team.Actor{Holder: team.Holder{Agent: team.Leader, Incarnation: 1}, Leads: true}
	if _, err := r.board.Release(t.Context(), task.ID, leads, 0, team.Freed{}); err != nil {
		t.Fatal(err)
	}
	r.joe(1)
	for _, member := range []team.AgentID{"joe", ""} { // kept for one whose plans a person approves
		if _, err := r.board.Reserve(t.Context(), task.ID, member, leads); err != nil {
			t.Fatal(err)
		}
	}
	task, err := mia.hand.Claim(t.Context(), task.ID)
	if err != nil || task.Gate != team.ByHuman {
		t.Fatalf("mia has it again: %v, its gate is %q", err, task.Gate)
	}
	_, plan := mia.taken(task)
	if plan.ID == waits.ID || plan.Approver != team.ByHuman || plan.Author != "" || plan.Plan != waits.Plan {
		t.Errorf("her plan waits as %+v", plan)
	}
	r.wants("the leader, on the first", failed(r.plans.Decide(t.Context(), waits.ID, yes)), team.Conflict)
	mia.passes("after that", false)
	r.decide(plan.ID, user(""))
	mia.passes("a person has approved", true)
}

// A task that is created for a member in plan mode is gated from then on.
func TestCreatedForPlanner(t *testing.T) {
	r := newRig(t)
	r.joe(1)
	r.bob(1)
	created, err := r.board.Create(t.Context(), team.UserAgent, team.NewTask{Title: "A", ReservedFor: "joe"}, team.NewTask{Title: "B", ReservedFor: "bob"}, team.NewTask{Title: "C", ReservedFor: "carol"}, team.NewTask{Title: "D"})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []team.Approver{team.ByHuman, "", "", ""} {
		if created[i].Gate != want {
			t.Errorf("%s for %q has the gate %q", created[i].ID, created[i].ReservedFor, created[i].Gate)
		}
	}
}

// A member that needs no plan is refused one, with what to do.
func TestNoPlanNeeded(t *testing.T) {
	r := newRig(t)
	bob := r.bob(1)
	_, err := bob.Submit(t.Context(), "a plan")
	if !errors.Is(err, team.InvalidState) || team.HintOf(err) == "" {
		t.Errorf("without a task: %v", err)
	}
	r.task(bob)
	if _, err = bob.Submit(t.Context(), "a plan"); !errors.Is(err, team.InvalidState) || !strings.Contains(err.Error(), "T-001 needs none") {
		t.Errorf("with one: %v", err)
	}
	if all, err := r.plans.List(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("submitted: %v, %v", all, err)
	}
}
