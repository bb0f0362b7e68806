package index

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"agentteam/pkg/team"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// on puts tasks into a state, each at a new revision.
func on(s *state, tasks ...team.Task) {
	for _, t := range tasks {
		s.seq++
		t.Revision = s.seq
		s.Show(t.ID, t)
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

func idle(a team.AgentID, role string) team.Heartbeat {
	return team.Heartbeat{AgentID: a, Incarnation: 1, N: 1, Role: role, State: team.Idle}
}

func show(offers []*offer) string {
	var s []string
	for _, o := range offers {
		s = append(s, fmt.Sprintf("%s:%s", o.node.id, o.agent.heartbeat.AgentID))
	}
	return strings.Join(s, " ")
}

func TestMatch(t *testing.T) {
	with := func(b team.Heartbeat, f func(*team.Heartbeat)) team.Heartbeat { f(&b); return b }
	ann, bob := idle("coder-1", "coder"), idle("coder-2", "coder")
	for name, tt := range map[string]struct {
		tasks []team.Task
		beats []team.Heartbeat
		want  string
	}{
		"nobody":                        {[]team.Task{task(1)}, nil, ""},
		"nothing":                       {nil, []team.Heartbeat{ann}, ""},
		"one":                           {[]team.Task{task(1)}, []team.Heartbeat{ann}, "T-001:coder-1"},
		"one task, one offer":           {[]team.Task{task(1)}, []team.Heartbeat{ann, bob}, "T-001:coder-1"},
		"one agent, one offer":          {[]team.Task{task(1), task(2)}, []team.Heartbeat{ann}, "T-001:coder-1"},
		"to each a task":                {[]team.Task{task(1), task(2), task(3)}, []team.Heartbeat{ann, bob}, "T-001:coder-1 T-002:coder-2"},
		"by number, not by text":        {[]team.Task{task(1000), task(999)}, []team.Heartbeat{ann}, "T-999:coder-1"},
		"by priority first":             {[]team.Task{task(1), task(2, priority(1)), task(3, priority(2))}, []team.Heartbeat{ann, bob}, "T-003:coder-1 T-002:coder-2"},
		"not what is over or held":      {[]team.Task{task(1, status(team.InProgress)), task(2, status(team.Failed)), task(3, status(team.Cancelled))}, []team.Heartbeat{ann}, ""},
		"behind a completed task":       {[]team.Task{task(1, status(team.Completed)), task(2, behind("T-001"))}, []team.Heartbeat{ann}, "T-002:coder-1"},
		"behind one of two":             {[]team.Task{task(1, status(team.Completed)), task(2, status(team.InProgress)), task(3, behind("T-001", "T-002"))}, []team.Heartbeat{ann}, ""},
		"behind a failed task":          {[]team.Task{task(1, status(team.Failed)), task(2, behind("T-001"))}, []team.Heartbeat{ann}, ""},
		"behind a task not yet read":    {[]team.Task{task(2, behind("T-001"))}, []team.Heartbeat{ann}, ""},
		"for its role":                  {[]team.Task{task(1, role("tester")), task(2)}, []team.Heartbeat{ann, idle("tester-1", "tester")}, "T-001:tester-1 T-002:coder-1"},
		"to who has waited longest":     {[]team.Task{task(1)}, []team.Heartbeat{idle("tester-1", "tester"), ann, idle("a-1", "architect")}, "T-001:tester-1"},
		"for a role that nobody plays":  {[]team.Task{task(1, role("tester"), priority(2)), task(2)}, []team.Heartbeat{ann}, "T-002:coder-1"},
		"not to the leader":             {[]team.Task{task(1)}, []team.Heartbeat{idle(team.Leader, "leader")}, ""},
		"not to one at work":            {[]team.Task{task(1)}, []team.Heartbeat{with(ann, func(b *team.Heartbeat) { b.State = team.Running })}, ""},
		"not to one that waits":         {[]team.Task{task(1)}, []team.Heartbeat{with(ann, func(b *team.Heartbeat) { b.State = team.WaitingAnswer })}, ""},
		"not to one with unseen input":  {[]team.Task{task(1)}, []team.Heartbeat{with(ann, func(b *team.Heartbeat) { b.Unseen = true })}, ""},
		"not to one that holds a task":  {[]team.Task{task(1)}, []team.Heartbeat{with(ann, func(b *team.Heartbeat) { b.Task = "T-009" })}, ""},
		"not to a predecessor's ghost":  {[]team.Task{task(1)}, []team.Heartbeat{with(ann, func(b *team.Heartbeat) { b.Incarnation, b.State = 2, team.Running }), ann}, ""},
		"a stale beat does not ask now": {[]team.Task{task(1)}, []team.Heartbeat{with(ann, func(b *team.Heartbeat) { b.N, b.State = 2, team.Running }), ann}, ""},
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
		{patience - 1, ""},
		{patience, "T-001:coder-2"},
		{2*patience - 1, ""},
		{2 * patience, "T-001:coder-1"},
		{silent, ""}, // nobody was heard for too long
	} {
		if got := show(s.match(start.Add(step.after))); got != step.want {
			t.Errorf("after %v: %q, want %q", step.after, got, step.want)
		}
	}
}

func reserved(a team.AgentID) func(*team.Task) { return func(t *team.Task) { t.ReservedFor = a } }

// What is reserved waits for that agent, and is the first that it is offered.
func TestReserved(t *testing.T) {
	s := newState()
	on(&s, task(1, reserved("coder-2"), role("tester")), task(2, priority(2)), task(3, reserved("coder-2"), behind("T-002")))
	for _, a := range []team.AgentID{"coder-1", "coder-3"} {
		s.hear(idle(a, "coder"), start)
	}
	if got := show(s.match(start)); got != "T-002:coder-1" {
		t.Fatalf("while coder-2 is away: %q", got)
	}
	s.hear(idle("coder-2", "coder"), start)
	on(&s, task(4, priority(2)))
	if got := show(s.match(start)); got != "T-001:coder-2 T-004:coder-3" {
		t.Errorf("once it waits: %q", got)
	}
	l := s.snapshot()
	if len(l.Reserved) != 2 || l.Reserved[0].ID != "T-001" || !l.Reserved[0].Claimable || l.Reserved[1].Claimable || l.Claimable["tester"] != 0 {
		t.Errorf("a look shows %+v, claimable %v", l.Reserved, l.Claimable)
	}
	on(&s, task(1, reserved("coder-9"), role("tester")), task(2, status(team.Completed)))
	if got := show(s.match(start.Add(1))); got != "T-003:coder-2" {
		t.Errorf("kept for another now, and T-003 free: %q", got)
	}
	on(&s, task(1), task(3, status(team.Cancelled)))
	if got := show(s.match(start.Add(1))); got != "T-001:coder-1" || len(s.snapshot().Reserved) != 0 || len(s.kept) != 0 {
		t.Errorf("reserved for nobody: %q, %+v, %v", got, s.snapshot().Reserved, s.kept)
	}
}

// Who was replaced while its work waits to be in the line is offered nothing until that is over: it takes nothing before.
func TestReplacedWhileItsWorkWaits(t *testing.T) {
	for _, over := range []team.TaskStatus{team.Completed, team.Pending} {
		s := newState()
		on(&s, task(1, heldBy("coder-1")), task(2))
		b := idle("coder-1", "coder")
		b.Incarnation = 2
		s.hear(b, start)
		if got := show(s.match(start)); got != "" {
			t.Errorf("meanwhile: %q", got)
		}
		on(&s, task(1, heldBy("coder-1"), status(over), priority(-1)))
		if got := show(s.match(start)); got != "T-002:coder-1" {
			t.Errorf("once it is %s: %q", over, got)
		}
	}
}

// Who goes on waiting and lets its offers lapse is told apart, until it moves.
func TestDeaf(t *testing.T) {
	s := newState()
	on(&s, task(1))
	b := idle("rob", "coder")
	now := start
	for n := range maxIgnored + 1 {
		if deaf := len(s.snapshot().Deaf) > 0; deaf != (n == maxIgnored+1) && n < maxIgnored {
			t.Fatalf("after %d offers it is deaf: %v", n, deaf)
		}
		b.N++
		s.hear(b, now)
		s.match(now)
		now = now.Add(patience)
	}
	if got := s.snapshot().Deaf; len(got) != 1 || got[0] != "rob" {
		t.Errorf("deaf are %v", got)
	}
	b.N, b.State = b.N+1, team.Running
	s.hear(b, now)
	if got := s.snapshot().Deaf; len(got) != 0 {
		t.Errorf("at work it is deaf: %v", got)
	}
}

// What no rule allows is noted, whoever wrote it: the index sees every write, and each writer
// keeps its rules alone.
func TestUnlawful(t *testing.T) {
	claimed := func(n int, a team.AgentID) team.Task {
		return task(n, heldBy(a), func(t *team.Task) { t.Epoch = 1 })
	}
	for name, tt := range map[string]struct {
		before, after []team.Task
		want          string
	}{
		"claimed":                 {[]team.Task{task(1)}, []team.Task{claimed(1, "rob")}, ""},
		"read for the first time": {nil, []team.Task{claimed(1, "rob"), task(2, status(team.Completed))}, ""},
		"completed by nobody":     {[]team.Task{task(1)}, []team.Task{task(1, status(team.Completed))}, "there is no such transition"},
		"claimed for another":     {[]team.Task{task(1, reserved("ann"))}, []team.Task{claimed(1, "rob")}, "it is reserved for ann"},
		"its gate is opened":      {[]team.Task{task(1, func(t *team.Task) { t.Gate = team.ByHuman })}, []team.Task{task(1, func(t *team.Task) { t.Gate = team.ByLeader })}, "its gate was opened"},
		"two at once":             {[]team.Task{task(1), task(2)}, []team.Task{claimed(1, "rob"), claimed(2, "rob")}, "rob holds another task"},
	} {
		s := newState()
		on(&s, tt.before...)
		on(&s, tt.after...)
		var got []string
		for _, u := range s.unlawful {
			got = append(got, u.why)
		}
		if strings.Join(got, "; ") != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

func heldBy(a team.AgentID) func(*team.Task) {
	return func(t *team.Task) {
		t.Status, t.Assignee, t.Incarnation = team.InProgress, a, 1
	}
}

// An offer is made again to an agent whose connection was lost and is back, or to another
// that has waited longer by then.
func TestLostOfferIsMadeAgain(t *testing.T) {
	s := newState()
	on(&s, task(1))
	b := idle("coder-1", "coder")
	s.hear(b, start)
	if got := show(s.match(start)); got != "T-001:coder-1" {
		t.Fatalf("offers are %q", got)
	}
	b.N = 2
	s.hear(b, start)
	if got := show(s.match(start)); got != "" {
		t.Errorf("a plain beat: offers are %q", got)
	}
	b.N, b.Back = 3, true
	s.hear(b, start)
	if got := show(s.match(start)); got != "T-001:coder-1" {
		t.Errorf("back again: offers are %q", got)
	}
	if got := s.due(); !got.Equal(start.Add(patience)) {
		t.Errorf("the offer lapses at %v, want %v", got, start.Add(patience))
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
	on(&s, task(1, heldBy("coder-1")))
	if got := show(s.match(start.Add(patience + 1))); got != "" {
		t.Errorf("its idle beat is older than its claim, and it was offered %q", got)
	}
	on(&s, task(1, status(team.Completed)))
	if got := show(s.match(start.Add(patience + 1))); got != "" {
		t.Errorf("it has not said that it is idle again, and was offered %q", got)
	}
	b.N, b.State = 2, team.Running
	s.hear(b, start)
	b.N, b.State = 3, team.Idle
	s.hear(b, start)
	if got := show(s.match(start)); got != "T-002:coder-1" {
		t.Errorf("idle again, it was offered %q", got)
	}
	// Edited: the offer is stale, and both may have another at once. The agent has
	// waited less than one that has come meanwhile.
	s.hear(idle("coder-2", "coder"), start)
	on(&s, task(2, priority(1)), task(3))
	if got := show(s.match(start)); got != "T-002:coder-2 T-003:coder-1" {
		t.Errorf("after an edit, offered %q", got)
	}
	on(&s, task(3, heldBy("coder-9")), task(4))
	if got := show(s.match(start)); got != "T-004:coder-1" {
		t.Errorf("somebody else was first, and it was offered %q", got)
	}
}

// Beats and the feed come by different ways: an agent that is quick says that it is
// idle again before the feed shows its claim, or its completion. The revision that its
// beat names tells which is newer.
func TestQuickAgent(t *testing.T) {
	claimed, completed := task(1, heldBy("coder-1")), task(1, status(team.Completed))
	beat := func(n, seq uint64) *team.Heartbeat {
		b := idle("coder-1", "coder")
		b.N, b.BoardSeq = n, seq
		return &b
	}
	type step struct {
		task *team.Task // of the feed, or
		beat *team.Heartbeat
		want string
	}
	for name, steps := range map[string][]step{ // the claim is revision 3, the completion 4
		"before its claim":       {{beat: beat(2, 4), want: "T-002:coder-1"}, {task: &claimed}, {task: &completed}},
		"before its completion":  {{task: &claimed}, {beat: beat(2, 4), want: "T-002:coder-1"}, {task: &completed}},
		"after its completion":   {{task: &claimed}, {task: &completed}, {beat: beat(2, 4), want: "T-002:coder-1"}},
		"before it has claimed":  {{beat: beat(2, 0)}, {task: &claimed}, {task: &completed}, {beat: beat(3, 4), want: "T-002:coder-1"}},
		"while it has the claim": {{task: &claimed}, {beat: beat(2, 2)}, {beat: beat(3, 4), want: "T-002:coder-1"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newState()
			on(&s, task(1), task(2))
			s.hear(*beat(1, 0), start)
			if got := show(s.match(start)); got != "T-001:coder-1" {
				t.Fatalf("offers are %q", got)
			}
			for i, step := range steps {
				if step.task != nil {
					on(&s, *step.task)
				} else {
					s.hear(*step.beat, start)
				}
				if got := show(s.match(start)); got != step.want {
					t.Errorf("step %d: offered %q, want %q", i, got, step.want)
				}
			}
		})
	}
}

// One that was given something else to do does not keep the task it was offered.
func TestAssignedInstead(t *testing.T) {
	s := newState()
	on(&s, task(1), task(2, role("nobody")))
	s.hear(idle("coder-1", "coder"), start)
	s.match(start)
	on(&s, task(2, role("nobody"), heldBy("coder-1")))
	s.hear(idle("coder-2", "coder"), start)
	if got := show(s.match(start)); got != "T-001:coder-2" {
		t.Errorf("offered %q", got)
	}
}

func TestAgentLeaves(t *testing.T) {
	s := newState()
	on(&s, task(1))
	s.hear(idle("coder-1", "coder"), start)
	s.match(start)
	s.setMember(team.Member{AgentID: "coder-1", State: team.Stopped}, true)
	s.hear(idle("coder-2", "coder"), start)
	s.hear(idle("coder-3", "coder"), start)
	s.setMember(team.Member{AgentID: "coder-2"}, false)
	if got := show(s.match(start)); got != "T-001:coder-3" {
		t.Errorf("offered %q", got)
	}
}

// Priority and role may change while the task is pending.
func TestEditedTask(t *testing.T) {
	s := newState()
	on(&s, task(1, priority(2)), task(2), task(3), task(4, role("tester")))
	on(&s, task(3, priority(1)), task(1), task(4), task(2, role("tester")))
	for n := range 4 {
		s.hear(idle(team.AgentID(fmt.Sprintf("coder-%d", n)), "coder"), start)
	}
	if got := show(s.match(start)); got != "T-003:coder-0 T-001:coder-1 T-004:coder-2" {
		t.Errorf("offered %q", got)
	}
	on(&s, task(5, behind("T-003", "T-001")), task(3, status(team.Completed)))
	if got := show(s.match(start)); got != "" {
		t.Errorf("blocked, but offered %q", got)
	}
	on(&s, task(5, behind("T-003", "T-003")))
	if got := show(s.match(start)); got != "T-005:coder-3" {
		t.Errorf("with nothing left to wait for, offered %q", got)
	}
}

// In a run without disturbances each task wakes one agent, in whatever order the
// feed and the beats come.
func TestOneWakePerTask(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newState()
		const tasks = 60
		for n := range tasks {
			change := role([]string{"", "coder", "tester"}[n%3])
			if n >= 10 && n%2 == 0 {
				on(&s, task(n+1, change, behind(team.MakeTaskID(n-8), team.MakeTaskID(n-3))))
			} else {
				on(&s, task(n+1, change))
			}
		}
		// What an agent does goes two ways, each of which keeps its order.
		type worker struct {
			beats []team.Heartbeat
			n     uint64
		}
		workers := map[team.AgentID]*worker{}
		var feed []team.Task
		beat := func(a team.AgentID, st team.MemberState, seq uint64) {
			w := workers[a]
			w.n++
			b := idle(a, map[bool]string{true: "coder", false: "tester"}[a < "d"])
			b.N, b.State, b.BoardSeq = w.n, st, seq
			w.beats = append(w.beats, b)
		}
		for _, a := range []team.AgentID{"a", "b", "c", "d", "e", "f"} {
			workers[a] = &worker{}
			beat(a, team.Idle, 0)
		}
		offers, now := 0, start
		for {
			for _, o := range s.match(now) {
				offers++
				a := o.agent.heartbeat.AgentID
				held := o.node.task
				held.Status, held.Assignee, held.Incarnation = team.InProgress, a, 1
				done := held
				done.Status = team.Completed
				feed = append(feed, held, done)
				last := s.seq + uint64(len(feed)) // revision of done
				beat(a, team.Running, last-1)
				beat(a, team.Idle, last)
			}
			var ready []team.AgentID
			for _, a := range []team.AgentID{"a", "b", "c", "d", "e", "f"} {
				if len(workers[a].beats) > 0 {
					ready = append(ready, a)
				}
			}
			if len(ready)+len(feed) == 0 {
				break
			}
			now = now.Add(time.Millisecond)
			if len(ready) == 0 || len(feed) > 0 && rapid.Bool().Draw(t, "feed") {
				on(&s, feed[0])
				feed = feed[1:]
				continue
			}
			w := workers[rapid.SampledFrom(ready).Draw(t, "agent")]
			s.hear(w.beats[0], now)
			w.beats = w.beats[1:]
		}
		if s.count[team.Completed] != tasks || offers != tasks {
			t.Fatalf("%d of %d tasks are completed, by %d offers", s.count[team.Completed], tasks, offers)
		}
	})
}
