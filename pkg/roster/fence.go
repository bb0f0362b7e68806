package roster

import (
	"context"
	"errors"
	"sync"
	"time"
)

// ErrFenced is the cause of a context that ended because the membership could not
// be confirmed for so long that the member's task may be somebody else's by now.
var ErrFenced = errors.New("NATS has not confirmed the membership for five sixths of the lease")

// fence is the holder's side of the lease: the team frees the task of a member that
// is not heard for a lease, so a member that does not hear from the team must stop
// before. It is certain of its membership as of the moment when the last answered
// reading of its record began.
type fence struct {
	lease time.Duration

	mu      sync.Mutex
	certain time.Time
	moved   chan struct{} // closed when certain moves
}

func newFence(lease time.Duration, now time.Time) *fence {
	return &fence{lease: lease, certain: now, moved: make(chan struct{})}
}

// confirm takes in an answered reading that began at the given time.
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

// wait returns once the membership is certain enough to begin something new: as of
// less than two thirds of the lease ago.
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

// within returns a context that ends, with the cause ErrFenced, when what was begun
// must end: the membership is certain as of five sixths of the lease ago only.
func (f *fence) within(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		for {
			certain, moved := f.state()
			limit := time.NewTimer(time.Until(certain.Add(f.lease * 5 / 6)))
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
