package index

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"agentteam/pkg/store/board"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

// bucket is what a bucket holds, and what follows from that, worked out anew each
// time it is asked.
type bucket struct {
	entries map[string]broker.Entry // newest of each key
	tasks   map[team.TaskID]team.Task
	intent  []team.TaskID // of the newest sequence
	open    bool          // the last task of that has not come yet
	next    int
	seq     uint64
}

// entry makes the next entry of the feed.
func (b *bucket) entry(key string, value any) broker.Entry {
	b.seq++
	e := broker.Entry{Key: key, Revision: b.seq, Deleted: value == nil}
	if value != nil {
		e.Value, _ = json.Marshal(value)
	}
	b.entries[key] = e
	return e
}

// visible are the tasks that everybody is to see, by number.
func (b *bucket) visible() []team.Task {
	var all []team.Task
	for id, t := range b.tasks {
		if !b.open || !slices.Contains(b.intent, id) {
			all = append(all, t)
		}
	}
	slices.SortFunc(all, func(a, b team.Task) int { return a.ID.Number() - b.ID.Number() })
	return all
}

// snapshot is the feed as one sees it who begins to read now.
func (b *bucket) snapshot() state {
	s := newState()
	for _, e := range slices.SortedFunc(maps.Values(b.entries), func(a, b broker.Entry) int { return int(a.Revision) - int(b.Revision) }) {
		_ = s.take(e, start)
	}
	return s
}

// Whatever is written and heard in whatever order, the index knows what follows
// from the bucket, and offers what may be offered, to whom, in order of work.
func TestIndexIsTrue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newState()
		b := &bucket{entries: map[string]broker.Entry{}, tasks: map[team.TaskID]team.Task{}, next: 1}
		beats := map[team.AgentID]team.Heartbeat{}
		heard := map[team.AgentID]time.Time{}
		bound := map[team.AgentID]time.Time{}         // agents that were made an offer, until when
		to := map[team.AgentID]team.TaskID{}          // which task
		knew := map[team.AgentID]uint64{}             // up to where they knew the board then
		offered := map[team.TaskID]time.Time{}        // tasks that were offered at their present revision, until when
		agents := []team.AgentID{"ann", "bob", "cat"} // of these roles
		roles := map[team.AgentID]string{"ann": "coder", "bob": "coder", "cat": "tester"}
		now := start
		put := func(key string, value any) error { return s.take(b.entry(key, value), now) }

		// write stores a task's key.
		write := func(id team.TaskID, value any) error {
			delete(b.tasks, id)
			delete(offered, id)
			maps.DeleteFunc(bound, func(a team.AgentID, _ time.Time) bool { return to[a] == id })
			if task, ok := value.(team.Task); ok {
				task.Revision = b.seq + 1
				b.tasks[id] = task
			}
			if value != nil && b.open && id == b.intent[len(b.intent)-1] {
				b.open = false
			}
			return put(subject.KeyTask(id), value)
		}
		anyID := func() team.TaskID { return team.MakeTaskID(rapid.IntRange(1, b.next).Draw(t, "id")) }
		anyTask := func(id team.TaskID) team.Task {
			task := task(id.Number(), priority(rapid.IntRange(0, 2).Draw(t, "priority")),
				role(rapid.SampledFrom([]string{"", "", "coder", "tester"}).Draw(t, "role")),
				status(rapid.SampledFrom(append(team.TaskStatuses(), team.Pending, team.Pending)).Draw(t, "status")))
			for range rapid.IntRange(0, 3).Draw(t, "dependencies") {
				task.Dependencies = append(task.Dependencies, anyID())
			}
			if task.Status == team.Pending {
				task.ReservedFor = rapid.SampledFrom([]team.AgentID{"", "", "ann", "cat", "dan"}).Draw(t, "reserved for")
			} else {
				task.Assignee, task.Incarnation = rapid.SampledFrom(agents).Draw(t, "assignee"), 1
			}
			return task
		}
		// The present intent's keys come in any order, the last one last.
		missing := func() (ids []team.TaskID) {
			for _, id := range b.intent[:len(b.intent)-1] {
				if _, ok := b.entries[subject.KeyTask(id)]; !ok {
					ids = append(ids, id)
				}
			}
			if len(ids) == 0 {
				return b.intent[len(b.intent)-1:]
			}
			return ids
		}
		sequence := func() {
			seq := board.Sequence{V: team.Protocol, Next: b.next}
			for _, id := range b.intent {
				seq.Intent = append(seq.Intent, task(id.Number()))
			}
			if err := put(subject.KeySequence, seq); err != nil {
				t.Fatal(err)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"create": func(*rapid.T) {
				if b.open {
					id := rapid.SampledFrom(missing()).Draw(t, "key")
					_ = write(id, task(id.Number()))
					return
				}
				b.intent, b.open = nil, true
				for range rapid.IntRange(1, 3).Draw(t, "tasks") {
					b.intent = append(b.intent, team.MakeTaskID(b.next))
					b.next++
				}
				sequence()
			},
			"rewrite the sequence": func(*rapid.T) {
				if len(b.intent) > 0 {
					sequence()
				}
			},
			"change": func(*rapid.T) {
				id := anyID()
				if b.entries[subject.KeyTask(id)].Revision == 0 {
					return // nobody writes what is not there
				}
				changed := anyTask(id)
				if changed.Status == team.InProgress {
					if b.open && slices.Contains(b.intent, id) {
						return // nobody claims what he cannot see
					}
					a := changed.Assignee
					if until, ok := bound[a]; ok && now.Before(until) && b.seq+1 > beats[a].BoardSeq { // it works on something else
						delete(offered, to[a])
						delete(bound, a)
					}
				}
				if err := write(id, changed); err != nil {
					t.Fatal(err)
				}
			},
			"damage": func(*rapid.T) {
				id := anyID()
				if b.entries[subject.KeyTask(id)].Revision == 0 {
					return
				}
				other := task(id.Number() + 1)
				foreign := task(id.Number())
				foreign.V = 99
				var bad any = rapid.SampledFrom([]any{"nonsense", other, foreign, nil}).Draw(t, "damage")
				if other, ok := bad.(team.Task); ok {
					bad = &other // no task of the model
				}
				if bad == nil && slices.Contains(b.intent, id) {
					return // it would be created again
				}
				if err := write(id, bad); (err == nil) != (bad == nil) {
					t.Fatalf("%v: %v", bad, err)
				}
			},
			"beat": func(*rapid.T) {
				a := rapid.SampledFrom(agents).Draw(t, "agent")
				beat := team.Heartbeat{AgentID: a, Incarnation: 1, N: beats[a].N + 1, Role: roles[a],
					BoardSeq: rapid.Uint64Range(0, b.seq+2).Draw(t, "board_seq"),
					State:    rapid.SampledFrom([]team.MemberState{team.Idle, team.Idle, team.Running}).Draw(t, "state")}
				beats[a], heard[a] = beat, now
				if beat.State != team.Idle || beat.BoardSeq > knew[a] {
					delete(bound, a)
				}
				s.hear(beat, now)
			},
			"time": func(*rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(1, 7000).Draw(t, "ms")) * time.Millisecond)
			},
			"match": func(*rapid.T) {
				all := team.View(b.visible())
				free := func() (list []team.TaskView) {
					for _, v := range all {
						if v.Status == team.Pending && !v.IsBlocked && !now.Before(offered[v.ID]) {
							list = append(list, v)
						}
					}
					return list
				}
				asks := func(a team.AgentID) bool {
					holds := slices.ContainsFunc(all, func(v team.TaskView) bool {
						return v.Status == team.InProgress && v.Assignee == a && v.Revision > beats[a].BoardSeq
					})
					return beats[a].State == team.Idle && !holds && now.Sub(heard[a]) < silent && !now.Before(bound[a])
				}
				before := free()
				for _, o := range s.match(now) {
					id, a := o.node.id, o.agent.heartbeat.AgentID
					at := slices.IndexFunc(before, func(v team.TaskView) bool { return v.ID == id })
					if at < 0 || !before[at].Claimable(a, roles[a]) {
						t.Fatalf("%s was offered to %s, which may not be: %v", id, a, before)
					}
					if !asks(a) {
						t.Fatalf("%s was offered to %s, which does not ask", id, a)
					}
					for _, v := range before {
						own, first := v.ReservedFor != "", before[at].ReservedFor != ""
						if v.Claimable(a, roles[a]) && (own && !first || own == first && v.Before(before[at].Task)) {
							t.Fatalf("%s was offered to %s before %s", id, a, v.ID)
						}
					}
					before = slices.Delete(before, at, at+1)
					to[a], knew[a] = id, beats[a].BoardSeq
					bound[a], offered[id] = now.Add(patience), now.Add(patience)
				}
				for _, v := range free() {
					for _, a := range agents {
						// What the feed has shown of it may make its last beat stale.
						if asks(a) && s.agents[a].heartbeat.State == team.Idle && s.agents[a].offer == nil && v.Claimable(a, roles[a]) {
							t.Fatalf("%s is not offered to %s", v.ID, a)
						}
					}
				}
			},
			"": func(t *rapid.T) {
				same(t, &s, b)
				snapshot := b.snapshot()
				same(t, &snapshot, b)
			},
		})
	})
}

// same compares what s knows with the bucket.
func same(t *rapid.T, s *state, b *bucket) {
	views := team.View(b.visible())
	count, free := map[team.TaskStatus]int{}, map[string]int{}
	var running, want, kept, wantKept []string
	for _, v := range views {
		count[v.Status]++
		if v.ReservedFor != "" {
			wantKept = append(wantKept, fmt.Sprint(v.ID, v.ReservedFor, !v.IsBlocked))
		} else if v.Status == team.Pending && !v.IsBlocked {
			free[v.Role]++
		}
		if v.Status == team.InProgress {
			want = append(want, fmt.Sprint(v.ID, v.Revision))
		}
	}
	l := s.snapshot()
	nonzero := func(m map[team.TaskStatus]int) map[team.TaskStatus]int {
		maps.DeleteFunc(m, func(_ team.TaskStatus, n int) bool { return n == 0 })
		return m
	}
	if got := nonzero(l.Tasks); !maps.Equal(got, count) {
		t.Fatalf("counts are %v, want %v", got, count)
	}
	maps.DeleteFunc(l.Claimable, func(_ string, n int) bool { return n == 0 })
	if !maps.Equal(l.Claimable, free) {
		t.Fatalf("claimable are %v, want %v", l.Claimable, free)
	}
	for _, t := range l.Running {
		running = append(running, fmt.Sprint(t.ID, t.Revision))
	}
	if !slices.Equal(running, want) {
		t.Fatalf("in progress are %v, want %v", running, want)
	}
	for _, r := range l.Reserved {
		kept = append(kept, fmt.Sprint(r.ID, r.ReservedFor, r.Claimable))
	}
	if !slices.Equal(kept, wantKept) {
		t.Fatalf("reserved are %v, want %v", kept, wantKept)
	}
	page := s.page(team.Query{Limit: team.MaxPage})
	counts := team.Counts{}
	for _, v := range views {
		counts[v.Status]++
	}
	if !maps.Equal(page.ByStatus, counts) {
		t.Fatalf("counts are %v, want %v", page.ByStatus, counts)
	}
	if len(page.Tasks) != len(views) || page.Total != len(views) || l.Seq != b.seq {
		t.Fatalf("%d tasks of %d, want %d", len(page.Tasks), page.Total, len(views))
	}
	for i, v := range page.Tasks {
		views[i].Blocks = slices.Compact(views[i].Blocks) // a dependency may be named twice
		if v.Kept = views[i].Kept; !reflect.DeepEqual(v, views[i]) {
			t.Fatalf("%s is\n%+v, want\n%+v", v.ID, v, views[i])
		}
	}
	for key, e := range b.entries {
		kind, id := subject.ParseKey(key)
		_, good := b.tasks[team.TaskID(id)]
		if _, bad := s.bad[key]; kind == subject.Task && bad != (!good && !e.Deleted) {
			t.Fatalf("%s is set aside: %v", key, bad)
		}
	}
	work := 0
	for role, h := range s.heaps {
		for i, n := range h.nodes {
			if n.at != i || n.task.Role != role || n.task.ReservedFor != "" || !n.claimable() || n.offer != nil {
				t.Fatalf("%s is in the heap of %q at %d", n.id, role, i)
			}
			work++
		}
	}
	for a, h := range s.kept {
		for i, n := range h.nodes {
			if n.at != i || n.task.ReservedFor != a || !n.claimable() || n.offer != nil {
				t.Fatalf("%s is in the heap of %s at %d", n.id, a, i)
			}
			work++
		}
		if h.Len() == 0 {
			t.Fatalf("the heap of %s is empty", a)
		}
	}
	offered := 0
	for _, n := range s.nodes {
		if n.claimable() && n.offer != nil {
			offered++
		}
	}
	for i, n := range s.ready.nodes {
		if n.ready != i || !n.claimable() || n.older(s.ready.first()) {
			t.Fatalf("%s is among the claimable ones at %d", n.id, i)
		}
	}
	if s.ready.Len() != work+offered {
		t.Fatalf("%d tasks are claimable, %d to be offered and %d offered", s.ready.Len(), work, offered)
	}
}
