package agent

import (
	"context"
	"errors"
	"sync"
)

// errUrgent ends the step that an agent is at when urgent mail comes.
var errUrgent = errors.New("urgent mail came")

// urgent is what is known of urgent mail that the model has yet to see.
type urgent struct {
	mu   sync.Mutex
	seq  uint64                  // of the newest such message; 0: there is none
	stop context.CancelCauseFunc // ends the step under way; nil: none is, or it is not to be cut off
}

// Urge tells the agent that urgent mail with this sequence stands in its inbox. It cuts off
// the model's call, or a tool's that yields, and skips the rest of the turn. It may be called
// at any time and does not block.
func (a *Agent) Urge(seq uint64) {
	u := &a.urgent
	u.mu.Lock()
	defer u.mu.Unlock()
	if seq <= a.taken.Load() {
		return
	}
	u.seq = max(u.seq, seq)
	if u.stop != nil {
		u.stop(errUrgent)
	}
}

// behind returns the sequence of urgent mail behind what was taken in last, or 0.
func (u *urgent) behind(taken uint64) uint64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.seq > taken {
		return u.seq
	}
	return 0
}

// newTurn lets steps begin again, unless there is urgent mail behind a sequence.
func (u *urgent) newTurn(taken uint64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.seq <= taken {
		u.seq = 0
	}
}

// yielding returns the context of a step that urgent mail cuts off. done must be called.
func (u *urgent) yielding(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.stop = cancel; u.seq > 0 { // it came just before this step
		cancel(errUrgent)
	}
	return ctx, func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.stop = nil
		cancel(nil)
	}
}
