package index

import (
	"container/list"
	"time"

	"agentteam/pkg/team"
)

// silent is the time without a heartbeat after which an idle agent gets no more offers.
const silent = 3 * 2 * time.Second

// asker is an agent that sends heartbeats.
type asker struct {
	heartbeat team.Heartbeat
	heard     time.Time
	offer     *offer        // under way; nil if there is none
	place     *list.Element // in the queue of its role; nil if it is in none
	queued    string        // that role
	ticket    uint64        // grows with each entry into a queue: the lowest has waited longest
	ignored   int           // offers in a row that lapsed while it went on waiting for work
}

// maxIgnored is the number of offers in a row that an agent may let lapse before it counts as deaf.
const maxIgnored = 10

// offer is a task offered to an agent. It binds the task and the agent until it lapses. News of one of them frees that one
// earlier; the other stays bound.
type offer struct {
	agent *asker
	node  *node
	until time.Time
	seq   uint64 // the agent's board_seq when the offer was made
}

// asks reports whether a waits for work.
func (s *state) asks(a *asker) bool {
	b := a.heartbeat
	if b.State != team.Idle || b.Unseen || b.Task != "" || b.AgentID == team.Leader || a.offer != nil {
		return false
	}
	for n := range b.Incarnation { // a task of an earlier process waits in the merge queue: until that is over the agent takes no other
		if s.held[team.Holder{Agent: b.AgentID, Incarnation: n}].tasks > 0 {
			return false
		}
	}
	// An idle heartbeat may be older than a claim in the feed: then the agent is not idle. Or it is newer than the feed,
	// which does not show the completion yet: then it is.
	return s.held[team.Holder{Agent: b.AgentID, Incarnation: b.Incarnation}].newest <= b.BoardSeq
}

// enqueue puts an agent that has begun to wait for work at the end of its role's queue, and removes an agent that no
// longer waits.
func (s *state) enqueue(a *asker) {
	asks := s.asks(a)
	if a.place != nil && (!asks || a.queued != a.heartbeat.Role) {
		s.idle[a.queued].Remove(a.place)
		a.place = nil
	}
	if !asks || a.place != nil {
		return
	}
	q := s.idle[a.heartbeat.Role]
	if q == nil {
		q = list.New()
		s.idle[a.heartbeat.Role] = q
	}
	s.tickets++
	a.ticket, a.queued, a.place = s.tickets, a.heartbeat.Role, q.PushBack(a)
}

// hear applies a heartbeat, unless it is stale, or of another incarnation than its member's record.
func (s *state) hear(b team.Heartbeat, now time.Time) (news bool) {
	if s.foreign(b) {
		s.holdBack(b)
		return false
	}
	a := s.agents[b.AgentID]
	if a == nil {
		a = &asker{}
		s.agents[b.AgentID] = a
	} else if !b.Newer(a.heartbeat) {
		return false
	}
	if o := a.offer; o != nil && b.Back { // it did not arrive, or its claim fails by the board's word
		a.offer = nil
		if o.node.offer == o {
			s.bind(o.node, nil)
		}
	}
	if o := a.offer; o != nil && (b.State != team.Idle || b.BoardSeq > o.seq) {
		a.offer = nil // the task stays bound: the agent may be about to claim it, or has
	}
	if b.State != team.Idle || b.BoardSeq > a.heartbeat.BoardSeq || b.Incarnation != a.heartbeat.Incarnation {
		a.ignored = 0
	}
	a.heartbeat, a.heard = b, now
	s.enqueue(a)
	return true
}

// foreign reports whether b is of another incarnation than its member's record: of a replaced process, of one whose record
// the feed has yet to show, or of an unknown one. For a member whose record is unknown or unreadable it returns false.
func (s *state) foreign(b team.Heartbeat) bool {
	m, known := s.members[b.AgentID]
	return known && m.State != team.Unreadable && b.Incarnation != m.Incarnation
}

// holdBack keeps a foreign heartbeat of a later incarnation until its record may come; of several incarnations, that of
// the next.
func (s *state) holdBack(b team.Heartbeat) {
	early, there := s.early[b.AgentID]
	if b.Incarnation > s.members[b.AgentID].Incarnation && (!there || b.Incarnation < early.Incarnation || b.Incarnation == early.Incarnation && b.Newer(early)) {
		s.early[b.AgentID] = b
	}
}

// takeEarly switches the heartbeats of m to those of its record's incarnation.
func (s *state) takeEarly(m team.Member) {
	if a := s.agents[m.AgentID]; a != nil && s.foreign(a.heartbeat) {
		s.holdBack(a.heartbeat)
		s.forget(m.AgentID)
	}
	b, there := s.early[m.AgentID]
	if !there || b.Incarnation > m.Incarnation {
		return
	}
	delete(s.early, m.AgentID)
	if s.hear(b, s.now) {
		s.heard = append(s.heard, b)
	}
}

// claimed updates the holder of t, which the feed shows in progress. o is the open offer of t, nil if there was none.
func (s *state) claimed(t team.Task, o *offer) {
	a := s.agents[t.Assignee]
	if a == nil || a.heartbeat.Incarnation != t.Incarnation {
		return
	}
	if a.offer == o {
		a.offer = nil
	}
	if t.Revision <= a.heartbeat.BoardSeq {
		return // the heartbeat is newer than the claim: the task may be over
	}
	a.heartbeat.State = team.Running // its heartbeat is older than its claim
	if o := a.offer; o != nil {      // and it was offered something else
		a.offer = nil
		if o.node.offer == o {
			s.bind(o.node, nil)
		}
	}
}

// forget drops an agent that has left the team.
func (s *state) forget(id team.AgentID) {
	a := s.agents[id]
	if a == nil {
		return
	}
	if a.place != nil {
		s.idle[a.queued].Remove(a.place)
	}
	if o := a.offer; o != nil && o.node.offer == o {
		s.bind(o.node, nil)
	}
	delete(s.agents, id)
}

// match returns the offers to make now: first tasks that are reserved for an agent that waits, then tasks in order of
// work, each to the agent that has waited longest of those whose role fits.
func (s *state) match(now time.Time) []*offer {
	s.rested(now)
	s.lapse(now)
	var made []*offer
	for {
		n, a := s.nextReserved(now)
		if n == nil {
			n, a = s.next(now)
		}
		if n == nil {
			return made
		}
		o := &offer{a, n, now.Add(s.patience), a.heartbeat.BoardSeq}
		s.bind(n, o)
		a.offer = o
		s.enqueue(a)
		s.offers.PushBack(o)
		made = append(made, o)
	}
}

// lapse ends the offers whose time is over.
func (s *state) lapse(now time.Time) {
	for e := s.offers.Front(); e != nil; e = s.offers.Front() {
		o := e.Value.(*offer)
		if now.Before(o.until) {
			return
		}
		s.offers.Remove(e)
		if o.node.offer == o {
			s.bind(o.node, nil)
		}
		if o.agent.offer == o {
			o.agent.offer = nil
			o.agent.ignored++
			s.enqueue(o.agent)
		}
	}
}

// due returns the time at which the next offer lapses; the zero time if none is under way.
func (s *state) due() time.Time {
	for e := s.offers.Front(); e != nil; e = s.offers.Front() {
		if o := e.Value.(*offer); o.node.offer == o || o.agent.offer == o {
			return o.until
		}
		s.offers.Remove(e) // settled
	}
	return time.Time{}
}

// nextReserved returns the first task that is reserved for an agent that waits, and that agent; nil if there is none.
func (s *state) nextReserved(now time.Time) (*node, *asker) {
	for name, h := range s.kept {
		if a := s.agents[name]; a != nil && a.place != nil && now.Sub(a.heard) < silent {
			return h.first(), a
		}
	}
	return nil, nil
}

// next returns the first unreserved task, in order of work, for which an agent waits, and that agent; nil if there is
// none. Its steps grow with the number of roles, and of tasks with a cooldown.
func (s *state) next(now time.Time) (first *node, to *asker) {
	var longest *asker // of those that take tasks for any role
	for role, q := range s.idle {
		a := s.front(q, now)
		if a == nil || s.waits[role] {
			continue
		}
		if (longest == nil || a.ticket < longest.ticket) && !(s.snapshots[role] && s.heldBy()) {
			longest = a
		}
		if n := s.best(role); role != "" && n != nil && (first == nil || n.compare(first) < 0) {
			first, to = n, a
		}
	}
	if n := s.best(""); longest != nil && n != nil && (first == nil || n.compare(first) < 0) {
		first, to = n, longest
	}
	if n, a := s.nextResting(now); n != nil && (first == nil || n.compare(first) < 0) {
		first, to = n, a
	}
	return first, to
}

// front returns the longest waiting agent in q; nil if there is none. It drops agents whose last heartbeat is too old;
// their next heartbeat puts them at the end.
func (s *state) front(q *list.List, now time.Time) *asker {
	for e := q.Front(); e != nil; e = q.Front() {
		a := e.Value.(*asker)
		if now.Sub(a.heard) < silent {
			return a
		}
		q.Remove(e)
		a.place = nil
	}
	return nil
}
