package roster

import (
	"context"
	"sync"
	"time"

	"agentteam/pkg/shutdown"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/team"
)

// Vigil listens to a team's heartbeats before its process leads the team, while the leader's lease is overdue. So the
// next leader knows the silence of members that fell together with the last one. Safe for concurrent use.
type Vigil struct {
	team *broker.Storage
	done chan struct{} // closed by End

	mu     sync.Mutex
	since  time.Time // from then on all heartbeats were heard; zero: not known yet
	seq    uint64    // of the bucket then
	proven time.Time // when the connection last answered
	ended  time.Time
	heard  map[team.AgentID]Heard
}

// NewVigil returns a vigil over the team; Keep runs it.
func NewVigil(t *broker.Storage) *Vigil {
	return &Vigil{team: t, done: make(chan struct{}), heard: map[team.AgentID]Heard{}}
}

// deafAfter is the longest time without an answer of the connection: heartbeats may be missed in a longer one, and the
// vigil begins again.
const deafAfter = Interval * 3 / 2

// Keep listens until ctx ends, or End is called. It is called once. Error: Unavailable.
func (v *Vigil) Keep(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop, err := New(v.team).Listen(team.Everyone, v.hear)
	if err != nil {
		return err
	}
	defer stop()
	go func() {
		select {
		case <-v.done:
			cancel()
		case <-ctx.Done():
		}
	}()
	v.prove(ctx)
	shutdown.Every(ctx, Interval/4, v.prove)
	return nil
}

// End ends the vigil, if there is one: its process listens in another way from now on.
func (v *Vigil) End() {
	if v == nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.ended.IsZero() {
		v.ended = time.Now()
		close(v.done)
	}
}

// prove asks the server for an answer, which comes after all heartbeats before it.
func (v *Vigil) prove(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, deafAfter)
	defer cancel()
	if v.team.Conn.NATS().FlushWithContext(ctx) == nil {
		v.answered(ctx)
	}
}

func (v *Vigil) hear(b team.Heartbeat) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.ended.IsZero() {
		v.heard[b.AgentID] = Heard{b, time.Now()}
	}
}

// answered records that the connection works.
func (v *Vigil) answered(ctx context.Context) {
	now := time.Now()
	v.mu.Lock()
	whole := !v.since.IsZero() && now.Sub(v.proven) <= deafAfter
	if whole {
		v.proven = now
	}
	v.mu.Unlock()
	if whole {
		return
	}
	seq, err := v.team.Bucket.LastSeq(ctx)
	if err != nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.since, v.proven, v.seq = now, now, seq
}

// Since returns the time since which a member has been silent, or of its last heartbeat; ok is false if that is not
// known: the member's record is newer than the vigil, or the vigil was without an answer too long at its end.
func (v *Vigil) Since(m team.Member) (at time.Time, ok bool) {
	if v == nil {
		return at, false
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	end := v.ended
	if end.IsZero() {
		end = time.Now()
	}
	if v.since.IsZero() || m.Revision > v.seq || end.Sub(v.proven) > deafAfter {
		return at, false
	}
	if h := v.heard[m.AgentID]; h.Incarnation == m.Incarnation && h.At.After(v.since) {
		return h.At, true
	}
	return v.since, true
}
