package mergequeue

import (
	"context"
	"errors"
	"sync"
	"time"

	"agentteam/pkg/shutdown"
	"agentteam/pkg/team"
)

// errLost: another queue holds the lease, or it could not be renewed in time.
var errLost = errors.New("the lease on the line was lost")

// hold is this queue's lease on the integration branch. The lease is part of the head's record: taking it moves the record's
// revision, and a former holder's write of the head fails.
type hold struct {
	records *Records
	lease   time.Duration

	mu   sync.Mutex // one write at a time
	head Head
	good time.Time // when the last write that was answered began, by the monotonic clock
}

// take takes the lease at the head seen. Error: errLost if another queue was first.
func take(ctx context.Context, r *Records, seen Head, process string, lease time.Duration) (*hold, error) {
	h := &hold{records: r, lease: lease, good: time.Now()}
	ctx, cancel := h.within(ctx)
	defer cancel()
	begun := time.Now()
	seen.Process, seen.Term, seen.N = process, seen.Term+1, 0
	var err error
	if h.head, err = r.putHead(ctx, seen); err != nil {
		if errors.Is(err, team.Conflict) {
			err = errLost
		}
		return nil, err
	}
	h.good = begun
	return h, nil
}

// within bounds a write of the holder: a write that is answered later than two thirds of the lease after the last one holds
// nothing, since others count from the moment they saw that one.
func (h *hold) within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithDeadline(ctx, h.good.Add(h.lease*2/3))
}

// now returns the holder's copy of the head.
func (h *hold) now() Head {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.head
}

// change has f change the head, and stores the result. Others may write the record too, [Records.Withdraw] and
// [Queue.Advance]: then f judges the newer copy. Errors: those of f; errLost.
func (h *hold) change(ctx context.Context, f func(context.Context, *Head) error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	ctx, cancel := h.within(ctx)
	defer cancel()
	for {
		next, begun := h.head, time.Now()
		if err := f(ctx, &next); ctx.Err() != nil {
			return errors.Join(errLost, err) // as after the sleep of a process that was frozen
		} else if err != nil {
			return err
		}
		next, err := h.records.putHead(ctx, next)
		if err == nil {
			h.head, h.good = next, begun
			return nil
		}
		if !errors.Is(err, team.Conflict) {
			return errors.Join(errLost, err) // the outcome may be unknown: the next term finds it
		}
		if err := h.read(ctx); err != nil {
			return err
		}
	}
}

// refresh returns the stored head. Errors: errLost; Unavailable.
func (h *hold) refresh(ctx context.Context) (Head, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	err := h.read(ctx)
	return h.head, err
}

// read reads the head again. Errors: errLost; Unavailable.
func (h *hold) read(ctx context.Context) error {
	is, err := h.records.Head(ctx)
	switch {
	case err != nil:
		return err
	case is.Process != h.head.Process || is.Term != h.head.Term:
		return errLost
	}
	h.head = is
	return nil
}

// renew renews the lease every third of its length until ctx ends. It returns an error once the lease is lost.
func (h *hold) renew(ctx context.Context, step func(context.Context, string) error) error {
	for {
		h.mu.Lock()
		next := h.good.Add(h.lease / 3)
		h.mu.Unlock()
		if !shutdown.Sleep(ctx, time.Until(next)) {
			return nil
		}
		if h.fresh() {
			continue // a move of the head was as good
		}
		if err := step(ctx, "renew"); err != nil {
			return err
		}
		err := h.change(ctx, func(_ context.Context, next *Head) error { next.N++; return nil })
		if err != nil && ctx.Err() == nil {
			return errors.Join(errLost, err)
		}
	}
}

func (h *hold) fresh() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return time.Since(h.good) < h.lease/3
}

// giveBack ends the lease, so that no other queue has to wait until it runs out.
func (h *hold) giveBack(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdown.Lease)
	defer cancel()
	return h.change(ctx, func(_ context.Context, next *Head) error {
		next.Process, next.N = "", 0
		return nil
	})
}
