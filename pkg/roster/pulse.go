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
	mu    sync.Mutex
	heard map[team.AgentID]Heard
}

// Heard is a beat with the time at which it was heard, by this process's
// monotonic clock.
type Heard struct {
	team.Beat
	At time.Time
}

// NewPulse returns a Pulse that has heard nobody.
func NewPulse() *Pulse { return &Pulse{heard: map[team.AgentID]Heard{}} }

// Hear takes in a beat and reports whether it was news: a stale one, which comes
// late after a reconnect, changes nothing.
func (p *Pulse) Hear(b team.Beat) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if last, ok := p.heard[b.AgentID]; ok && !b.Newer(last.Beat) {
		return false
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

// State derives how m stands from its record and its last beat: a member with a
// process that was heard, and then not for the lease, is lost.
func (h Heard) State(m team.Member, lease time.Duration, now time.Time) team.MemberState {
	switch {
	case !m.HasProcess(), h.At.IsZero(): // not heard yet says nothing: we may have begun to listen just now
		return m.State
	case h.Incarnation == m.Incarnation && now.Sub(h.At) < lease:
		return h.Beat.State
	}
	return team.Lost
}
