package team_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"agentteam/pkg/team"
)

var (
	at  = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	ann = team.Holder{Agent: "coder-1", Incarnation: 2, Role: "coder"}
	bob = team.Holder{Agent: "tester-1", Incarnation: 1, Role: "tester"}

	annActs = team.Actor{Holder: ann}
	leader  = team.Actor{Holder: team.Holder{Agent: team.Leader}, Leads: true}
)

func pending() team.Task { return team.NewTask{Title: "Build it"}.Task("T-001", "leader", at) }

func must(t *testing.T) func(team.Task, error) team.Task {
	return func(task team.Task, err error) team.Task {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return task
	}
}

// inEach returns a task in each status, all but the pending one held, at the end
// or still, by ann.
func inEach(t *testing.T) map[team.TaskStatus]team.Task {
	held := must(t)(pending().Claim(ann, at))
	return map[team.TaskStatus]team.Task{
		team.Pending:    pending(),
		team.InProgress: held,
		team.Completed:  must(t)(held.Complete(ann, held.Epoch, team.Done{Summary: "done"}, at)),
		team.Failed:     must(t)(held.Fail(annActs, held.Epoch, team.Freed{Reason: "cannot"}, at)),
		team.Cancelled:  must(t)(held.Cancel(leader, "not needed", at)),
	}
}

// outcome is what an operation leads to: a status, or a code.
type outcome any

func TestTransitions(t *testing.T) {
	const (
		pending, working, completed, failed, cancelled = team.Pending, team.InProgress, team.Completed, team.Failed, team.Cancelled

		conflict, invalid, denied = team.Conflict, team.InvalidState, team.PermissionDenied
	)
	order := []team.TaskStatus{pending, working, completed, failed, cancelled}
	later := team.Holder{Agent: ann.Agent, Incarnation: ann.Incarnation + 1}
	for name, op := range map[string]struct {
		do   func(team.Task) (team.Task, error)
		want []outcome // from each status, in order
	}{
		"claim by another": {
			func(t team.Task) (team.Task, error) { return t.Claim(bob, at) },
			[]outcome{working, conflict, conflict, invalid, invalid}},
		"claim again": {
			func(t team.Task) (team.Task, error) { return t.Claim(ann, at) },
			[]outcome{working, conflict, conflict, invalid, invalid}},
		"adopt by the next incarnation": {
			func(t team.Task) (team.Task, error) { return t.Adopt(later, false, at) },
			[]outcome{invalid, working, invalid, invalid, invalid}},
		"adopt by the same incarnation": {
			func(t team.Task) (team.Task, error) { return t.Adopt(ann, false, at) },
			[]outcome{invalid, invalid, invalid, invalid, invalid}},
		"adopt by another": {
			func(t team.Task) (team.Task, error) {
				return t.Adopt(team.Holder{Agent: "tester-1", Incarnation: 9}, false, at)
			},
			[]outcome{invalid, invalid, invalid, invalid, invalid}},
		"complete by the holder": {
			func(t team.Task) (team.Task, error) { return t.Complete(ann, t.Epoch, team.Done{Summary: "done"}, at) },
			[]outcome{denied, completed, invalid, invalid, invalid}},
		"complete by one who never held it": {
			func(t team.Task) (team.Task, error) { return t.Complete(bob, 0, team.Done{Summary: "done"}, at) },
			[]outcome{denied, denied, invalid, invalid, invalid}},
		"fail by the holder": {
			func(t team.Task) (team.Task, error) {
				return t.Fail(annActs, t.Epoch, team.Freed{Reason: "cannot"}, at)
			},
			[]outcome{denied, failed, invalid, invalid, invalid}},
		"fail by the leader": {
			func(t team.Task) (team.Task, error) { return t.Fail(leader, 0, team.Freed{Reason: "hopeless"}, at) },
			[]outcome{invalid, failed, invalid, invalid, invalid}},
		"release by the holder": {
			func(t team.Task) (team.Task, error) { return t.Release(annActs, t.Epoch, team.Freed{}, at) },
			[]outcome{denied, pending, invalid, invalid, invalid}},
		"release by the leader": {
			func(t team.Task) (team.Task, error) { return t.Release(leader, 0, team.Freed{}, at) },
			[]outcome{invalid, pending, invalid, invalid, invalid}},
		"reserve by the leader": {
			func(t team.Task) (team.Task, error) { return t.Reserve(bob.Agent, leader, at) },
			[]outcome{pending, conflict, invalid, invalid, invalid}},
		"reserve by another": {
			func(t team.Task) (team.Task, error) { return t.Reserve(ann.Agent, annActs, at) },
			[]outcome{denied, denied, denied, denied, denied}},
		"reap": {
			func(t team.Task) (team.Task, error) { return t.Reap(team.Freed{Reason: "silent", Attempt: true}, at) },
			[]outcome{invalid, pending, invalid, invalid, invalid}},
		"cancel by the leader": {
			func(t team.Task) (team.Task, error) { return t.Cancel(leader, "", at) },
			[]outcome{cancelled, cancelled, invalid, invalid, invalid}},
		"cancel by the holder": {
			func(t team.Task) (team.Task, error) { return t.Cancel(annActs, "", at) },
			[]outcome{denied, denied, denied, denied, denied}},
	} {
		t.Run(name, func(t *testing.T) {
			from := inEach(t)
			for i, status := range order {
				before := from[status]
				after, err := op.do(before)
				switch want := op.want[i].(type) {
				case team.TaskStatus:
					if err != nil || after.Status != want {
						t.Errorf("from %s: %s, %v, want %s", status, after.Status, err, want)
					}
				case team.Code:
					if team.CodeOf(err) != want {
						t.Errorf("from %s: %v (%s), want %s", status, err, team.CodeOf(err), want)
					}
					if !reflect.DeepEqual(after, before) {
						t.Errorf("from %s: refused, and yet the task changed", status)
					}
				}
			}
		})
	}
}

// An adoption from one that was lost at work is an attempt, and the last fails the task.
func TestAdoptAfterLoss(t *testing.T) {
	held := must(t)(pending().Claim(ann, at))
	for n := 1; n < team.MaxAttempts; n++ {
		held = must(t)(held.Adopt(team.Holder{Agent: ann.Agent, Incarnation: held.Incarnation + 1}, true, at))
		if held.Status != team.InProgress || held.Attempts != n {
			t.Fatalf("adopted %d times it is %s after %d attempts", n, held.Status, held.Attempts)
		}
	}
	last := must(t)(held.Adopt(team.Holder{Agent: ann.Agent, Incarnation: held.Incarnation + 1}, true, at))
	if last.Status != team.Failed || last.Attempts != team.MaxAttempts || last.Epoch != held.Epoch+1 {
		t.Errorf("after the last attempt it is %+v", last)
	}
}

// Only the incarnation and epoch of the claim may write: one who held the task
// before is told conflict, one who never did permission_denied.
func TestFence(t *testing.T) {
	epoch5 := pending()
	epoch5.Epoch = 4
	held := must(t)(epoch5.Claim(ann, at))
	reaped := must(t)(held.Reap(team.Freed{Reason: "silent"}, at))
	moved := must(t)(reaped.Claim(bob, at))
	done := must(t)(moved.Complete(bob, moved.Epoch, team.Done{Summary: "done"}, at))
	former := team.Holder{Agent: ann.Agent, Incarnation: ann.Incarnation - 1}
	adopted := must(t)(held.Adopt(team.Holder{Agent: ann.Agent, Incarnation: ann.Incarnation + 1}, false, at))

	for name, tt := range map[string]struct {
		task  team.Task
		by    team.Holder
		epoch uint64
		want  team.Code
	}{
		"the holder":                               {held, ann, 5, ""},
		"the holder, which forgot its epoch":       {held, ann, 0, ""},
		"the holder, under an epoch before":        {held, ann, 3, team.Conflict},
		"a superseded incarnation":                 {held, former, 4, team.Conflict},
		"a superseded incarnation without epoch":   {held, former, 0, team.Conflict},
		"another that held it once":                {held, bob, 2, team.Conflict},
		"another that never held it":               {held, bob, 0, team.PermissionDenied},
		"adopted from it":                          {adopted, ann, 5, team.Conflict},
		"taken from it":                            {reaped, ann, 5, team.Conflict},
		"taken from it, without epoch":             {reaped, ann, 0, team.Conflict},
		"taken from somebody else":                 {reaped, bob, 0, team.PermissionDenied},
		"taken from it and given to another":       {moved, ann, 5, team.Conflict},
		"taken from it and completed by another":   {done, ann, 5, team.Conflict},
		"completed by itself":                      {done, bob, 6 + 1, team.InvalidState},
		"completed, by another that never held it": {done, team.Holder{Agent: "x"}, 0, team.InvalidState},
	} {
		t.Run(name, func(t *testing.T) {
			actor := team.Actor{Holder: tt.by}
			_, complete := tt.task.Complete(tt.by, tt.epoch, team.Done{Summary: "done"}, at)
			_, fail := tt.task.Fail(actor, tt.epoch, team.Freed{Reason: "cannot"}, at)
			_, release := tt.task.Release(actor, tt.epoch, team.Freed{}, at)
			for op, err := range map[string]error{"complete": complete, "fail": fail, "release": release} {
				if team.CodeOf(err) != tt.want {
					t.Errorf("%s: %v (%s), want %q", op, err, team.CodeOf(err), tt.want)
				}
			}
		})
	}
}

func TestClaim(t *testing.T) {
	task := pending()
	task.Reason, task.Epoch = "released", 7
	got := must(t)(task.Claim(ann, at))
	if got.Assignee != ann.Agent || got.Incarnation != ann.Incarnation || got.Epoch != 8 || got.Reason != "" || !got.ClaimedAt.Equal(at) {
		t.Errorf("claimed = %+v", got)
	}
	if !got.HeldBy(ann) || got.HeldBy(bob) || got.HeldBy(team.Holder{Agent: ann.Agent, Incarnation: 1}) {
		t.Error("HeldBy: only the claiming incarnation holds it")
	}

	task.Role = "tester"
	if _, err := task.Claim(ann, at); team.CodeOf(err) != team.PermissionDenied {
		t.Errorf("another role: %v, want permission_denied", err)
	}
	for _, h := range []team.Holder{bob, {Agent: "guest"}} { // the role itself; one without a role (assigned, or a seat)
		if _, err := task.Claim(h, at); err != nil {
			t.Errorf("claim by %+v: %v", h, err)
		}
	}
}

// An order that its author has given up is refused, at the epoch that it names too.
func TestLateOrder(t *testing.T) {
	order := team.Assignment{Task: "T-001", By: team.Leader, Take: true, Until: at}
	if _, err := pending().Assign(ann, order, at.Add(time.Millisecond)); team.CodeOf(err) != team.Conflict || !strings.Contains(err.Error(), "came too late") || team.HintOf(err) == "" {
		t.Errorf("a late order: %v", err)
	}
	if task := must(t)(pending().Assign(ann, order, at)); !task.HeldBy(ann) {
		t.Errorf("an order in time: %+v", task)
	}
}

// A task that is reserved is had by that member, whatever its role, and by nobody else,
// also not by an order from before. The claim ends the reservation, and so does whoever leads.
func TestReserved(t *testing.T) {
	task := pending()
	task.Role = bob.Role
	task = must(t)(task.Reserve(ann.Agent, leader, at.Add(1)))
	if task.ReservedFor != ann.Agent || task.UpdatedBy != team.Leader || task.Epoch != 0 {
		t.Errorf("reserved = %+v", task)
	}
	if again := must(t)(task.Reserve(ann.Agent, leader, at.Add(2))); !reflect.DeepEqual(again, task) {
		t.Errorf("reserved again = %+v", again)
	}
	for what, do := range map[string]func() (team.Task, error){
		"claim":          func() (team.Task, error) { return task.Claim(bob, at) },
		"an old order":   func() (team.Task, error) { return task.Assign(bob, team.Assignment{By: "user", Take: true}, at) },
		"a person's own": func() (team.Task, error) { return task.Claim(team.Holder{Agent: "erin"}, at) },
	} {
		if _, err := do(); team.CodeOf(err) != team.Conflict || !strings.Contains(err.Error(), "reserved for coder-1") || team.HintOf(err) == "" {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, a := range []team.Actor{annActs, {Holder: bob}} { // a late write of a former holder must not
		if _, err := task.Release(a, 0, team.Freed{}, at); err == nil {
			t.Errorf("%s ends it", a.Agent)
		}
	}
	for what, after := range map[string]team.Task{
		"claimed":    must(t)(task.Claim(ann, at)),
		"assigned":   must(t)(task.Assign(ann, team.Assignment{By: "user"}, at)),
		"cancelled":  must(t)(task.Cancel(leader, "", at)),
		"taken back": must(t)(task.Release(leader, 0, team.Freed{}, at)),
	} {
		if after.ReservedFor != "" {
			t.Errorf("%s: it is still reserved for %s", what, after.ReservedFor)
		}
	}
	if free := must(t)(task.Reserve("", leader, at)); free.Status != team.Pending || free.Attempts != 0 || free.Epoch != 0 {
		t.Errorf("anybody's again = %+v", free)
	}
	moved := must(t)(task.Reserve("coder-2", leader, at))
	if _, err := moved.Claim(ann, at); team.CodeOf(err) != team.Conflict {
		t.Errorf("claimed by whom it was reserved for before: %v", err)
	}
}

// What its holder lost without its doing is reserved for it, until it is claimed, ended, or given to another; what was
// put back by its holder, taken away, or failed is reserved for no member.
func TestKeptForItsHolder(t *testing.T) {
	held := must(t)(pending().Claim(ann, at))
	stopped := team.Freed{Reason: "its process was stopped", Keep: true}
	for name, task := range map[string]team.Task{
		"released": must(t)(held.Release(annActs, held.Epoch, stopped, at)),
		"reaped":   must(t)(held.Reap(stopped, at)),
	} {
		if task.ReservedFor != ann.Agent || !task.Lapses || task.Status != team.Pending {
			t.Errorf("%s: %+v", name, task)
		}
		if _, err := task.Claim(bob, at); team.CodeOf(err) != team.Conflict {
			t.Errorf("%s: another claims it: %v", name, err)
		}
		for what, after := range map[string]team.Task{
			"claimed by its holder": must(t)(task.Claim(team.Holder{Agent: ann.Agent, Incarnation: 9}, at)),
			"tasks release":         must(t)(task.Release(leader, 0, team.Freed{}, at)),
			"cancelled":             must(t)(task.Cancel(leader, "", at)),
		} {
			if after.ReservedFor != "" || after.Lapses {
				t.Errorf("%s, %s: %+v", name, what, after)
			}
		}
		for _, a := range []team.AgentID{bob.Agent, ann.Agent} { // by the leader's word it does not lapse
			if given := must(t)(task.Reserve(a, leader, at)); given.ReservedFor != a || given.Lapses {
				t.Errorf("%s, given to %s: %+v", name, a, given)
			}
		}
	}
	for name, task := range map[string]team.Task{
		"put back":         must(t)(held.Release(annActs, held.Epoch, team.Freed{Reason: "no compiler"}, at)),
		"cannot be done":   must(t)(held.GiveBack(ann, held.Epoch, team.GiveBack{Freed: stopped}, at)),
		"taken away":       must(t)(held.Release(leader, 0, team.Freed{}, at)),
		"the last attempt": must(t)(attempts(held, team.MaxAttempts-1).Reap(team.Freed{Keep: true, Attempt: true}, at)),
	} {
		if task.ReservedFor != "" || task.Lapses {
			t.Errorf("%s: reserved for %q", name, task.ReservedFor)
		}
	}
}

func attempts(t team.Task, n int) team.Task {
	t.Attempts = n
	return t
}

// Whoever is refused is told what to do.
func TestRefusalsHaveHints(t *testing.T) {
	title, done := "x", team.Done{Summary: "done"}
	for name, do := range map[string]func(team.Task) (team.Task, error){
		"claim":    func(t team.Task) (team.Task, error) { return t.Claim(bob, at) },
		"adopt":    func(t team.Task) (team.Task, error) { return t.Adopt(ann, false, at) },
		"complete": func(t team.Task) (team.Task, error) { return t.Complete(bob, 0, done, at) },
		"fail":     func(t team.Task) (team.Task, error) { return t.Fail(leader, 0, team.Freed{}, at) },
		"release":  func(t team.Task) (team.Task, error) { return t.Release(leader, 0, team.Freed{}, at) },
		"reap":     func(t team.Task) (team.Task, error) { return t.Reap(team.Freed{}, at) },
		"cancel":   func(t team.Task) (team.Task, error) { return t.Cancel(leader, "", at) },
		"reserve":  func(t team.Task) (team.Task, error) { return t.Reserve("coder-1", leader, at) },
		"edit":     func(t team.Task) (team.Task, error) { return team.Edit{Title: &title}.Apply(t, "user", at) },
	} {
		for status, task := range inEach(t) {
			if _, err := do(task); err != nil && team.HintOf(err) == "" {
				t.Errorf("%s of a task that is %s: %v, without a hint", name, status, err)
			}
		}
	}
	for name, tasks := range map[string][]team.NewTask{
		"none": {}, "cycle": {{Title: "a", After: []int{1}}, {Title: "b", After: []int{0}}}, "no such place": {{Title: "a", After: []int{9}}},
		"metadata": {{Title: "a", Metadata: []byte("{")}}, "dependencies": {{Title: "a", Dependencies: make([]team.TaskID, 257)}},
	} {
		if err := team.ValidatePlan(tasks); team.HintOf(err) == "" {
			t.Errorf("%s: %v, without a hint", name, err)
		}
	}
}

// With the leader's rights a task is taken from whoever holds it, or from the one hold
// that is named.
func TestReleaseOfOneHold(t *testing.T) {
	first := must(t)(pending().Claim(ann, at))
	second := must(t)(first.Assign(bob, team.Assignment{By: "user", Take: true, Epoch: first.Epoch}, at))
	if _, err := second.Release(leader, first.Epoch, team.Freed{}, at); team.CodeOf(err) != team.Conflict {
		t.Errorf("of a hold that is over: %v, want conflict", err)
	}
	if got := must(t)(second.Release(leader, second.Epoch, team.Freed{Reason: "stopped"}, at)); got.Status != team.Pending || got.UpdatedBy != team.Leader {
		t.Errorf("released %+v", got)
	}
}

// Who held a task before others did is told from who never did by its copies.
func TestLostBy(t *testing.T) {
	one := pending()
	two := must(t)(one.Claim(ann, at))
	three := must(t)(two.Release(annActs, two.Epoch, team.Freed{}, at))
	four := must(t)(three.Claim(bob, at))
	copies := []team.Task{one, two, three, four}
	if err := four.MayComplete(ann, 0); team.CodeOf(err) != team.PermissionDenied {
		t.Fatalf("by the newest copy alone: %v", err)
	}
	err := team.LostBy(copies, ann.Agent)
	if team.CodeOf(err) != team.Conflict || err.Error() != "T-001 is no longer yours: it is held by tester-1 (epoch 2)" {
		t.Errorf("a former holder: %v", err)
	}
	if err := team.LostBy(copies, "carol"); err != nil {
		t.Errorf("one who never held it: %v", err)
	}
	if err := team.LostBy(nil, ann.Agent); err != nil {
		t.Errorf("without copies: %v", err)
	}
}

// A task that was begun three times and taken away each time is failed, with the
// reason; releases that are no attempt do not count.
func TestAttempts(t *testing.T) {
	task := pending()
	for i := range 4 {
		task = must(t)(task.Claim(ann, at))
		task = must(t)(task.Release(annActs, task.Epoch, team.Freed{Reason: "not for me"}, at))
		if task.Attempts != 0 || task.Status != team.Pending {
			t.Fatalf("release %d: %d attempts, %s", i, task.Attempts, task.Status)
		}
	}
	task = must(t)(task.Claim(ann, at))
	task = must(t)(task.Reap(team.Freed{Reason: "silent", Attempt: true}, at))
	task = must(t)(task.Claim(ann, at))
	task = must(t)(task.Release(annActs, task.Epoch, team.Freed{Reason: "turn limit", Attempt: true}, at))
	if task.Attempts != 2 || task.Status != team.Pending || task.ClaimedAt != nil || task.Assignee != ann.Agent {
		t.Fatalf("after two attempts: %+v", task)
	}
	task = must(t)(task.Claim(bob, at))
	task = must(t)(task.Reap(team.Freed{Reason: "silent again", Attempt: true}, at))
	if task.Attempts != team.MaxAttempts || task.Status != team.Failed || !strings.Contains(task.Reason, "silent again") {
		t.Errorf("after three: %d attempts, %s, %q", task.Attempts, task.Status, task.Reason)
	}
}

func TestCompleteNeedsASummary(t *testing.T) {
	held := must(t)(pending().Claim(ann, at))
	for _, summary := range []string{"", " \n\t", strings.Repeat("x", team.MaxTextBytes+1), "bell \a"} {
		if _, err := held.Complete(ann, held.Epoch, team.Done{Summary: summary}, at); team.CodeOf(err) != team.InvalidArgument {
			t.Errorf("summary of %d bytes: %v, want invalid_argument", len(summary), err)
		}
	}
	done := must(t)(held.Complete(ann, held.Epoch, team.Done{Summary: strings.Repeat("完", team.MaxTextBytes/3)}, at))
	if !done.CompletedAt.Equal(at) {
		t.Errorf("completed at %v", done.CompletedAt)
	}
}
