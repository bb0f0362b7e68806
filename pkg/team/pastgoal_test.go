package team

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// A record keeps the newest five of the goals that have ended, in short.
func TestPastGoals(t *testing.T) {
	var record Team
	for n := 1; n <= 7; n++ {
		record.PastGoals = record.Ended()
		record.Status, record.Goal, record.GoalNumber = Active, fmt.Sprintf("goal %d %s", n, strings.Repeat("x", 1000)), n
		if past := record.Ended(); len(past) != min(n-1, maxPastGoals) {
			t.Errorf("while goal %d is under way %d have ended", n, len(past))
		}
		record.Status, record.Summary = TeamFinished, strings.Repeat("y", 10_000)
	}
	record.Status, record.Reason = TeamFailed, strings.Repeat("z", 1000)
	past := record.Ended()
	if len(past) != maxPastGoals || past[0].Number != 3 || past[4].Number != 7 {
		t.Fatalf("kept: %+v", past)
	}
	if g := past[4]; !strings.HasPrefix(g.Goal, "goal 7 x") || len(g.Goal) > 310 || len(g.Summary) > 1510 || g.Status != TeamFailed || g.Reason == "" || len(g.Reason) > 310 {
		t.Errorf("%+v", g)
	}
}

// Of each goal its tasks are told in a line, by when they were created.
func TestPastGoalsWithTasks(t *testing.T) {
	at := func(minute int) *time.Time { return new(time.Date(2026, 11, 23, 12, minute, 0, 0, time.UTC)) }
	past := []PastGoal{{Number: 1, SetAt: at(0), EndedAt: at(9)}, {Number: 2, SetAt: at(10), EndedAt: at(19)}, {Number: 3, SetAt: at(20), EndedAt: at(29)}}
	task := func(n, minute int, s TaskStatus) Task {
		return Task{ID: TaskID(fmt.Sprintf("T-%03d", n)), CreatedAt: *at(minute), Status: s}
	}
	got := WithTasks(past, []Task{task(3, 12, Completed), task(1, 1, Completed), task(2, 2, Failed), task(4, 30, Pending)})
	for i, want := range []string{"T-001 to T-002: 1 completed, 1 failed (T-002)", "T-003: 1 completed", ""} {
		if got[i].Tasks != want {
			t.Errorf("goal %d: %q, want %q", i+1, got[i].Tasks, want)
		}
	}
	if past[0].Tasks != "" {
		t.Error("the record's own list was changed")
	}
}
