package index

import (
	"cmp"
	"maps"
	"slices"
	"sort"
	"time"

	"agentteam/pkg/team"
)

// Snapshot is the state of the team by the feed so far. Its cost depends on the members and the tasks in progress, not on the
// size of the board. The caller must not change it.
type Snapshot struct {
	Team        team.Team
	Members     []team.Member           // in order of joining
	Tasks       map[team.TaskStatus]int // how many of each status
	Running     []team.Task             // those in progress, by number
	Claimable   map[string]int          // how many could be claimed now, by role; "" is for any; those that are reserved do not count
	Reserved    []Reserved              // those that are pending and reserved, by number
	Deaf        []team.AgentID          // idle agents that take none of their offers
	Moved       uint64                  // newest revision at which a task changed
	Quarantined []team.Quarantined      // records that cannot be read, by key
	Seq         uint64                  // of the newest entry taken in
}

func (s *state) snapshot() Snapshot {
	if s.roster == nil {
		s.roster = slices.SortedFunc(maps.Values(s.members), func(a, b team.Member) int {
			return cmp.Or(a.JoinedAt.Compare(b.JoinedAt), cmp.Compare(a.AgentID, b.AgentID))
		})
	}
	l := Snapshot{Team: s.team, Members: s.roster, Tasks: maps.Clone(s.count), Claimable: maps.Clone(s.free),
		Moved: s.moved, Quarantined: s.quarantined(), Seq: s.seq}
	for _, n := range slices.SortedFunc(maps.Keys(s.running), (*node).compareNumber) {
		l.Running = append(l.Running, n.task)
	}
	for _, n := range slices.SortedFunc(maps.Keys(s.reserved), (*node).compareNumber) {
		l.Reserved = append(l.Reserved, Reserved{n.task, n.claimable()})
	}
	for name, a := range s.agents {
		if a.ignored >= maxIgnored {
			l.Deaf = append(l.Deaf, name)
		}
	}
	slices.Sort(l.Deaf)
	return l
}

// Reserved is a pending task that is reserved for a member.
type Reserved struct {
	team.Task
	Claimable bool // by that member, now
}

func (s *state) quarantined() []team.Quarantined {
	return slices.SortedFunc(maps.Values(s.bad), func(a, b team.Quarantined) int { return cmp.Compare(a.Key, b.Key) })
}

// End is a task that failed or was cancelled.
type End struct {
	Task     team.Task
	Blocks   []team.TaskID // pending tasks that depend on it, by number
	Revision uint64        // at which it came in the feed
}

// endsSince returns the ends that came after a revision, in order.
func (s *state) endsSince(revision uint64) []End {
	var ends []End
	from := sort.Search(len(s.ended), func(i int) bool { return s.ended[i].revision > revision })
	for _, m := range s.ended[from:] {
		n := m.node
		if n.endedAt != m.revision || n.task.Status != team.Failed && n.task.Status != team.Cancelled {
			continue // written again since
		}
		ends = append(ends, End{n.task, dependents(n, func(d *node) bool { return d.task.Status == team.Pending }), m.revision})
	}
	return ends
}

// doneSince returns the tasks that were completed after a revision, in order.
func (s *state) doneSince(revision uint64) []team.Task {
	var done []team.Task
	from := sort.Search(len(s.done), func(i int) bool { return s.done[i].revision > revision })
	for _, m := range s.done[from:] {
		if m.node.endedAt == m.revision && m.node.task.Status == team.Completed {
			done = append(done, m.node.task)
		}
	}
	return done
}

// lastDone returns the last completed task of each of the members that completed one.
func (s *state) lastDone(members []team.AgentID) map[team.AgentID]team.Task {
	last := map[team.AgentID]team.Task{}
	for _, m := range slices.Backward(s.done) {
		if len(last) == len(members) {
			break
		}
		t := m.node.task
		if _, known := last[t.Assignee]; !known && t.Status == team.Completed && slices.Contains(members, t.Assignee) {
			last[t.Assignee] = t
		}
	}
	return last
}

// Unfinished is a task that is open or has failed, with the dependency that blocks it for good, if there is one.
type Unfinished struct {
	team.TaskView
	Dead       team.TaskID     // a dependency that has failed or was cancelled; "" if there is none
	DeadStatus team.TaskStatus // the status of Dead
}

// unfinishedTasks returns the first limit tasks that are open or have failed, by number, and their total number.
func (s *state) unfinishedTasks(limit int) (first []Unfinished, total int) {
	total = s.count[team.Pending] + s.count[team.InProgress] + s.count[team.Failed]
	for n := range s.byNumber {
		if len(first) == limit {
			break
		}
		if !n.task.Status.Open() && n.task.Status != team.Failed {
			continue
		}
		u := Unfinished{TaskView: s.view(n)}
		var dead bool
		if u.Dead, dead = u.TaskView.Dead(func(id team.TaskID) team.TaskStatus { return s.nodes[id].task.Status }); dead {
			u.DeadStatus = s.nodes[u.Dead].task.Status
		}
		first = append(first, u)
	}
	return first, total
}

// oldest returns for how long the oldest claimable task has been claimable, and the oldest running task in progress, by
// the times in their records; 0 if there is none.
func (s *state) oldest(now time.Time) (pending, running time.Duration) {
	if n := s.ready.first(); n != nil {
		pending = max(0, now.Sub(n.since))
	}
	for n := range s.running {
		if at := n.task.ClaimedAt; at != nil {
			running = max(running, now.Sub(*at))
		}
	}
	return pending, running
}

// page answers q.
func (s *state) page(q team.Query) team.Page {
	all := s.byNumber
	switch {
	case q.ReservedFor != "" && q.Claimable == nil:
		all = slices.Values(slices.SortedFunc(maps.Keys(s.reserved), (*node).compareNumber))
	case len(q.IDs) > 0:
		all = func(yield func(*node) bool) {
			for _, id := range slices.Compact(slices.Sorted(slices.Values(q.IDs))) {
				if n := s.nodes[id]; n != nil && n.known() && !yield(n) {
					return
				}
			}
		}
	}
	nodes, counts, next := team.Select(q, all, func(n *node) team.Row { return team.Row{Task: &n.task, Number: n.number, Blocked: n.missing > 0} })
	p := team.Page{Tasks: make([]team.TaskView, len(nodes)), Total: counts.Total(), ByStatus: counts, Next: next, Seq: s.seq, Quarantined: s.quarantined()}
	for i, n := range nodes {
		p.Tasks[i] = s.view(n)
	}
	return p
}
