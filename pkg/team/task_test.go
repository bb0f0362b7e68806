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
	back := step(first.Release(team.Actor{Holder: ann}, 0, "no compiler", false, at))
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
		"came back":   {second, copies[:4], &team.Try{"ann", "no compiler"}},
		"adopted":     {adopted, copies[:5], &team.Try{"ann", "no compiler"}},
		"passed on":   {passed, copies, &team.Try{"bob", "it was given to ann instead"}},
		"copies gone": {second, copies[3:4], nil},
	} {
		if got := tt.task.LastTry(tt.copies); (got == nil) != (tt.want == nil) || got != nil && *got != *tt.want {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
}
