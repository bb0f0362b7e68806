package index

import (
	"container/list"
	"time"

	"agentteam/pkg/team"
)

// silent is after how long an agent that was idle is offered nothing more.
const silent = 3 * 2 * time.Second

// asker is an agent that beats.
type asker struct {
	beat   team.Beat
	heard  time.Time
	offer  *offer        // under way; nil if there is none
	place  *list.Element // in the queue of its role; nil if it is in none
	queued string        // that role
	ticket uint64        // grows with each entry into a queue: the lowest has waited longest
}

// offer is a task offered to an agent. It binds both until it lapses, or until
// something is heard of them: then it is no longer the offer of the one or the
// other.
type offer struct {
	agent *asker
	node  *node
	until time.Time
	seq   uint64 // what the agent's beat knew of the board when it was made
}

// asks reports whether a waits for work.
func (s *state) asks(a *asker) bool {
	b := a.beat
	if b.State != team.Idle || b.Unseen || b.Task != "" || b.AgentID == team.Leader || a.offer != nil {
		return false
	}
	// An idle beat may be older than a claim that the feed has shown, or so new that the
	// feed has yet to show the completion.
	return s.held[team.Holder{Agent: b.AgentID, Incarnation: b.Incarnation}].newest <= b.BoardSeq
}

// seat puts a at the end of its queue if it has begun to ask, and takes it out of
// it if it no longer does.
func (s *state) seat(a *asker) {
	asks := s.asks(a)
	if a.place != nil && (!asks || a.queued != a.beat.Role) {
		s.idle[a.queued].Remove(a.place)
		a.place = nil
	}
	if !asks || a.place != nil {
		return
	}
	q := s.idle[a.beat.Role]
	if q == nil {
		q = list.New()
		s.idle[a.beat.Role] = q
	}
	s.tickets++
	a.ticket, a.queued, a.place = s.tickets, a.beat.Role, q.PushBack(a)
}

func (s *state) hear(b team.Beat, now time.Time) {
	a := s.agents[b.AgentID]
	if a == nil {
		a = &asker{}
		s.agents[b.AgentID] = a
	} else if !b.Newer(a.beat) {
		return
	}
	if o := a.offer; o != nil && (b.State != team.Idle || b.BoardSeq > o.seq) {
		a.offer = nil // the task stays bound: the agent may be about to claim it, or has
	}
	a.beat, a.heard = b, now
	s.seat(a)
}

// claimed takes in that the feed shows t in progress. o is the offer of it that was
// under way, if there was one.
func (s *state) claimed(t team.Task, o *offer) {
	a := s.agents[t.Assignee]
	if a == nil || a.beat.Incarnation != t.Incarnation {
		return
	}
	if a.offer == o {
		a.offer = nil
	}
	if t.Revision <= a.beat.BoardSeq {
		return // even the claim may be over by now
	}
	a.beat.State = team.Running // its beat is older than its claim
	if o := a.offer; o != nil { // and it was offered something else
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

// match decides the offers to be made now: tasks in order of work, each to the
// agent that has waited longest of those whose role fits.
func (s *state) match(now time.Time) []*offer {
	s.lapse(now)
	var made []*offer
	for {
		n, a := s.next(now)
		if n == nil {
			return made
		}
		o := &offer{a, n, now.Add(s.patience), a.beat.BoardSeq}
		s.bind(n, o)
		a.offer = o
		s.seat(a)
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
			s.seat(o.agent)
		}
	}
}

// due returns when the next offer lapses; the zero time if none is under way.
func (s *state) due() time.Time {
	for e := s.offers.Front(); e != nil; e = s.offers.Front() {
		if o := e.Value.(*offer); o.node.offer == o || o.agent.offer == o {
			return o.until
		}
		s.offers.Remove(e) // settled
	}
	return time.Time{}
}

// next returns the first task for which there is an agent, and that agent. There
// are as many steps as roles.
func (s *state) next(now time.Time) (first *node, to *asker) {
	var longest *asker // of any role
	for role, q := range s.idle {
		a := s.front(q, now)
		if a == nil {
			continue
		}
		if longest == nil || a.ticket < longest.ticket {
			longest = a
		}
		if n := s.best(role); role != "" && n != nil && (first == nil || n.compare(first) < 0) {
			first, to = n, a
		}
	}
	if n := s.best(""); longest != nil && n != nil && (first == nil || n.compare(first) < 0) {
		first, to = n, longest
	}
	return first, to
}

// front returns the agent that waits longest in q, after dropping those that were
// not heard for too long: their next beat puts them at the end.
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
