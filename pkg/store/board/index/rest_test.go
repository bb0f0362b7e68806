package index

import (
	"testing"
	"time"

	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

// crew is a board of members, each idle.
func crew(t *testing.T, members ...team.Member) *feed {
	t.Helper()
	f := newFeed(t)
	f.put(subject.KeyTeam, team.Team{V: team.Protocol, ID: "t", LeaseSeconds: 30, Roles: map[string]team.Role{
		"coder": {Name: "coder"}, "explorer": {Name: "explorer", Tools: []string{"read_file", "write_file(deliverable)"}}}}, true)
	for _, m := range members {
		m.V, m.State, m.Incarnation = team.Protocol, team.Joined, 1
		f.put(subject.KeyMember(m.AgentID), m, true)
		f.hear(idle(m.AgentID, m.Role), start)
	}
	return f
}

func member(a team.AgentID, role string) team.Member { return team.Member{AgentID: a, Role: role} }

// beats has a member beat again, in that state.
func (f *feed) beats(a team.AgentID, s team.MemberState, now time.Time, change ...func(*team.Heartbeat)) {
	b := f.agents[a].heartbeat
	b.N, b.State, b.BoardSeq = b.N+1, s, f.seq
	for _, f := range change {
		f(&b)
	}
	f.hear(b, now)
}

// backBy has members take a task and put it back.
func (f *feed) backBy(n int, now time.Time, members ...team.AgentID) {
	f.t.Helper()
	f.back(n, now, team.GiveBack{Freed: team.Freed{Reason: "cannot"}}, members...)
}

func (f *feed) back(n int, now time.Time, g team.GiveBack, members ...team.AgentID) {
	f.t.Helper()
	for _, a := range members {
		last := f.nodes[team.MakeTaskID(n)].task
		h := team.Holder{Agent: a, Incarnation: 1}
		held, err := last.Claim(h, now)
		if err != nil {
			f.t.Fatal(err)
		}
		if g.Merge {
			g.Work = &team.Try{By: a, Epoch: held.Epoch, Commit: "c0ffee"}
		}
		back, err := held.GiveBack(h, held.Epoch, g, now)
		if err != nil {
			f.t.Fatal(err)
		}
		for _, t := range []team.Task{held, back} {
			f.put(subject.KeyTask(t.ID), t, true)
		}
		f.beats(a, team.Running, now)
		f.beats(a, team.Idle, now)
	}
}

// A member that has put a task back is not offered it again while another could take it, for
// five minutes at most, and else after half a minute.
func TestRests(t *testing.T) {
	idles := func(f *feed, now time.Time) { // nobody is silent
		for _, a := range []team.AgentID{"coder-1", "coder-2", "explorer-1"} {
			if f.agents[a] != nil {
				f.beats(a, f.agents[a].heartbeat.State, now, func(b *team.Heartbeat) { b.BoardSeq-- })
			}
		}
	}
	two := []team.Member{member("coder-1", "coder"), member("coder-2", "coder")}
	busy := func(f *feed, now time.Time) { f.beats("coder-2", team.Running, now) }
	for name, tt := range map[string]struct {
		members []team.Member
		play    func(f *feed, now time.Time) // what coder-2 does
		want    map[time.Duration]string     // what is offered, after how long
	}{
		"the other one is idle":            {two, func(*feed, time.Time) {}, map[time.Duration]string{0: "T-001:coder-2"}},
		"the other one is at work":         {two, busy, map[time.Duration]string{0: "", team.BackoffAlone: "", team.BackoffShared - 1: "", team.BackoffShared: "T-001:coder-1"}},
		"it is alone":                      {two[:1], func(*feed, time.Time) {}, map[time.Duration]string{0: "", team.BackoffAlone - 1: "", team.BackoffAlone: "T-001:coder-1"}},
		"the other one waits for a person": {two, func(f *feed, now time.Time) { f.beats("coder-2", team.WaitingUser, now) }, map[time.Duration]string{team.BackoffAlone - 1: "", team.BackoffAlone: "T-001:coder-1"}},
		"the other one is parked": {two, func(f *feed, now time.Time) {
			f.beats("coder-2", team.WaitingModel, now, func(b *team.Heartbeat) { b.RetryAt = &now })
		}, map[time.Duration]string{team.BackoffAlone - 1: "", team.BackoffAlone: "T-001:coder-1"}},
		"the other one has put it back, too": {two, func(f *feed, now time.Time) { f.backBy(1, now, "coder-2") }, map[time.Duration]string{0: "", team.BackoffAlone - 1: "", team.BackoffAlone: "T-001:coder-1"}},
		"the other one only looks":           {[]team.Member{two[0], member("explorer-1", "explorer")}, func(*feed, time.Time) {}, map[time.Duration]string{0: "", team.BackoffAlone: "T-001:coder-1"}},
	} {
		t.Run(name, func(t *testing.T) {
			for after, want := range tt.want {
				f := crew(t, tt.members...)
				f.task(1)
				f.backBy(1, start, "coder-1")
				tt.play(f, start)
				now := start.Add(after)
				idles(f, now)
				if got := show(f.match(now)); got != want {
					t.Errorf("after %v: %q, want %q", after, got, want)
				}
				if n := f.snapshot().Claimable[""]; n != 1 {
					t.Errorf("after %v: %d tasks are claimable", after, n)
				}
			}
		})
	}
}

// Other tasks are offered meanwhile, in order of work, and one that is reserved for the member,
// or whose text was changed, is offered at once.
func TestRestsFromThatTaskOnly(t *testing.T) {
	f := crew(t, member("coder-1", "coder"))
	f.task(1)
	f.task(2)
	f.backBy(1, start, "coder-1")
	if got := show(f.match(start)); got != "T-002:coder-1" {
		t.Errorf("offered are %q", got)
	}
	for name, change := range map[string]func(*team.Task){
		"reserved": func(t *team.Task) { t.ReservedFor = "coder-1" },
		"edited":   func(t *team.Task) { t.Declined = nil },
	} {
		f := crew(t, member("coder-1", "coder"))
		f.task(1)
		f.backBy(1, start, "coder-1")
		again := f.nodes["T-001"].task
		change(&again)
		f.put(subject.KeyTask("T-001"), again, true)
		if got := show(f.match(start)); got != "T-001:coder-1" {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// A task from which somebody rests is offered in its order, to who does not rest from it.
func TestRestingInOrder(t *testing.T) {
	f := crew(t, member("coder-1", "coder"), member("coder-2", "coder"))
	f.task(1)
	f.task(2, priority(1))
	f.backBy(1, start, "coder-1")
	if got := show(f.match(start)); got != "T-002:coder-2" { // coder-1 has waited since later
		t.Errorf("offered are %q", got)
	}
	f.backBy(2, start, "coder-2")
	if got := show(f.match(start)); got != "T-002:coder-1 T-001:coder-2" {
		t.Errorf("offered are %q", got)
	}
	later := start.Add(team.BackoffShared)
	f.match(later)
	if len(f.resting) != 0 {
		t.Errorf("%d tasks rest", len(f.resting))
	}
}

// Who only looks is offered what names its role. Other tasks wait for somebody who can do
// them, unless nobody could.
func TestLooksOnly(t *testing.T) {
	explorer, coder := member("explorer-1", "explorer"), member("coder-1", "coder")
	for name, tt := range map[string]struct {
		members []team.Member
		play    func(f *feed)
		tasks   []team.Task
		want    string
	}{
		"the coder is idle":            {[]team.Member{explorer, coder}, nil, []team.Task{task(1)}, "T-001:coder-1"},
		"the coder is at work":         {[]team.Member{explorer, coder}, func(f *feed) { f.beats("coder-1", team.Running, start) }, []team.Task{task(1)}, ""},
		"its own role":                 {[]team.Member{explorer, coder}, nil, []team.Task{task(1), task(2, role("explorer"))}, "T-001:coder-1 T-002:explorer-1"},
		"it is alone":                  {[]team.Member{explorer}, nil, []team.Task{task(1)}, "T-001:explorer-1"},
		"the coder waits for a person": {[]team.Member{explorer, coder}, func(f *feed) { f.beats("coder-1", team.WaitingUser, start) }, []team.Task{task(1)}, "T-001:explorer-1"},
		"the coder has stopped": {[]team.Member{explorer, coder}, func(f *feed) {
			gone := f.members["coder-1"]
			gone.State = team.Stopped
			f.put(subject.KeyMember("coder-1"), gone, true)
		}, []team.Task{task(1)}, "T-001:explorer-1"},
	} {
		t.Run(name, func(t *testing.T) {
			f := crew(t, tt.members...)
			if tt.play != nil {
				tt.play(f)
			}
			for _, task := range tt.tasks {
				f.put(subject.KeyTask(task.ID), task, true)
			}
			if got := show(f.match(start)); got != tt.want {
				t.Errorf("offers are %q, want %q", got, tt.want)
			}
		})
	}
}

// Of two whose work conflicts neither is offered the task while a third could take it, each time that
// they do: five minutes at most, and not at all where there is no third.
func TestBothAuthorsRest(t *testing.T) {
	two := []team.Member{member("coder-1", "coder"), member("coder-2", "coder")}
	three := append(two, member("coder-3", "coder"))
	for name, tt := range map[string]struct {
		members []team.Member
		want    map[time.Duration]string
	}{
		"a third is at work": {three, map[time.Duration]string{0: "", team.BackoffAlone: "", team.BackoffShared - 1: "", team.BackoffShared: "T-001:coder-1"}},
		"there is no third":  {two, map[time.Duration]string{0: "T-001:coder-1"}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, again := range []bool{false, true} {
				for after, want := range tt.want {
					f := crew(t, tt.members...)
					f.task(1)
					f.back(1, start, team.GiveBack{Merge: true, Others: []team.AgentID{"coder-1"}}, "coder-2")
					if again {
						for i := range f.nodes["T-001"].declined { // that is long ago
							f.nodes["T-001"].declined[i].at = start.Add(-2 * team.BackoffShared)
						}
						f.back(1, start, team.GiveBack{Merge: true, Others: []team.AgentID{"coder-1"}}, "coder-2")
					}
					now := start.Add(after)
					for _, a := range []team.AgentID{"coder-1", "coder-2"} {
						f.beats(a, team.Idle, now, func(b *team.Heartbeat) { b.BoardSeq-- })
					}
					if f.agents["coder-3"] != nil {
						f.beats("coder-3", team.Running, now)
					}
					if got := show(f.match(now)); got != want {
						t.Errorf("again %v, after %v: %q, want %q", again, after, got, want)
					}
				}
			}
		})
	}
}
