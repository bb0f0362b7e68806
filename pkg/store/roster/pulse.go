package roster

import (
	"maps"
	"sync"
	"time"

	"agentteam/pkg/team"
)

// Pulse keeps the last beat of every member and when it was heard. Safe for
// concurrent use.
type Pulse struct {
	settled chan struct{}
	mu      sync.Mutex
	heard   map[team.AgentID]Heard
}

// Heard is a beat with the time at which it was heard, by this process's
// monotonic clock.
type Heard struct {
	team.Heartbeat
	At time.Time
}

// NewPulse returns a Pulse that has heard nobody.
func NewPulse() *Pulse {
	return &Pulse{settled: make(chan struct{}, 1), heard: map[team.AgentID]Heard{}}
}

// Settled signals that a member was heard to have become quiet: it would do nothing by
// itself. Of several that nobody has received one remains. It is for one receiver.
func (p *Pulse) Settled() <-chan struct{} { return p.settled }

// Hear takes in a beat and reports whether it was new. A stale one of the same incarnation,
// which may come late after a reconnect, changes nothing. Which incarnation is the member's is
// not known here: who knows the records passes on no beats of others (package index).
func (p *Pulse) Hear(b team.Heartbeat) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if last, ok := p.heard[b.AgentID]; ok && b.Incarnation == last.Incarnation && !b.Newer(last.Heartbeat) {
		return false
	}
	if b.Quiet() && !p.heard[b.AgentID].Quiet() {
		select {
		case p.settled <- struct{}{}:
		default:
		}
	}
	p.heard[b.AgentID] = Heard{b, time.Now()}
	return true
}

// Last returns the last beat of every member heard so far.
func (p *Pulse) Last() map[team.AgentID]Heard {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.heard)
}

// Of returns the last beat of one member.
func (p *Pulse) Of(a team.AgentID) (Heard, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h, ok := p.heard[a]
	return h, ok
}

// State derives the state of m, a member of t, from its record and its last beat. A member
// with a process is lost if it was heard once, and then not for the lease.
func (h Heard) State(m team.Member, t team.Team, now time.Time) team.MemberState {
	switch {
	case !m.HasProcess(), h.At.IsZero(): // we may have begun to listen just now
		return m.State
	case h.Incarnation != m.Incarnation || now.Sub(h.At) >= t.Lease():
		return team.Lost
	case h.Stalled(t.Stall()):
		return team.Stalled
	}
	return h.Heartbeat.State
}
