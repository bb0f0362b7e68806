package roster

import (
	"maps"
	"sync"
	"time"

	"agentteam/pkg/team"
)

// Pulse keeps the last heartbeat of every member and the time at which it was heard. Safe for concurrent use.
type Pulse struct {
	settled chan struct{}
	mu      sync.Mutex
	heard   map[team.AgentID]Heard
}

// Heard is a heartbeat with the time at which it was heard, by this process's monotonic clock.
type Heard struct {
	team.Heartbeat
	At time.Time
}

// NewPulse returns a Pulse that has heard no member.
func NewPulse() *Pulse {
	return &Pulse{settled: make(chan struct{}, 1), heard: map[team.AgentID]Heard{}}
}

// Settled returns the channel of a signal that a member became quiet: it would do nothing automatically. Signals that
// were not received merge into one. It is for one receiver.
func (p *Pulse) Settled() <-chan struct{} { return p.settled }

// Hear records a heartbeat and reports whether it was new. A stale one of the same incarnation, which may come late
// after a reconnect, changes nothing. Pulse does not know which incarnation is the member's: a caller that knows the
// records passes on no heartbeats of others (package index).
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

// Last returns the last heartbeat of every member heard so far.
func (p *Pulse) Last() map[team.AgentID]Heard {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.heard)
}

// Of returns the last heartbeat of one member.
func (p *Pulse) Of(a team.AgentID) (Heard, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h, ok := p.heard[a]
	return h, ok
}

// State returns the state of m, a member of t, by its record and its last heartbeat. A member with a process is lost if
// it was heard once, and then not for the lease.
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
