package index

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"agentteam/pkg/broker"
	"agentteam/pkg/subject"
	"agentteam/pkg/team"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// on puts tasks into a state, each at a new revision.
func on(s *state, tasks ...team.Task) {
	for _, t := range tasks {
		s.seq++
		t.Revision = s.seq
		s.put(t)
	}
}

func task(n int, change ...func(*team.Task)) team.Task {
	t := team.NewTask{Title: "x"}.Task(team.MakeTaskID(n), "leader", start)
	for _, f := range change {
		f(&t)
	}
	return t
}

func priority(p int) func(*team.Task)           { return func(t *team.Task) { t.Priority = p } }
func role(r string) func(*team.Task)            { return func(t *team.Task) { t.Role = r } }
func status(s team.TaskStatus) func(*team.Task) { return func(t *team.Task) { t.Status = s } }
func behind(deps ...team.TaskID) func(*team.Task) {
	return func(t *team.Task) { t.Dependencies = deps }
}

func idle(a team.AgentID, role string) team.Beat {
	return team.Beat{AgentID: a, Incarnation: 1, N: 1, Role: role, State: team.Idle}
}

func show(offers []offer) string {
	var s []string
	for _, o := range offers {
		s = append(s, fmt.Sprintf("%s:%s", o.task.ID, o.agent))
	}
	return strings.Join(s, " ")
}

func TestMatch(t *testing.T) {
	with := func(b team.Beat, f func(*team.Beat)) team.Beat { f(&b); return b }
	ann, bob := idle("coder-1", "coder"), idle("coder-2", "coder")
	for name, tt := range map[string]struct {
		tasks []team.Task
		beats []team.Beat
		want  string
	}{
		"nobody":                        {[]team.Task{task(1)}, nil, ""},
		"nothing":                       {nil, []team.Beat{ann}, ""},
		"one":                           {[]team.Task{task(1)}, []team.Beat{ann}, "T-001:coder-1"},
		"one task, one offer":           {[]team.Task{task(1)}, []team.Beat{ann, bob}, "T-001:coder-1"},
		"one agent, one offer":          {[]team.Task{task(1), task(2)}, []team.Beat{ann}, "T-001:coder-1"},
		"to each a task":                {[]team.Task{task(1), task(2), task(3)}, []team.Beat{ann, bob}, "T-001:coder-1 T-002:coder-2"},
		"by number, not by text":        {[]team.Task{task(1000), task(999)}, []team.Beat{ann}, "T-999:coder-1"},
		"by priority first":             {[]team.Task{task(1), task(2, priority(1)), task(3, priority(2))}, []team.Beat{ann, bob}, "T-003:coder-1 T-002:coder-2"},
		"not what is over or held":      {[]team.Task{task(1, status(team.InProgress)), task(2, status(team.Failed)), task(3, status(team.Cancelled))}, []team.Beat{ann}, ""},
		"behind a completed task":       {[]team.Task{task(1, status(team.Completed)), task(2, behind("T-001"))}, []team.Beat{ann}, "T-002:coder-1"},
		"behind one of two":             {[]team.Task{task(1, status(team.Completed)), task(2, status(team.InProgress)), task(3, behind("T-001", "T-002"))}, []team.Beat{ann}, ""},
		"behind a failed task":          {[]team.Task{task(1, status(team.Failed)), task(2, behind("T-001"))}, []team.Beat{ann}, ""},
		"behind a task not yet read":    {[]team.Task{task(2, behind("T-001"))}, []team.Beat{ann}, ""},
		"for its role":                  {[]team.Task{task(1, role("tester")), task(2)}, []team.Beat{ann, idle("tester-1", "tester")}, "T-001:tester-1 T-002:coder-1"},
		"for a role that nobody plays":  {[]team.Task{task(1, role("tester"), priority(2)), task(2)}, []team.Beat{ann}, "T-002:coder-1"},
		"not to the leader":             {[]team.Task{task(1)}, []team.Beat{idle(team.Leader, "leader")}, ""},
		"not to one at work":            {[]team.Task{task(1)}, []team.Beat{with(ann, func(b *team.Beat) { b.State = team.Running })}, ""},
		"not to one that waits":         {[]team.Task{task(1)}, []team.Beat{with(ann, func(b *team.Beat) { b.State = team.WaitingAnswer })}, ""},
		"not to one with unseen input":  {[]team.Task{task(1)}, []team.Beat{with(ann, func(b *team.Beat) { b.Unseen = true })}, ""},
		"not to one that holds a task":  {[]team.Task{task(1)}, []team.Beat{with(ann, func(b *team.Beat) { b.Task = "T-009" })}, ""},
		"not to a predecessor's ghost":  {[]team.Task{task(1)}, []team.Beat{with(ann, func(b *team.Beat) { b.Incarnation, b.State = 2, team.Running }), ann}, ""},
		"a stale beat does not ask now": {[]team.Task{task(1)}, []team.Beat{with(ann, func(b *team.Beat) { b.N, b.State = 2, team.Running }), ann}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newState()
			on(&s, tt.tasks...)
			for _, b := range tt.beats {
				s.hear(b, start)
			}
			if got := show(s.match(start)); got != tt.want {
				t.Errorf("offers are %q, want %q", got, tt.want)
			}
		})
	}
}

// An offer binds its task and its agent for a while, then both are free again,
// and the one who has waited longest is next.
func TestPatience(t *testing.T) {
	s := newState()
	on(&s, task(1))
	s.hear(idle("coder-1", "coder"), start)
	s.hear(idle("coder-2", "coder"), start)
	for _, step := range []struct {
		after time.Duration
		want  string
	}{
		{0, "T-001:coder-1"},
		{0, ""},
		{Patience, ""},
		{Patience + 1, "T-001:coder-2"},
		{2*Patience + 1, ""},
		{2*Patience + 2, "T-001:coder-1"},
		{silent, ""}, // nobody was heard for too long
	} {
		if got := show(s.match(start.Add(step.after))); got != step.want {
			t.Errorf("after %v: %q, want %q", step.after, got, step.want)
		}
	}
}

// What an agent does ends its offer before the patience does.
func TestOfferEnds(t *testing.T) {
	s := newState()
	on(&s, task(1), task(2))
	b := idle("coder-1", "coder")
	s.hear(b, start)
	if got := show(s.match(start)); got != "T-001:coder-1" {
		t.Fatalf("offers are %q", got)
	}
	on(&s, task(1, status(team.InProgress), func(t *team.Task) { t.Assignee, t.Incarnation = "coder-1", 1 }))
	if got := show(s.match(start.Add(Patience + 1))); got != "" {
		t.Errorf("its idle beat is older than its claim, and it was offered %q", got)
	}
	b.N, b.State = 2, team.Running
	s.hear(b, start)
	b.N, b.State = 3, team.Idle
	s.hear(b, start)
	if got := show(s.match(start)); got != "T-002:coder-1" {
		t.Errorf("idle again, it was offered %q", got)
	}
	// Released: the task may be offered again at once.
	s.hear(idle("coder-2", "coder"), start)
	on(&s, task(1))
	if got := show(s.match(start)); got != "T-001:coder-2" {
		t.Errorf("the released task was offered %q", got)
	}
}

func TestTake(t *testing.T) {
	s := newState()
	entry := func(key string, v any, revision uint64) broker.Entry {
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return broker.Entry{Key: key, Value: data, Revision: revision}
	}
	take := func(e broker.Entry, ok bool) {
		t.Helper()
		if err := s.take(e); (err == nil) != ok {
			t.Errorf("%s: %v", e.Key, err)
		}
	}
	done := task(1, status(team.Completed))
	take(entry(subject.KeyTask("T-001"), done, 7), true)
	take(entry(subject.KeyTask("T-001"), task(1), 6), true) // late
	take(entry(subject.KeyTeam, team.Team{ID: "t", Goal: "g"}, 8), true)
	take(entry(subject.KeyMember("coder-1"), team.Member{AgentID: "coder-1", Role: "coder"}, 9), true)
	take(entry(subject.KeyMember("coder-2"), team.Member{AgentID: "coder-2"}, 10), true)
	take(broker.Entry{Key: subject.KeyMember("coder-2"), Revision: 11, Deleted: true}, true)
	take(entry(subject.KeySequence, 1, 12), true)
	take(entry(subject.KeyTask("T-002"), "nonsense", 13), false)
	take(entry(subject.KeyTask("T-003"), map[string]any{"v": 99, "id": "T-003"}, 14), false)
	if s.tasks["T-001"].Status != team.Completed || len(s.tasks) != 1 || s.team.Goal != "g" || s.seq != 14 {
		t.Errorf("state = %+v", s)
	}
	if len(s.members) != 1 || s.members["coder-1"].Revision != 9 {
		t.Errorf("members = %+v", s.members)
	}
	if n := s.count(); n[team.Completed] != 1 || n[team.Pending] != 0 {
		t.Errorf("counts are %v", n)
	}
}

// Whatever is on the board, the order of the offers is the order of work.
func TestClaimableOrder(t *testing.T) {
	s := newState()
	for n := range 200 {
		on(&s, task(n+900, priority(n%3)))
	}
	list := s.claimable(start)
	if len(list) != 200 || !slices.IsSortedFunc(list, team.Task.Compare) {
		t.Errorf("%d claimable tasks, sorted %v", len(list), slices.IsSortedFunc(list, team.Task.Compare))
	}
}
