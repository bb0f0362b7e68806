package shutdown

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"
)

// errEnded makes an errgroup end with a part that has returned nil.
var errEnded = errors.New("a part has ended")

// Together runs the parts until the first of them returns, with an error or nil. Then
// it ends the context of the others, waits until they have returned too, and returns
// what the first one did.
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

// Every calls f whenever so much time has passed, until ctx ends. A call that takes longer
// leaves out the next ones.
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
