package stream

import (
	"cmp"
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"agentteam/pkg/client"
	"agentteam/pkg/store/feed"
)

// follower reads the feed of one team into a ring, for all readers.
type follower struct {
	team  *client.Team
	ring  *ring
	begun chan struct{} // closed once the ring holds what had happened by then, or has ended
	stop  context.CancelCauseFunc

	// Under the hub's lock.
	readers int
	linger  *time.Timer // ends it; nil while there are readers
}

// started waits until the ring contains the entries from before its first reader came. Errors: ctx's; the follower's
// own error is in the ring.
func (w *follower) started(ctx context.Context) error {
	select {
	case <-w.begun:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// attach returns the follower of the team, with one more reader.
func (h *Hub) attach(t *client.Team) (*follower, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ctx.Err() != nil {
		return nil, ErrClosed
	}
	w := h.teams[t.ID()]
	if w == nil {
		ctx, stop := context.WithCancelCause(h.ctx)
		w = &follower{team: t, ring: newRing(h.keep, h.metrics), begun: make(chan struct{}), stop: stop}
		h.teams[t.ID()] = w
		h.busy.Go(func() { h.run(ctx, w) })
	}
	h.busy.Add(1)
	w.readers++
	if w.linger != nil {
		w.linger.Stop()
		w.linger = nil
	}
	return w, nil
}

// detach removes one reader.
func (h *Hub) detach(w *follower) {
	h.mu.Lock()
	defer h.mu.Unlock()
	defer h.busy.Done()
	if w.readers--; w.readers == 0 {
		w.linger = time.AfterFunc(h.times.linger, func() { h.forget(w) })
	}
}

// forget ends a follower that still has no readers.
func (h *Hub) forget(w *follower) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if w.readers == 0 {
		h.remove(w)
		w.stop(ErrClosed)
	}
}

// remove makes the next reader of the team start another follower.
func (h *Hub) remove(w *follower) {
	if h.teams[w.team.ID()] == w {
		delete(h.teams, w.team.ID())
	}
}

// run reads until ctx ends or reading fails.
func (h *Hub) run(ctx context.Context, w *follower) {
	err := h.follow(ctx, w)
	if ctx.Err() != nil {
		err = context.Cause(ctx) // whatever that has made fail
	}
	h.mu.Lock()
	h.remove(w)
	h.mu.Unlock()
	w.ring.end(err)
	if ctx.Err() == nil {
		h.log.Warn("the feed of a team can no longer be followed; its readers are cut off", "team", w.team.ID(), "err", err)
	}
	w.stop(err)
}

func (h *Hub) follow(ctx context.Context, w *follower) error {
	memory := new(feed.Memory)
	after, err := w.begin(ctx)
	if err == nil {
		var at feed.Place
		at, err = w.team.WalkFeed(ctx, client.FeedOptions{After: after, Memory: memory}, w.ring.step)
		after = at.Cursor(w.team.ID())
	}
	if err != nil {
		w.ring.end(cmp.Or(context.Cause(ctx), err)) // before a reader takes it for one in which nothing has happened
	}
	close(w.begun)
	if err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return w.team.Live(ctx, nil, w.ring.write) })
	g.Go(func() error {
		_, err := w.team.WalkFeed(ctx, client.FeedOptions{After: after, Follow: true, Memory: memory}, w.ring.step)
		return err
	})
	return g.Wait()
}

// readBack and lookBackMost bound the past entries in a new ring, for each of the streams of a feed: when a process
// ends, its readers all come to another one at the same time, and each was up to date a moment ago.
const (
	readBack     = 30 * time.Second
	readBackMost = 1000
)

// begin starts the ring, and returns the cursor of its beginning.
func (w *follower) begin(ctx context.Context) (client.Cursor, error) {
	ctx, cancel := context.WithTimeout(ctx, beginWithin)
	defer cancel()
	from, end, err := w.team.Recent(ctx, time.Now().Add(-readBack), readBackMost)
	if err != nil {
		return "", err
	}
	w.ring.begin(from, end)
	return from.Cursor(w.team.ID()), nil
}

// beginWithin limits the time in which a server reports where a feed begins and ends.
const beginWithin = 10 * time.Second
