package team

import (
	"strings"
	"testing"
	"time"
)

// A task that an agent in plan mode has held, or that was kept for one, stays gated until it has ended, whichever member
// has it next and however it came back; the strictest approver holds.
func TestGateStays(t *testing.T) {
	now := claimedAt
	joe, bob := Holder{Agent: "joe", Incarnation: 1, Gate: ByHuman}, Holder{Agent: "bob", Incarnation: 1}
	free := Task{ID: "T-001", Status: Pending}
	must := func(next Task, err error) Task {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return next
	}
	leader := Actor{Holder: Holder{Agent: Leader}, Leads: true}
	held := must(free.Claim(joe, now))
	if held.Gate != ByHuman || free.Gate != "" || must(free.Claim(bob, now)).Gate != "" {
		t.Errorf("claimed in plan mode: %q", held.Gate)
	}
	for name, back := range map[string]Task{
		"released":           must(held.Release(Actor{Holder: joe}, 0, Freed{}, now)),
		"kept for it":        must(held.Release(Actor{Holder: joe}, 0, Freed{Keep: true}, now)),
		"taken by a person":  must(held.Release(Actor{Holder: Holder{Agent: UserAgent}, Leads: true}, 0, Freed{}, now)),
		"reaped":             must(held.Reap(Freed{Attempt: true}, now)),
		"given back":         must(held.GiveBack(joe, held.Epoch, GiveBack{Freed: Freed{Reason: "too hard"}}, now)),
		"adopted":            must(must(held.Adopt(Holder{Agent: "joe", Incarnation: 2, Gate: ByHuman}, true, now)).Reap(Freed{}, now)),
		"its check failed":   must(must(held.FailCheck(joe, 0, Freed{Reason: "no"}, now)).Reap(Freed{}, now)),
		"reserved for joe":   must(free.Gated(joe.Gate).Reserve("joe", leader, now)),
		"for joe, then none": must(must(free.Gated(joe.Gate).Reserve("joe", leader, now)).Reserve("", leader, now)),
	} {
		if back.ReservedFor != "" {
			back = must(back.Reserve("", leader, now))
		}
		if got := must(back.Claim(bob, now)); got.Gate != ByHuman {
			t.Errorf("%s, then claimed by a plain member: the gate is %q", name, got.Gate)
		}
		if got := must(back.Claim(Holder{Agent: "mia", Incarnation: 1, Gate: ByLeader}, now)); got.Gate != ByHuman {
			t.Errorf("%s, then claimed by one whose plans the leader approves: the gate is %q", name, got.Gate)
		}
	}
	order := Assignment{Task: "T-001", By: UserAgent, Take: true, Epoch: held.Epoch}
	if got := must(held.Assign(bob, order, now)); got.Gate != ByHuman {
		t.Errorf("taken for a plain member: the gate is %q", got.Gate)
	}
	plain := must(free.Claim(bob, now))
	order.Epoch = plain.Epoch
	if got := must(plain.Assign(joe, order, now)); got.Gate != ByHuman {
		t.Errorf("taken for one in plan mode: the gate is %q", got.Gate)
	}
	if got := must(held.Complete(joe, 0, Done{Summary: "done"}, now)); got.Status != Completed {
		t.Errorf("%s", got.Status)
	}
}

// The leader submits no plan, so it holds no task that needs one; a person needs none.
func TestGateOfLeaderAndPerson(t *testing.T) {
	gated := Task{ID: "T-001", Status: Pending, Gate: ByLeader}
	lead, seat := Holder{Agent: Leader, Incarnation: 3}, Holder{Agent: "ann"}
	if _, err := gated.Claim(lead, claimedAt); CodeOf(err) != PermissionDenied || !strings.Contains(HintOf(err), "teammate") {
		t.Errorf("the leader claims it: %v", err)
	}
	held := gated
	held.Status, held.Assignee, held.Incarnation, held.Epoch = InProgress, "joe", 1, 4
	if next, err := held.Assign(lead, Assignment{Take: true, Epoch: 4}, claimedAt); CodeOf(err) != PermissionDenied || next.Assignee != "joe" {
		t.Errorf("the leader takes it: %v, %s holds it", err, next.Assignee)
	}
	if got, err := gated.Claim(seat, claimedAt); err != nil || got.Gate != ByLeader {
		t.Errorf("a person claims it: %v, the gate is %q", err, got.Gate)
	}
	if got := (Member{AgentID: "ann", Backend: Person, PlanMode: true}).Gate(gated); got != "" {
		t.Errorf("a person needs a plan of %q", got)
	}
}

func TestGateOfMember(t *testing.T) {
	for name, tt := range map[string]struct {
		m    Member
		task Task
		want Approver
	}{
		"plain":                                  {Member{}, Task{}, ""},
		"plain, with a strict approver":          {Member{Approver: ByHuman}, Task{}, ""},
		"plain, with a task that needs one":      {Member{}, Task{ID: "T-001", Gate: ByLeader}, ByLeader},
		"the same, and only a person approves":   {Member{Approver: ByHuman}, Task{ID: "T-001", Gate: ByLeader}, ByHuman},
		"in plan mode":                           {Member{PlanMode: true}, Task{}, ByLeader},
		"in plan mode, a person approves":        {Member{PlanMode: true, Approver: ByHuman}, Task{}, ByHuman},
		"in plan mode, a person for the task":    {Member{PlanMode: true}, Task{ID: "T-001", Gate: ByHuman}, ByHuman},
		"a person for it, the leader for a task": {Member{PlanMode: true, Approver: ByHuman}, Task{ID: "T-001", Gate: ByLeader}, ByHuman},
	} {
		if got := tt.m.Gate(tt.task); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// A plan that waits is the next holder's under another id, which is the same each time, and names its author.
func TestAgain(t *testing.T) {
	a := submitted(t, planned, ByLeader)
	later := claimedAt.Add(time.Hour)
	h, task := Holder{Agent: "coder-2", Incarnation: 1}, Task{ID: "T-001", Status: InProgress, Assignee: "coder-2", Incarnation: 1, ClaimedAt: &later}
	b, err := a.Again(h, task, ByHuman)
	if err != nil || b.ID == a.ID || b.Plan != a.Plan || b.PlanHash != a.PlanHash || !b.Intact() || b.Author != "coder-1" || b.AgentID != "coder-2" || b.Asks() != UserAgent || !b.IsFor(task) {
		t.Errorf("submitted again: %+v, %v", b, err)
	}
	if twice, _ := a.Again(h, task, ByHuman); twice.ID != b.ID {
		t.Errorf("a second time it is %s, not %s", twice.ID, b.ID)
	}
	if c, _ := b.Again(Holder{Agent: "coder-3", Incarnation: 1}, task, ByHuman); c.Author != "coder-1" || c.ID == b.ID {
		t.Errorf("of a third holder: %+v", c)
	}
	if own, _ := b.Again(Holder{Agent: "coder-1", Incarnation: 3}, task, ByHuman); own.Author != "" {
		t.Errorf("of its author: %+v", own)
	}
	if _, err := b.Decide(Decision{By: Leader, Approve: true}, "", later); CodeOf(err) != PermissionDenied {
		t.Errorf("the leader decides in place of a person: %v", err)
	}
}

func TestPlanNote(t *testing.T) {
	own := submitted(t, planned, ByHuman)
	with := func(f func(*Approval)) Approval {
		a := own
		f(&a)
		return a
	}
	for name, tt := range map[string]struct {
		gate  Approver
		a     Approval
		here  bool
		want  string
		shown bool
	}{
		"no gate":              {"", own, true, "", false},
		"no plan":              {ByHuman, Approval{}, false, "a person has to approve your plan. Read what you need to know, then call submit_plan.", false},
		"it waits":             {ByLeader, own, true, "Your plan " + own.ID + " for this task still waits for the decision of user.", true},
		"another's waits":      {ByLeader, with(func(a *Approval) { a.Author = "joe" }), true, "The plan of joe for this task is submitted again in your name", true},
		"rejected":             {ByLeader, with(func(a *Approval) { a.Status, a.Feedback = PlanRejected, "smaller" }), false, "was rejected: smaller", true},
		"approved for another": {ByLeader, with(func(a *Approval) { a.Status = PlanApproved }), false, "does not count for you", true},
		"used by another":      {ByLeader, with(func(a *Approval) { a.Status = PlanUsed }), false, "does not count for you", true},
		"approved":             {ByLeader, with(func(a *Approval) { a.Status = PlanUsed }), true, "is approved. Carry it out", true},
	} {
		if note, shown := tt.a.Note(tt.gate, tt.here); !strings.Contains(note, tt.want) || (note == "") != (tt.want == "") || shown != tt.shown {
			t.Errorf("%s: %q, shown %v", name, note, shown)
		}
	}
}
