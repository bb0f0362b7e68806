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
