package engine

import (
	"context"
	"slices"
	"sync"
)

// Interrupt is why the owner is to look at something before the engine continues: it cuts short the
// step that is under way and skips the rest of the turn. It holds until the next turn begins, or longer
// while it is not over.
type Interrupt struct {
	Cause error       // the context of the step ends with it
	Any   bool        // it ends any step; else the model's call, and that of a tool that yields
	Skip  string      // the result of the calls that are not begun; "": they begin, and end with Cause
	Over  func() bool // reports whether it may be forgotten; must not block
}

// interrupts are those of one engine. Safe for concurrent use.
type interrupts struct {
	mu      sync.Mutex
	pending []Interrupt
	stop    context.CancelCauseFunc // ends the step under way; nil: none is
	yields  bool                    // any interrupt ends that step
}

// Interrupt cuts short what the engine is at, unless i is over. It may be called at any time and
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

// NewTurn lets steps begin again, unless there is an interrupt that is not over. The owner calls it
// once it has looked at what interrupted it.
func (e *Engine) NewTurn() {
	e.interrupts.mu.Lock()
	defer e.interrupts.mu.Unlock()
	e.interrupts.pending = slices.DeleteFunc(e.interrupts.pending, func(i Interrupt) bool { return i.Over() })
}

// Interrupts returns all interrupts of this turn.
func (e *Engine) Interrupts() []Interrupt {
	e.interrupts.mu.Lock()
	defer e.interrupts.mu.Unlock()
	return slices.Clone(e.interrupts.pending)
}

// step returns the context of one model call or tool call, which interrupts end: any of them if it
// yields. One that came just before ends it at once. It also ends when the owner's leave is over
// ([Owner].Within). done must be called.
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
