package roster

import (
	"context"
	"errors"
	"sync"
	"time"
)

// ErrFenced is the cause of a context that ended because the membership was not confirmed for so long that another
// member may soon get the task.
var ErrFenced = errors.New("NATS has not confirmed the membership for five sixths of the lease")

// fence is the holder's side of the lease. The team frees the task of a member that was silent for a lease, so a member
// that gets no answer from the team must stop before that. The time counts from the start of the last answered read of
// its record, not from the answer.
type fence struct {
	lease time.Duration

	mu      sync.Mutex
	certain time.Time
	moved   chan struct{} // closed when certain moves
}

func newFence(lease time.Duration, now time.Time) *fence {
	return &fence{lease: lease, certain: now, moved: make(chan struct{})}
}

// confirm records an answered read that began at the given time.
func (f *fence) confirm(began time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.certain = began
	close(f.moved)
	f.moved = make(chan struct{})
}

func (f *fence) state() (certain time.Time, moved <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.certain, f.moved
}

// wait blocks until the last confirmation is less than two thirds of the lease ago, so that new work may begin, and
// returns nil; ctx's error if that ends first.
func (f *fence) wait(ctx context.Context) error {
	for {
		certain, moved := f.state()
		if time.Since(certain) < f.lease*2/3 {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-moved:
		}
	}
}

// allowed returns the time, five sixths of the lease after the last confirmation, at which all work must end, and a
// channel that is closed when that time moves.
func (f *fence) allowed() (until time.Time, moved <-chan struct{}) {
	certain, moved := f.state()
	return certain.Add(f.lease * 5 / 6), moved
}

// within returns a context that ends, with the cause ErrFenced, at the time that allowed returns.
func (f *fence) within(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		for {
			until, moved := f.allowed()
			limit := time.NewTimer(time.Until(until))
			select {
			case <-ctx.Done():
			case <-moved:
			case <-limit.C:
				cancel(ErrFenced)
			}
			limit.Stop()
			if ctx.Err() != nil {
				return
			}
		}
	}()
	return ctx, func() { cancel(nil) }
}
