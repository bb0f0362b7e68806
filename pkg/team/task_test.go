package team_test

import (
	"slices"
	"strings"
	"testing"

	"agentteam/pkg/team"
)

func TestOrder(t *testing.T) {
	var tasks []team.Task
	for _, n := range []team.NewTask{{Title: "a"}, {Title: "b", Priority: 2}, {Title: "c", Priority: 1}} {
		for _, number := range []int{1000, 999, 7} {
			tasks = append(tasks, n.Task(team.MakeTaskID(number), "leader", at))
		}
	}
	slices.SortFunc(tasks, team.Task.Compare)
	var got []string
	for _, task := range tasks {
		got = append(got, task.Title+string(task.ID))
	}
	want := "bT-007 bT-999 bT-1000 cT-007 cT-999 cT-1000 aT-007 aT-999 aT-1000"
	if s := strings.Join(got, " "); s != want {
		t.Errorf("order is %s, want %s", s, want)
	}
	if tasks[0].Before(tasks[0]) || !tasks[0].Before(tasks[1]) || tasks[1].Before(tasks[0]) {
		t.Error("Before is not a strict order")
	}
}

// How an earlier hold ended is told from the copies of the record, whoever held it.
func TestLastTry(t *testing.T) {
	step := func(t team.Task, err error) team.Task {
		if err != nil {
			panic(err)
		}
		return t
	}
	ann, bob := team.Holder{Agent: "ann", Incarnation: 1}, team.Holder{Agent: "bob", Incarnation: 1}
	created := team.NewTask{Title: "Build"}.Task("T-001", team.Leader, at)
	first := step(created.Claim(ann, at))
	back := step(first.Release(team.Actor{Holder: ann}, 0, team.Freed{Reason: "no compiler"}, at))
	second := step(back.Claim(bob, at))
	next := bob
	next.Incarnation = 2
	adopted := step(second.Adopt(next, false, at))
	passed := step(adopted.Assign(ann, team.Assignment{Task: "T-001", By: team.Leader, Take: true, Epoch: adopted.Epoch}, at))
	copies := []team.Task{created, first, back, second, adopted, passed}
	for name, tt := range map[string]struct {
		task   team.Task
		copies []team.Task
		want   *team.Try
	}{
		"first":       {first, copies[:2], nil},
		"came back":   {second, copies[:4], &team.Try{By: "ann", Reason: "no compiler", Epoch: 1}},
		"adopted":     {adopted, copies[:5], &team.Try{By: "ann", Reason: "no compiler", Epoch: 1}},
		"passed on":   {passed, copies, &team.Try{By: "bob", Reason: "it was given to ann instead", Epoch: 3}},
		"copies gone": {second, copies[3:4], nil},
	} {
		if got, _ := tt.task.LastTry(tt.copies); (got == nil) != (tt.want == nil) || got != nil && *got != *tt.want {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
}

// Unfinished work is named to the next holder with the reason for which its hold has ended, also where the write raised the epoch. A host
// that may have files takes the place of no stored work.
func TestUnfinishedTry(t *testing.T) {
	ann, bob := team.Holder{Agent: "ann", Incarnation: 1}, team.Holder{Agent: "bob", Incarnation: 1}
	copies := []team.Task{team.NewTask{Title: "Build"}.Task("T-001", team.Leader, at)}
	step := func(next team.Task, err error) team.Task {
		copies = append(copies, must(t)(next, err))
		return next
	}
	task := step(copies[0].Claim(ann, at))
	stored := team.Try{By: "ann", Epoch: task.Epoch, Commit: strings.Repeat("1", 40), Base: strings.Repeat("0", 40), Unfinished: true, LeftOut: "x.bin (70 MiB)", Host: "alpha"}
	task = step(task.Reap(team.Freed{Reason: "its journal cannot be read", Work: &stored}, at))
	task = step(task.Claim(bob, at))
	if last, earlier := task.LastTry(copies); last == nil || earlier != nil || last.Reason != "its journal cannot be read" || last.Commit != stored.Commit ||
		!strings.Contains(last.Left(), "in the files of your tree") || !strings.Contains(last.Left(), "x.bin (70 MiB). They are on host alpha.") {
		t.Errorf("the next holder reads %+v and %+v", last, earlier)
	}
	task = step(task.Reap(team.Freed{Reason: "bob is lost", Work: task.LeftOn("beta")}, at))
	task = step(task.Claim(ann, at))
	last, _ := task.LastTry(copies)
	if work, ok := task.Work(); last == nil || last.By != "bob" || last.Reason != "bob is lost" || !strings.Contains(last.Left(), "were not stored. They are on host beta") || !ok || work != stored {
		t.Errorf("the one after that reads %+v; stored is %+v", last, work)
	}
	if task.LeftOn("") != nil {
		t.Error("no host has files")
	}
}

// Work that was returned is named to each later holder with why, until the task is over, whoever has
// put the task back since.
func TestReturnedWork(t *testing.T) {
	ann, bob, cat := team.Holder{Agent: "ann", Incarnation: 1}, team.Holder{Agent: "bob", Incarnation: 1}, team.Holder{Agent: "cat", Incarnation: 1}
	work := team.Try{By: "ann", Epoch: 1, Commit: strings.Repeat("1", 40), Base: strings.Repeat("0", 40)}
	copies := []team.Task{team.NewTask{Title: "Build"}.Task("T-001", team.Leader, at)}
	step := func(next team.Task, err error) team.Task {
		copies = append(copies, must(t)(next, err))
		return next
	}
	task := step(copies[0].Claim(ann, at))
	task = step(task.GiveBack(ann, task.Epoch, team.GiveBack{Freed: team.Freed{Reason: "it conflicts\nin x", Work: &work}, Merge: true}, at))
	want := work
	want.Reason = "it conflicts\nin x"
	task = step(task.Claim(bob, at))
	if got, none := task.LastTry(copies); got == nil || *got != want || none != nil || got.Branch(task.ID) != "returned/T-001/1" {
		t.Errorf("the next holder reads %+v", got)
	}
	task = step(task.GiveBack(bob, task.Epoch, team.GiveBack{Freed: team.Freed{Reason: "no compiler"}}, at))
	task = step(task.Claim(cat, at))
	got, earlier := task.LastTry(copies)
	if got == nil || got.By != "bob" || got.Reason != "no compiler" || got.Commit != "" || earlier == nil || *earlier != want {
		t.Errorf("the one after that reads %+v and %+v", got, earlier)
	}
	for epoch, needed := range map[uint64]bool{1: true, 2: false, 3: true} {
		if task.Needs(epoch) != needed {
			t.Errorf("the work of epoch %d is needed: %v", epoch, !needed)
		}
	}
	done := must(t)(task.Complete(cat, task.Epoch, team.Done{Summary: "done"}, at))
	cancelled := must(t)(task.Cancel(team.Actor{Holder: team.Holder{Agent: team.UserAgent}, Leads: true}, "", at))
	if len(done.Returned) > 0 || done.Needs(1) || done.Needs(3) {
		t.Errorf("completed, it still names %+v", done.Returned)
	}
	if len(cancelled.Returned) != 1 || !cancelled.Needs(1) || cancelled.Needs(2) {
		t.Errorf("cancelled, it names %+v", cancelled.Returned)
	}
	for range 20 {
		work.Epoch = task.Epoch
		task = must(t)(must(t)(task.GiveBack(team.Holder{Agent: task.Assignee, Incarnation: 1}, task.Epoch, team.GiveBack{Freed: team.Freed{Work: &work}, Merge: true}, at)).Claim(ann, at))
		task.Unmerged, task.Attempts = 0, 0
	}
	if n := len(task.Returned); n != 16 {
		t.Errorf("the record names %d", n)
	}
}
