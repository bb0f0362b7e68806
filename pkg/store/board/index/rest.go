package index

import (
	"container/list"
	"slices"
	"strings"
	"time"

	"agentteam/pkg/team"
)

// A member that has put a task back gets no offer of it during a cooldown. Such a task is in no heap, since it is not for
// all members of a role; there are few, so each is judged separately.

// decline records the members that have put n back, by its next copy.
func (n *node) decline(next team.Task, now time.Time) {
	if len(next.Declined) == 0 {
		n.declined = nil
		return
	}
	back := n.task.Status != team.Pending && next.Status == team.Pending
	unmerged := back && next.Unmerged > n.task.Unmerged // all that are named may have done the other part
	var all []declined
	for i, d := range next.Declined {
		at := now
		again := unmerged || back && i == len(next.Declined)-1 && d.By == next.UpdatedBy
		if known := slices.IndexFunc(n.declined, func(o declined) bool { return o.by == d.By }); known >= 0 && !again {
			at = n.declined[known].at
		}
		all = append(all, declined{team.AgentID(strings.Clone(string(d.By))), at})
	}
	n.declined = all
}

// backoffUntil reports whether a member still has a cooldown for n.
func (n *node) backoffUntil(now time.Time) bool {
	return slices.ContainsFunc(n.declined, func(d declined) bool { return now.Sub(d.at) < team.BackoffShared })
}

// rested puts tasks without a cooldown back into their heaps.
func (s *state) rested(now time.Time) {
	s.now = now
	for n := range s.resting {
		if !n.backoffUntil(now) {
			s.lift(n)
			s.place(n)
		}
	}
}

// nextResting returns the first task with a cooldown, in order of work, for which an agent without that cooldown waits,
// and that agent; nil if there is none.
func (s *state) nextResting(now time.Time) (first *node, to *asker) {
	for n := range s.resting {
		if first != nil && first.compare(n) < 0 {
			continue
		}
		if a := s.unrested(n, now); a != nil {
			first, to = n, a
		}
	}
	return first, to
}

// unrested returns the longest waiting agent that may take n and has no cooldown for it.
func (s *state) unrested(n *node, now time.Time) (longest *asker) {
	for role, q := range s.idle {
		if s.waits[role] || n.task.Role != "" && n.task.Role != role || n.task.Role == "" && s.snapshots[role] && s.heldBy() {
			continue
		}
		if a := s.firstOf(q, n, now); a != nil && (longest == nil || a.ticket < longest.ticket) {
			longest = a
		}
	}
	return longest
}

// firstOf returns the longest waiting agent in q without a cooldown for n.
func (s *state) firstOf(q *list.List, n *node, now time.Time) *asker {
	for e := q.Front(); e != nil; e = e.Next() {
		a := e.Value.(*asker)
		if now.Sub(a.heard) < silent && !s.backoffFrom(a.heartbeat.AgentID, n, now) {
			return a
		}
	}
	return nil
}

// backoffFrom reports whether a member has a cooldown for n: it has put n back, and another member could take n, or that was
// only just now and not done by the merge queue.
func (s *state) backoffFrom(a team.AgentID, n *node, now time.Time) bool {
	i := slices.IndexFunc(n.declined, func(d declined) bool { return d.by == a })
	return i >= 0 && now.Sub(n.declined[i].at) < n.task.Backoff(s.handy(a, n))
}

// handy reports whether a member other than a could take n and has not put it back.
func (s *state) handy(a team.AgentID, n *node) bool {
	for name, m := range s.members {
		if name != a && !n.task.HasDeclined(name) && n.task.Suits(m, s.team.Roles[m.Role]) && s.able(m) {
			return true
		}
	}
	return false
}

// heldBy reports whether a member whose role does more than look could take a task without a role.
func (s *state) heldBy() bool {
	for _, m := range s.members {
		if !s.snapshots[m.Role] && !s.waits[m.Role] && s.able(m) {
			return true
		}
	}
	return false
}

// able reports whether a member will take tasks sooner or later.
func (s *state) able(m team.Member) bool {
	a := s.agents[m.AgentID]
	return a == nil && team.Able(m, team.Heartbeat{}) || a != nil && a.ignored < maxIgnored && team.Able(m, a.heartbeat)
}
