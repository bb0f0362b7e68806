package index

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/prometheus/client_golang/prometheus"

	"agentteam/pkg/store/board"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
	"agentteam/pkg/telemetry/telemetrytest"
)

// feed is a state and what it is told.
type feed struct {
	t *testing.T
	state
}

func newFeed(t *testing.T) *feed { return &feed{t, newState()} }

func (f *feed) put(key string, v any, ok bool) {
	f.t.Helper()
	e := broker.Entry{Key: key, Revision: f.seq + 1, Deleted: v == nil}
	if v != nil {
		var err error
		if e.Value, err = json.Marshal(v); err != nil {
			f.t.Fatal(err)
		}
	}
	if err := f.take(e, start); (err == nil) != ok {
		f.t.Errorf("%s: %v", key, err)
	}
}

func (f *feed) task(n int, change ...func(*team.Task)) {
	f.t.Helper()
	f.put(subject.KeyTask(team.MakeTaskID(n)), task(n, change...), true)
}

func (f *feed) plan(ids ...int) {
	f.t.Helper()
	seq := board.Sequence{V: team.Protocol}
	for _, n := range ids {
		seq.Intent = append(seq.Intent, task(n))
	}
	f.put(subject.KeySequence, seq, true)
}

// want checks which tasks there are, and which records are set aside.
func (f *feed) want(tasks string, bad ...string) {
	f.t.Helper()
	var got []string
	for _, v := range f.page(team.Query{}).Tasks {
		got = append(got, fmt.Sprint(v.ID.Number()))
	}
	if s := strings.Join(got, " "); s != tasks {
		f.t.Errorf("there are tasks %q, want %q", s, tasks)
	}
	if keys := slices.Sorted(maps.Keys(f.bad)); !slices.Equal(keys, bad) {
		f.t.Errorf("set aside are %v, want %v", keys, bad)
	}
}

func TestTake(t *testing.T) {
	f := newFeed(t)
	f.put(subject.KeyTeam, team.Team{V: team.Protocol, ID: "t", Goal: "g", LeaseSeconds: 30}, true)
	f.put(subject.KeyMember("coder-2"), team.Member{V: team.Protocol, AgentID: "coder-2", State: team.Joined, JoinedAt: start}, true)
	f.put(subject.KeyMember("coder-1"), team.Member{V: team.Protocol, AgentID: "coder-1", State: team.Joined, JoinedAt: start}, true)
	f.put(subject.KeyMember("coder-3"), team.Member{V: team.Protocol, AgentID: "coder-3", State: team.Joined}, true)
	f.put(subject.KeyMember("coder-3"), nil, true)
	f.put("something.else", "that is none of its business", true)
	f.task(2, heldBy("coder-1"))
	f.task(1)
	f.task(3, role("tester"))
	f.task(4, behind("T-001"))
	l := f.snapshot()
	if l.Team.Goal != "g" || l.Team.Revision != 1 || l.Seq != 10 || l.Moved != 10 {
		t.Errorf("Look = %+v", l)
	}
	if len(l.Members) != 2 || l.Members[0].AgentID != "coder-1" || l.Members[0].Revision != 3 {
		t.Errorf("members are %+v", l.Members)
	}
	if len(l.Running) != 1 || l.Running[0].ID != "T-002" || l.Tasks[team.Pending] != 3 || l.Claimable[""] != 1 || l.Claimable["tester"] != 1 {
		t.Errorf("Look = %+v", l)
	}
	// One that has begun to read earlier may be shown an old value again.
	if err := f.take(broker.Entry{Key: subject.KeyTask("T-002"), Value: []byte(`{"v":2,"id":"T-002","status":"pending"}`), Revision: 6}, start); err != nil {
		t.Fatal(err)
	}
	if n := len(f.snapshot().Running); n != 1 || f.seq != 10 {
		t.Errorf("after an old value %d in progress at %d", n, f.seq)
	}
	f.put(subject.KeyTask("T-002"), nil, true) // nobody of ours does that
	f.want("1 3 4")
}

// What the index keeps of tasks that it was told of by the sequence does not keep the
// sequence: that holds all tasks of a call.
func TestNodesKeepNoSequence(t *testing.T) {
	f := newFeed(t)
	seq := board.Sequence{V: team.Protocol, Intent: []team.Task{task(1), task(2)}}
	value, err := json.Marshal(seq)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.take(broker.Entry{Key: subject.KeySequence, Value: value, Revision: 1}, start); err != nil {
		t.Fatal(err)
	}
	f.task(1)
	f.task(2)
	first, last := uintptr(unsafe.Pointer(&value[0])), uintptr(unsafe.Pointer(&value[len(value)-1]))
	for key, n := range f.nodes {
		for _, id := range []team.TaskID{key, n.id, n.task.ID} {
			if at := uintptr(unsafe.Pointer(unsafe.StringData(string(id)))); first <= at && at <= last {
				t.Errorf("%s is a piece of the sequence", id)
			}
		}
	}
}

// The tasks of one call are seen all at once.
func TestPlan(t *testing.T) {
	f := newFeed(t)
	f.task(1)
	f.want("1")
	f.plan(2, 3, 4)
	f.task(3, behind("T-002"))
	f.task(2)
	f.hear(idle("coder-1", "coder"), start)
	f.hear(idle("coder-2", "coder"), start)
	if got := show(f.match(start)); got != "T-001:coder-1" {
		t.Errorf("half of a plan is there, and offered is %q", got)
	}
	f.want("1")
	if l := f.snapshot(); l.Tasks[team.Pending] != 1 {
		t.Errorf("counts are %v", l.Tasks)
	}
	if f.unfinished(start.Add(finishAfter - 1)) {
		t.Error("its creator is given no time")
	}
	if at := start.Add(finishAfter); !f.unfinished(at) || f.unfinished(at) || !f.unfinished(at.Add(finishAfter)) {
		t.Error("it is to be finished once in a while")
	}
	f.plan(2, 3, 4) // somebody else wrote it, for another reason
	f.want("1")
	f.task(4)
	f.want("1 2 3 4")
	if f.unfinished(start.Add(time.Hour)) {
		t.Error("it is finished")
	}
	if got := show(f.match(start)); got != "T-002:coder-2" {
		t.Errorf("the plan is there, and offered is %q", got)
	}
	f.plan(2, 3, 4)
	f.want("1 2 3 4")
	f.plan() // closed
	f.want("1 2 3 4")

	// Who begins to read now may be shown a plan's tasks before the plan.
	f = newFeed(t)
	f.task(2)
	f.plan(1, 2, 3)
	f.want("")
	f.task(1)
	f.task(3)
	f.want("1 2 3")
}

// A record that cannot be read is set aside and named; the rest goes on, and a
// good write heals it.
func TestQuarantine(t *testing.T) {
	foreign, other, status := task(1), task(2), task(1)
	foreign.V, status.Status = team.Protocol+1, "done"
	for name, bad := range map[string]any{
		"no record":       "nonsense",
		"another version": foreign,
		"another's":       other,
		"another status":  status,
	} {
		t.Run(name, func(t *testing.T) {
			f := newFeed(t)
			key := subject.KeyTask("T-001")
			f.task(3, behind("T-001"))
			f.task(1, func(t *team.Task) { t.Status = team.Completed })
			f.put(key, bad, false)
			f.want("3", key)
			f.task(4)
			f.hear(idle("coder-1", "coder"), start)
			f.hear(idle("coder-2", "coder"), start)
			if got := show(f.match(start)); got != "T-004:coder-1" {
				t.Errorf("offered is %q: nobody knows whether T-001 is completed", got)
			}
			q := f.snapshot().Quarantined
			if len(q) != 1 || q[0].Key != key || q[0].Revision != 3 || !strings.Contains(q[0].Error, key) {
				t.Errorf("set aside is %+v", q)
			}
			f.task(1, func(t *team.Task) { t.Status = team.Completed })
			f.want("1 3 4")
			if got := show(f.match(start)); got != "T-003:coder-2" {
				t.Errorf("healed, and offered is %q", got)
			}
		})
	}
}

// Nobody is judged by a damaged record: what else there is stays as it was.
func TestQuarantineOfOthers(t *testing.T) {
	f := newFeed(t)
	member := subject.KeyMember("coder-1")
	f.put(subject.KeyTeam, team.Team{V: team.Protocol, ID: "t", LeaseSeconds: 30}, true)
	f.put(member, team.Member{V: team.Protocol, AgentID: "coder-1", State: team.Joined}, true)
	f.plan(1, 2)
	f.put(subject.KeyGraph, map[string]any{"v": team.Protocol, "op": "of an edit"}, true)
	f.want("")
	for key, bad := range map[string]any{
		subject.KeyTeam: team.Team{V: team.Protocol + 1, ID: "t"}, member: team.Member{V: team.Protocol, AgentID: "coder-9"},
		subject.KeySequence: board.Sequence{V: team.Protocol + 1}, subject.KeyGraph: 1,
	} {
		f.put(key, bad, false)
	}
	f.want("", subject.KeyGraph, member, subject.KeySequence, subject.KeyTeam)
	if l := f.snapshot(); l.Team.V != team.Protocol || len(l.Members) != 1 || l.Members[0].AgentID != "coder-1" {
		t.Errorf("Look = %+v", l)
	}
	f.task(1)
	f.put(subject.KeyTask("T-002"), "nonsense", false) // the last of the plan: it is there
	f.want("1", subject.KeyGraph, member, subject.KeySequence, subject.KeyTask("T-002"), subject.KeyTeam)
	f.put(member, nil, true)
	if got := len(f.bad); got != 4 {
		t.Errorf("%d are set aside", got)
	}
}

func TestEnds(t *testing.T) {
	f := newFeed(t)
	f.task(1, status(team.Failed))
	f.task(2, behind("T-001"))
	f.task(3, behind("T-001"), status(team.Cancelled))
	f.task(4, status(team.InProgress))
	f.task(4, status(team.Failed))
	f.task(4) // a person has it done again
	want := func(since uint64, want ...string) {
		t.Helper()
		var got []string
		for _, e := range f.endsSince(since) {
			got = append(got, fmt.Sprintf("%s %d%v", e.Task.ID, e.Revision, e.Blocks))
		}
		if !slices.Equal(got, want) {
			t.Errorf("since %d: %q, want %q", since, got, want)
		}
	}
	want(0, "T-001 1[T-002]", "T-003 3[]")
	want(1, "T-003 3[]")
	f.task(1, status(team.Failed)) // the work of its holder was stored
	want(0, "T-001 1[T-002]", "T-003 3[]")
	want(3)
}

// What is completed is told once, at the revision at which it was.
func TestDone(t *testing.T) {
	f := newFeed(t)
	f.task(1, status(team.Completed))
	f.task(2)
	f.task(1, status(team.Completed)) // its metadata changed
	f.task(2, status(team.Completed))
	for since, want := range map[uint64][]team.TaskID{0: {"T-001", "T-002"}, 1: {"T-002"}, 4: nil} {
		var got []team.TaskID
		for _, task := range f.doneSince(since) {
			got = append(got, task.ID)
		}
		if !slices.Equal(got, want) {
			t.Errorf("since %d: %v, want %v", since, got, want)
		}
	}
	by := func(a team.AgentID) func(*team.Task) { return func(t *team.Task) { t.Assignee = a } }
	f.task(3, status(team.Completed), by("coder-1"))
	f.task(4, status(team.Completed), by("coder-2"))
	f.task(5, status(team.Completed), by("coder-1"))
	f.task(6, status(team.Failed), by("coder-1"))
	if last := f.lastDone([]team.AgentID{"coder-1", "coder-3"}); len(last) != 1 || last["coder-1"].ID != "T-005" {
		t.Errorf("last done: %v", last)
	}
}

// How long a task waited and took is told by the times in its records, and only
// by its transitions: not again by each process that begins to lead.
func TestDurations(t *testing.T) {
	at := func(s int) *time.Time { at := start.Add(time.Duration(s) * time.Second); return &at }
	f := newFeed(t)
	f.task(1, func(t *team.Task) { t.Status, t.ClaimedAt = team.InProgress, at(5) })
	f.task(2, behind("T-001"), func(t *team.Task) { t.UpdatedAt = *at(1) })
	f.task(3, func(t *team.Task) { t.UpdatedAt = *at(60) }) // by a clock that is ahead
	if pending, running := f.oldest(*at(10)); pending != 0 || running != 5*time.Second {
		t.Errorf("the oldest are %v and %v old", pending, running)
	}
	f.task(1, func(t *team.Task) {
		t.Status, t.ClaimedAt, t.CompletedAt, t.UpdatedAt = team.Completed, at(5), at(12), *at(12)
	})
	f.task(2, behind("T-001"), priority(1), func(t *team.Task) { t.UpdatedAt = *at(14) }) // edited: it has waited all the same
	f.task(2, behind("T-001"), func(t *team.Task) { t.Status, t.ClaimedAt = team.InProgress, at(15) })
	f.task(3, func(t *team.Task) { t.Status, t.ClaimedAt = team.InProgress, at(20) })
	if got := fmt.Sprint(f.queued, f.executed); got != "[3s 0s] [7s]" {
		t.Errorf("times are %s", got)
	}
	reg := prometheus.NewRegistry()
	m := newMetrics(reg, "t")
	m.show(&f.state, *at(100))
	m.observe(&f.state)
	telemetrytest.Lint(t, reg)
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]float64{}
	for _, fam := range families {
		for _, m := range fam.Metric {
			names[fam.GetName()] += m.GetGauge().GetValue() + m.GetHistogram().GetSampleSum()
		}
	}
	for name, want := range map[string]float64{
		"agentteam_task_queue_duration_seconds": 3, "agentteam_task_execution_duration_seconds": 7, "agentteam_oldest_task_age_seconds": 85,
		"agentteam_tasks": 3, "agentteam_offers_total": 0, "agentteam_unlawful_writes_total": 0, "agentteam_foreign_beats_total": 0, "agentteam_records_quarantined": 0,
	} {
		if got, ok := names[name]; !ok || got != want {
			t.Errorf("%s is %v (there: %v), want %v", name, got, ok, want)
		}
	}
	m.clear()
	if families, _ = reg.Gather(); len(families) != 5 {
		t.Errorf("%d metrics are left, want the counters and histograms", len(families))
	}
}

// Who lost a task by somebody else's hand is told; who ended it himself, or still
// holds it, is not.
func TestTakenFromHolder(t *testing.T) {
	by := func(a team.AgentID, status team.TaskStatus, change ...func(*team.Task)) func(*team.Task) {
		return func(t *team.Task) {
			t.UpdatedBy, t.Status, t.Assignee, t.Epoch = a, status, "coder-1", 1
			for _, c := range change {
				c(t)
			}
		}
	}
	epoch := func(n uint64) func(*team.Task) { return func(t *team.Task) { t.Epoch = n } }
	to := func(a team.AgentID) func(*team.Task) { return func(t *team.Task) { t.Assignee = a } }
	for name, tt := range map[string]struct {
		next func(*team.Task)
		told bool
	}{
		"reaped":                 {by(team.Watchdog, team.Pending, epoch(2)), true},
		"released by a person":   {by(team.UserAgent, team.Pending), true},
		"cancelled":              {by(team.Leader, team.Cancelled), true},
		"failed by the leader":   {by(team.Leader, team.Failed), true},
		"given to another":       {by("coder-2", team.InProgress, to("coder-2"), epoch(2)), true},
		"completed":              {by("coder-1", team.Completed), false},
		"released":               {by("coder-1", team.Pending), false},
		"adopted":                {by("coder-1", team.InProgress, epoch(2)), false},
		"metadata by the leader": {by(team.Leader, team.InProgress), false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFeed(t)
			f.task(1, by("coder-1", team.InProgress))
			f.taken = nil
			f.task(1, tt.next)
			if told := slices.Equal(f.taken, []taken{{"coder-1", "T-001"}}); told != tt.told || !told && len(f.taken) > 0 {
				t.Errorf("told: %v, want %v", f.taken, tt.told)
			}
		})
	}
}

// How long the oldest task has been claimable does not depend on when the index came
// to know that: it says the same after it has read the bucket anew, in which a record
// stands where it was written last.
func TestOldestClaimable(t *testing.T) {
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	updated := func(s int) func(*team.Task) { return func(t *team.Task) { t.UpdatedAt = at(s) } }
	// completed, and its metadata changed later.
	completed := func(done, changed int) func(*team.Task) {
		return func(t *team.Task) {
			end := at(done)
			t.Status, t.CompletedAt, t.UpdatedAt = team.Completed, &end, at(changed)
		}
	}
	for name, tt := range map[string]struct {
		feed func(f *feed)
		want int // since when the oldest is claimable, in seconds
	}{
		"written by clocks that differ": {func(f *feed) {
			f.task(1, updated(40))
			f.task(2, updated(10))
			f.task(3, updated(30))
		}, 10},
		"the oldest is claimed": {func(f *feed) {
			f.task(1, updated(40))
			f.task(2, updated(10))
			f.task(3, updated(30))
			f.task(2, heldBy("coder-1"))
		}, 30},
		"edited while it waits": {func(f *feed) {
			f.task(1, updated(10))
			f.task(2, updated(20))
			f.task(1, priority(2), updated(50))
		}, 10},
		"claimable again": {func(f *feed) {
			f.task(1, updated(10))
			f.task(2, updated(20))
			f.task(1, heldBy("coder-1"), updated(30))
			f.task(1, updated(40))
		}, 20},
		"behind one that was written to after its end": {func(f *feed) {
			f.task(2, behind("T-001"), updated(5))
			f.task(3, updated(30))
			f.task(1, completed(20, 50))
		}, 20},
		"behind several, the last of which is read first": {func(f *feed) {
			f.task(3, behind("T-001", "T-002"), updated(5))
			f.task(2, completed(30, 30))
			f.task(1, completed(20, 50))
		}, 30},
		"read after what it waited for": {func(f *feed) {
			f.task(1, completed(20, 50))
			f.task(2, behind("T-001"), updated(10))
		}, 20},
		"a plan, seen at its last key": {func(f *feed) {
			f.plan(1, 2)
			f.task(3, updated(20))
			f.task(1, updated(10))
			f.task(2, updated(10))
		}, 10},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFeed(t)
			tt.feed(f)
			if got, _ := f.oldest(at(100)); got != time.Duration(100-tt.want)*time.Second {
				t.Errorf("the oldest is %v old, want %d s", got, 100-tt.want)
			}
		})
	}
}
