package explain_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"agentteam/pkg/team"
	"agentteam/pkg/team/explain"
)

var (
	at  = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	ann = team.Holder{Agent: "coder-1", Incarnation: 2, Role: "coder"}
	bob = team.Holder{Agent: "tester-1", Incarnation: 1, Role: "tester"}

	annActs = team.Actor{Holder: ann}
	leader  = team.Actor{Holder: team.Holder{Agent: team.Leader}, Leads: true}
)

func pending() team.Task { return team.NewTask{Title: "Build it"}.Task("T-001", "leader", at) }

// life is a task that changes once a minute, and the copies of its record.
type life struct {
	t      *testing.T
	copies []team.Task
}

func (l *life) now() time.Time { return at.Add(time.Duration(len(l.copies)) * time.Minute) }

// is appends the task as it is after a change.
func (l *life) is(next team.Task, err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
	next.Revision = uint64(len(l.copies) + 1)
	l.copies = append(l.copies, next)
}

func (l *life) last() team.Task { return l.copies[len(l.copies)-1] }

// A task's whole story, made by the transitions themselves.
func TestHistory(t *testing.T) {
	l := &life{t: t}
	l.is(pending(), nil)
	title, high := "Build it well", 1
	l.is(team.Edit{Title: &title, Priority: &high, AddDependencies: []team.TaskID{"T-007", "T-008"}}.Apply(l.last(), "leader", l.now()))
	l.is(team.Edit{RemoveDependencies: []team.TaskID{"T-007"}, Description: &title}.Apply(l.last(), "user", l.now()))
	l.is(l.last().Claim(ann, l.now()))
	l.is(l.last().Adopt(team.Holder{Agent: ann.Agent, Incarnation: 3}, false, l.now()))
	l.is(team.Edit{Metadata: []byte(`{"note":1}`)}.Apply(l.last(), ann.Agent, l.now()))
	again := team.Holder{Agent: ann.Agent, Incarnation: 3}
	l.is(l.last().FailCheck(again, 0, team.Freed{Reason: "make: *** [test] Error 1"}, l.now()))
	l.is(l.last().Release(team.Actor{Holder: again}, 0, team.Freed{Reason: "lunch 🍜"}, l.now()))
	l.is(l.last().Claim(bob, l.now()))
	l.is(l.last().Reap(team.Freed{Reason: "tester-1 was not heard for 30s", Attempt: true}, l.now()))
	l.is(l.last().Claim(bob, l.now()))
	l.is(l.last().Release(leader, 0, team.Freed{}, l.now()))
	l.is(l.last().Claim(bob, l.now()))
	l.is(l.last().Assign(ann, team.Assignment{By: "leader", Take: true, Epoch: l.last().Epoch}, l.now()))
	l.is(l.last().Release(annActs, 0, team.Freed{}, l.now()))
	l.is(l.last().Reserve(bob.Agent, leader, l.now()))
	l.is(l.last().Reserve("", team.Actor{Holder: team.Holder{Agent: team.Watchdog}, Leads: true}, l.now()))
	l.is(l.last().Reserve(ann.Agent, leader, l.now()))
	late := l.last().Left(team.Try{By: bob.Agent, Epoch: 3, Commit: "cafe", Unfinished: true})
	late.UpdatedAt = l.now()
	l.is(late, nil)
	l.is(l.last().Claim(ann, l.now()))
	l.is(l.last().Complete(ann, 0, team.Done{Summary: "built"}, l.now()))

	steps, whole := explain.History(l.copies)
	if !whole {
		t.Error("the history begins with the creation and is said not to")
	}
	want := []string{
		`leader: created: `,
		`leader: edited title, priority, dependencies: "Build it" -> "Build it well"; normal -> high; +T-007 +T-008`,
		`user: edited description, dependencies: -T-007`,
		`coder-1: claimed: `,
		`coder-1: adopted: incarnation 3 goes on for 2`,
		`coder-1: edited metadata: `,
		`coder-1: check failed (attempt 1 of 3): the check failed: make: *** [test] Error 1`,
		`coder-1: released: lunch 🍜`,
		`tester-1: claimed: `,
		`watchdog: taken from tester-1 (attempt 2 of 3): tester-1 was not heard for 30s`,
		`tester-1: claimed: `,
		`leader: taken from tester-1: released by leader`,
		`tester-1: claimed: `,
		`leader: reassigned from tester-1 to coder-1: `,
		`coder-1: released: released by coder-1`,
		`leader: reserved for tester-1: `,
		`watchdog: no longer reserved for tester-1: `,
		`leader: reserved for coder-1: `,
		`tester-1: stored what a former holder has changed: `,
		`coder-1: claimed: `,
		`coder-1: completed: built`,
	}
	if got := story(steps); !slices.Equal(got, want) {
		t.Errorf("the story is\n%q, want\n%q", got, want)
	}
	var types []team.EventType
	for i := range l.copies[1:] {
		kind, _, _ := explain.Change(l.copies[i], l.copies[i+1])
		types = append(types, kind)
	}
	if at := 13; types[at-1] != team.TaskAssigned || !slices.Equal(types[at:at+6], []team.EventType{
		team.TaskReleased, team.TaskAssigned, team.TaskUpdated, team.TaskAssigned, team.TaskUpdated, team.TaskClaimed}) {
		t.Errorf("the events are %v", types)
	}
	for i, s := range steps {
		task := l.copies[i]
		if s.Revision != uint64(i+1) || s.Epoch != task.Epoch || s.To != task.Status || s.Assignee != task.Assignee || !s.At.Equal(task.UpdatedAt) {
			t.Errorf("step %d is %+v of %+v", i+1, s, task)
		}
		if i > 0 && s.From != steps[i-1].To {
			t.Errorf("step %d goes on from %s, the one before led to %s", i+1, s.From, steps[i-1].To)
		}
	}
}

func story(steps []explain.Step) (lines []string) {
	for _, s := range steps {
		lines = append(lines, fmt.Sprintf("%s: %s: %s", s.By, s.What, s.Why))
	}
	return lines
}

// The ways in which a task ends.
func TestHistoryEnds(t *testing.T) {
	claimed := func(t *testing.T) *life {
		l := &life{t: t}
		l.is(pending(), nil)
		l.is(l.last().Claim(ann, l.now()))
		return l
	}
	for name, tt := range map[string]struct {
		end  func(l *life)
		want string
	}{
		"failed by its holder": {func(l *life) { l.is(l.last().Fail(annActs, 0, team.Freed{Reason: "no way"}, l.now())) }, "coder-1: failed: no way"},
		"not merged, and its holder's": {func(l *life) {
			l.is(l.last().GiveBack(ann, 0, team.GiveBack{Freed: team.Freed{Reason: "it conflicts"}, Merge: true, Stays: true}, l.now()))
		}, "coder-1: not merged, stays with coder-1: it conflicts"},
		"cancelled": {func(l *life) { l.is(l.last().Cancel(leader, "nobody wants it", l.now())) },
			"leader: cancelled, taken from coder-1: nobody wants it"},
		"cancelled while free": {func(l *life) {
			l.is(l.last().Release(annActs, 0, team.Freed{}, l.now()))
			l.is(l.last().Cancel(leader, "", l.now()))
		}, "leader: cancelled: cancelled by leader"},
		"reaped too often": {func(l *life) {
			for range team.MaxAttempts - 1 {
				l.is(l.last().Reap(team.Freed{Reason: "silent", Attempt: true}, l.now()))
				l.is(l.last().Claim(ann, l.now()))
			}
			l.is(l.last().Reap(team.Freed{Reason: "silent", Attempt: true}, l.now()))
		}, "watchdog: taken from coder-1, failed: given up after 3 attempts; the last: silent"},
		"checked too often": {func(l *life) {
			for range team.MaxAttempts {
				l.is(l.last().FailCheck(ann, 0, team.Freed{Reason: "red"}, l.now()))
			}
		}, "coder-1: failed: given up after 3 attempts; the last: the check failed: red"},
	} {
		t.Run(name, func(t *testing.T) {
			l := claimed(t)
			tt.end(l)
			steps, _ := explain.History(l.copies)
			if got := story(steps); got[len(got)-1] != tt.want {
				t.Errorf("the end is %q, want %q", got[len(got)-1], tt.want)
			}
		})
	}
}

// The bucket keeps the last copies only, and what is told must not pass for the
// beginning.
func TestHistoryWithoutBeginning(t *testing.T) {
	l := &life{t: t}
	l.is(pending(), nil)
	l.is(l.last().Claim(ann, l.now()))
	l.is(l.last().Release(annActs, 0, team.Freed{Reason: "later"}, l.now()))
	for from := 1; from < len(l.copies); from++ {
		steps, whole := explain.History(l.copies[from:])
		if whole || len(steps) != len(l.copies)-from || steps[0].From != "" || steps[0].What != "older copies are gone" {
			t.Errorf("from copy %d on: whole %v, %+v", from+1, whole, steps)
		}
	}
	if steps, whole := explain.History(nil); steps != nil || whole {
		t.Errorf("without copies: %v, %v", steps, whole)
	}
}

// Records of before the field updated_by.
func TestHistoryWithoutAuthor(t *testing.T) {
	task := pending()
	task.UpdatedBy = ""
	if steps, whole := explain.History([]team.Task{task}); !whole || steps[0].By != "leader" {
		t.Errorf("whole %v, %+v", whole, steps)
	}
}

func TestPriorities(t *testing.T) {
	for s, want := range map[string]int{"normal": 0, "high": 1, "critical": 2, "0": 0, "2": 2} {
		if got, err := team.ParsePriority(s); err != nil || got != want {
			t.Errorf("ParsePriority(%q) = %d, %v, want %d", s, got, err, want)
		}
	}
	for _, s := range []string{"", "3", "-1", "High", "1.0", "紧急"} {
		if _, err := team.ParsePriority(s); team.CodeOf(err) != team.InvalidArgument || team.HintOf(err) == "" {
			t.Errorf("ParsePriority(%q): %v", s, err)
		}
	}
	if a, b := team.PriorityName(2), team.PriorityName(7); a != "critical" || b != "7" {
		t.Errorf("the names are %s and %s", a, b)
	}
}
