package engine

import (
	"context"
	"slices"
	"sync"
)

// Interrupt is a reason for the owner to act before the engine continues: it cancels the current
// step and skips the rest of the turn. It holds until the next turn begins, or longer while it is
// not over.
type Interrupt struct {
	Cause error       // the context of the step ends with it
	Any   bool        // it ends any step; else only a call of the model or of a tool that yields
	Skip  string      // the result of the calls that have not begun; "": they begin, and end with Cause
	Over  func() bool // reports whether it may be forgotten; must not block
}

// interrupts holds the pending interrupts of one engine. Safe for concurrent use.
type interrupts struct {
	mu      sync.Mutex
	pending []Interrupt
	stop    context.CancelCauseFunc // ends the step under way; nil: none is
	yields  bool                    // any interrupt ends that step
}

// Interrupt cancels the engine's current step, unless i is over. It is safe for concurrent use and
// does not block.
func (e *Engine) Interrupt(i Interrupt) {
	x := &e.interrupts
	x.mu.Lock()
	defer x.mu.Unlock()
	if i.Over() {
		return
	}
	x.pending = append(x.pending, i)
	if x.stop != nil && (i.Any || x.yields) {
		x.stop(i.Cause)
	}
}

// NewTurn lets steps begin again, unless an interrupt is not over. The owner calls it once it has
// handled its interrupts.
func (e *Engine) NewTurn() {
	e.interrupts.mu.Lock()
	defer e.interrupts.mu.Unlock()
	e.interrupts.pending = slices.DeleteFunc(e.interrupts.pending, func(i Interrupt) bool { return i.Over() })
}

// Interrupts returns the pending interrupts of this turn.
func (e *Engine) Interrupts() []Interrupt {
	e.interrupts.mu.Lock()
	defer e.interrupts.mu.Unlock()
	return slices.Clone(e.interrupts.pending)
}

// step returns the context of one model call or tool call, which interrupts cancel: any of them if
// it yields. A pending interrupt cancels it immediately. It also ends when the owner's permission
// does ([Owner].Within). done must be called.
func (e *Engine) step(ctx context.Context, yields bool) (step context.Context, done func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	within, release := e.o.Owner.Within(ctx)
	x := &e.interrupts
	x.mu.Lock()
	defer x.mu.Unlock()
	x.stop, x.yields = cancel, yields
	for _, i := range x.pending {
		if i.Any || yields {
			cancel(i.Cause)
		}
	}
	return within, func() {
		release()
		x.mu.Lock()
		defer x.mu.Unlock()
		x.stop = nil
		cancel(nil)
	}
}
