package team_test

import (
	"strings"
	"testing"

	"agentteam/pkg/team"
	"agentteam/pkg/team/explain"
)

// A task fails once the models of two members refuse it, or that of the only one there.
func TestGiveBackRefused(t *testing.T) {
	holder := func(a team.AgentID) team.Holder { return team.Holder{Agent: a, Incarnation: 1} }
	type step struct {
		by team.AgentID
		g  team.GiveBack
	}
	refused, alone := team.GiveBack{Freed: team.Freed{Reason: "content filter"}, Why: team.DeclineRefused}, team.GiveBack{Freed: team.Freed{Reason: "content filter"}, Why: team.DeclineRefused, Alone: true}
	large := team.GiveBack{Freed: team.Freed{Reason: "too large"}, Why: team.DeclineTooLarge}
	for name, tt := range map[string]struct {
		steps    []step
		status   team.TaskStatus
		attempts int
		reason   string
	}{
		"by one of two":                  {[]step{{"ann", refused}}, team.Pending, 0, "content filter"},
		"by the same one twice":          {[]step{{"ann", refused}, {"ann", refused}}, team.Pending, 0, "content filter"},
		"by two":                         {[]step{{"ann", refused}, {"bob", refused}}, team.Failed, 0, "refused by the models of two members; that of ann before, now: content filter"},
		"by the only one":                {[]step{{"ann", alone}}, team.Failed, 0, "nobody else could take it: content filter"},
		"by one, put back by another":    {[]step{{"ann", refused}, {"bob", team.GiveBack{Freed: team.Freed{Reason: "empty"}}}}, team.Pending, 0, "empty"},
		"by two, with others in between": {[]step{{"ann", refused}, {"bob", team.GiveBack{Freed: team.Freed{Reason: "empty"}}}, {"ann", team.GiveBack{}}, {"cat", refused}}, team.Failed, 0, "that of ann before"},
		"put back by many":               {[]step{{"ann", team.GiveBack{}}, {"bob", team.GiveBack{}}, {"cat", team.GiveBack{}}, {"dan", team.GiveBack{}}}, team.Pending, 0, "released by dan"},
		"attempts":                       {[]step{{"ann", team.GiveBack{Freed: team.Freed{Attempt: true}}}, {"bob", team.GiveBack{Freed: team.Freed{Attempt: true}}}, {"cat", team.GiveBack{Freed: team.Freed{Attempt: true}}}}, team.Failed, 3, "given up after 3 attempts"},
		"too large for two":              {[]step{{"ann", large}, {"bob", large}}, team.Pending, 0, "too large"},
		"too large for all":              {[]step{{"ann", large}, {"bob", team.GiveBack{Freed: team.Freed{Reason: "too large"}, Why: team.DeclineTooLarge, Alone: true}}}, team.Failed, 0, "nobody else could take it: too large"},
	} {
		t.Run(name, func(t *testing.T) {
			task := team.NewTask{Title: "x"}.Task("T-001", "leader", at)
			for _, s := range tt.steps {
				task = must(t)(task.Claim(holder(s.by), at))
				before := task
				task = must(t)(task.GiveBack(holder(s.by), task.Epoch, s.g, at))
				if why := explain.Unlawful(before, task); why != "" {
					t.Error(why)
				}
				if last := task.Declined[len(task.Declined)-1]; last.By != s.by {
					t.Errorf("%s put it back, and the record says %+v", s.by, task.Declined)
				}
			}
			if task.Status != tt.status || task.Attempts != tt.attempts || !strings.Contains(task.Reason, tt.reason) {
				t.Errorf("it is %s after %d attempts: %q", task.Status, task.Attempts, task.Reason)
			}
		})
	}
}

// Work that is returned leaves the task to its holder, under a later epoch, and is an attempt from the third time on.
func TestReturnedToItsHolder(t *testing.T) {
	ann := team.Holder{Agent: "ann", Incarnation: 1}
	task := must(t)(team.NewTask{Title: "x"}.Task("T-001", "leader", at).Claim(ann, at))
	for n := 1; n <= 5; n++ {
		before, work := task, team.Try{By: "ann", Epoch: task.Epoch, Commit: strings.Repeat("1", 40)}
		task = must(t)(task.GiveBack(ann, task.Epoch, team.GiveBack{Freed: team.Freed{Reason: "it conflicts", Work: &work}, Merge: true, Stays: true}, at))
		if why := explain.Unlawful(before, task); why != "" {
			t.Error(why)
		}
		held := task.HeldBy(ann) && task.Epoch == before.Epoch+1 && task.ClaimedAt == before.ClaimedAt && len(task.Declined) == 0
		if held != (n < 5) || task.Unmerged != n || task.Attempts != max(0, n-2) || (task.Status == team.Failed) != (n == 5) || task.Returned[n-1] != work {
			t.Errorf("time %d: it is %s under epoch %d after %d attempts, returned is %+v", n, task.Status, task.Epoch, task.Attempts, task.Returned)
		}
		if _, err := before.GiveBack(ann, before.Epoch+1, team.GiveBack{}, at); err == nil {
			t.Error("a write under another epoch counts")
		}
	}
}

// Who has put a task back could do it once it says something else, and that is of no
// interest once it is completed.
func TestDeclinedIsForgotten(t *testing.T) {
	ann, bob := team.Holder{Agent: "ann", Incarnation: 1}, team.Holder{Agent: "bob", Incarnation: 1}
	held := must(t)(team.NewTask{Title: "x"}.Task("T-001", "leader", at).Claim(ann, at))
	back := must(t)(held.GiveBack(ann, held.Epoch, team.GiveBack{Why: team.DeclineRefused}, at))
	title, priority := "y", 2
	if edited := must(t)(team.Edit{Title: &title}.Apply(back, "leader", at)); edited.HasDeclined("ann") {
		t.Errorf("edited: %+v", edited.Declined)
	}
	if edited := must(t)(team.Edit{Priority: &priority}.Apply(back, "leader", at)); !edited.HasDeclined("ann") || edited.HasDeclined("bob") {
		t.Errorf("made urgent: %+v", edited.Declined)
	}
	held = must(t)(back.Claim(bob, at))
	if done := must(t)(held.Complete(bob, held.Epoch, team.Done{Summary: "done"}, at)); !held.HasDeclined("ann") || done.HasDeclined("ann") {
		t.Errorf("held: %+v, completed: %+v", held.Declined, done.Declined)
	}
}

// Whether a role only looks follows from its tools.
func TestLooks(t *testing.T) {
	for _, tt := range []struct {
		tools string
		want  bool
	}{
		{"", false}, {"*", false}, {"read_file bash", false}, {"Read Write", false}, {"read_file edit_file", false},
		{"read_file glob grep write_file(deliverable)", true}, {"Read Glob", true}, {"list_tasks", true},
	} {
		if got := (team.Role{Tools: strings.Fields(tt.tools)}).ReadsOnly(); got != tt.want {
			t.Errorf("%q: %v", tt.tools, got)
		}
	}
}

// Whether another member could take a task follows from how the members stand.
func TestOthers(t *testing.T) {
	roles := map[string]team.Role{"explorer": {Name: "explorer", Tools: []string{"read_file"}}}
	at := func(a team.AgentID, role string, s team.MemberState, window int) explain.Standing {
		m := team.Member{AgentID: a, Role: role, State: team.Joined, Incarnation: 1}
		if s == team.WaitingModel || s == team.Created {
			m.State = s
		}
		return explain.Standing{Member: m, State: s, Window: window}
	}
	any, tests := team.Task{ID: "T-001"}, team.Task{ID: "T-001", Role: "tester"}
	back := func(t team.Task, why team.Decline) team.Task {
		t.Declined = []team.Declined{{By: "coder-2", Why: why}}
		return t
	}
	for name, tt := range map[string]struct {
		task            team.Task
		window          int
		other           explain.Standing
		others, untried bool
	}{
		"idle":                       {any, 0, at("coder-2", "coder", team.Idle, 0), true, true},
		"at work":                    {any, 0, at("coder-2", "coder", team.Running, 0), true, true},
		"about to come":              {any, 0, at("coder-2", "coder", team.Created, 0), true, true},
		"parked":                     {any, 0, at("coder-2", "coder", team.WaitingModel, 0), false, false},
		"waits for a person":         {any, 0, at("coder-2", "coder", team.WaitingUser, 0), false, false},
		"lost":                       {any, 0, at("coder-2", "coder", team.Lost, 0), false, false},
		"the leader":                 {any, 0, at(team.Leader, "leader", team.Idle, 0), false, false},
		"oneself":                    {any, 0, at("coder-1", "coder", team.Idle, 0), false, false},
		"of another role":            {tests, 0, at("coder-2", "coder", team.Idle, 0), false, false},
		"only looks":                 {any, 0, at("explorer-1", "explorer", team.Idle, 0), false, false},
		"has put it back":            {back(any, team.DeclineOther), 0, at("coder-2", "coder", team.Idle, 0), false, true},
		"whose model refused it":     {back(any, team.DeclineRefused), 0, at("coder-2", "coder", team.Idle, 0), false, false},
		"with no larger window":      {any, 8192, at("coder-2", "coder", team.Idle, 8192), true, false},
		"with a larger window":       {any, 8192, at("coder-2", "coder", team.Idle, 32_000), true, true},
		"with a window nobody knows": {any, 8192, at("coder-2", "coder", team.Idle, 0), true, true},
	} {
		s := explain.Situation{Roles: roles, Members: []explain.Standing{tt.other}}
		if got := s.Others(tt.task, "coder-1"); got != tt.others {
			t.Errorf("%s: others %v", name, got)
		}
		if got := s.Untried(tt.task, "coder-1", tt.window); got != tt.untried {
			t.Errorf("%s: untried %v", name, got)
		}
	}
}
