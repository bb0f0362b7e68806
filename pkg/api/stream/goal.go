package stream

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
)

// What belongs to a goal that has ended: all that comes without a pause of linger, up to a
// while after its end. An agent tells the end of its run after that of the goal.
const (
	linger = 300 * time.Millisecond
	later  = 5 * time.Second
)

// Goal is [Hub.Follow] with o.Follow until the goal has ended, and returns the team's
// record as it then was. Errors: those of Follow; ctx's.
func (h *Hub) Goal(ctx context.Context, id team.TeamID, g *client.Goal, o Options, f func(Item) error) (team.Team, error) {
	eg, watching := errgroup.WithContext(ctx)
	following, stop := context.WithCancel(watching)
	defer stop()
	var mu sync.Mutex
	var last *time.Timer // that ends the following; nil while the goal is under way
	var record team.Team
	o.Follow = true
	eg.Go(func() error {
		return h.Follow(following, id, o, func(i Item) error {
			mu.Lock()
			defer mu.Unlock()
			if last != nil {
				if at := record.FinishedAt; at != nil && i.Entry != nil && i.Entry.Time.After(at.Add(later)) {
					stop() // this is none of the goal's any more
					return nil
				}
				last.Reset(linger)
			}
			return f(i)
		})
	})
	eg.Go(func() error {
		ended, err := g.Wait(watching)
		mu.Lock()
		defer mu.Unlock()
		record, last = ended, time.AfterFunc(linger, stop)
		return err
	})
	if err := eg.Wait(); err != nil {
		return record, err
	}
	return record, ctx.Err()
}
