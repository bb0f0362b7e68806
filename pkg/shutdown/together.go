package shutdown

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"
)

// errEnded ends the errgroup when a part has returned nil.
var errEnded = errors.New("a part has ended")

// Together runs the parts until the first of them returns, with an error or nil. Then it ends the context of the
// others, waits until they have returned too, and returns the result of the first.
func Together(ctx context.Context, parts ...func(context.Context) error) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, part := range parts {
		g.Go(func() error {
			if err := part(ctx); err != nil {
				return err
			}
			return errEnded
		})
	}
	if err := g.Wait(); err != errEnded {
		return err
	}
	return nil
}

// Every calls f each time that d has passed, until ctx ends. A call that takes longer than d skips the next ones.
func Every(ctx context.Context, d time.Duration, f func(context.Context)) {
	tick := time.NewTicker(d)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			f(ctx)
		}
	}
}

// Sleep waits for d and reports whether it did: false means that ctx has ended first.
func Sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
