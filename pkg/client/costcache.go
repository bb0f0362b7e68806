package client

import (
	"context"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/semaphore"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/usage"
	"agentteam/pkg/team"
)

// bills hold the usage of teams since they were made, as far as their journals were read. The next
// read of a team continues from there.
type bills struct {
	turn *semaphore.Weighted // of 1: readers take turns
	of   map[team.TeamID]*bill
}

type bill struct {
	storage *broker.Storage
	made    time.Time // the journals
	next    uint64    // the sequence in them that was not read
	tally   *usage.Tally
}

// billsWait bounds the wait of [Client.WithUsage] for its turn and its reading. The usage read so
// far is kept.
const billsWait = 2 * time.Second

// WithUsage fills in the usage of the teams since they were made. That of a team with long journals
// may be filled in by a later call only: each call takes two seconds at most, including its wait
// for another call, and continues where the last one ended. Usage that cannot be read is left out.
// Error: that of ctx.
func (c *Client) WithUsage(ctx context.Context, teams []TeamStatus) error {
	within, cancel := context.WithTimeout(ctx, billsWait)
	defer cancel()
	if c.bills.turn.Acquire(within, 1) != nil {
		return ctx.Err()
	}
	defer c.bills.turn.Release(1)
	if there, err := c.registry.List(within); err == nil {
		maps.DeleteFunc(c.bills.of, func(id team.TeamID, _ *bill) bool {
			return !slices.ContainsFunc(there, func(sm team.Small) bool { return sm.ID == id })
		})
	}
	for i := range teams {
		used, err := c.used(within, teams[i].ID)
		if err == nil {
			teams[i].Usage = &used
		}
		if within.Err() != nil {
			break
		}
	}
	return ctx.Err()
}

// used returns the usage of a team. It returns an error while the team is being made or deleted.
func (c *Client) used(ctx context.Context, id team.TeamID) (Usage, error) {
	b := c.bills.of[id]
	if b != nil { // else it is the first time, or the team may have been made again
		if state, err := b.storage.Logs.State(ctx); err == nil && b.made.Equal(state.Created) {
			return b.read(ctx, state)
		}
	}
	t, err := c.Open(ctx, id)
	if err != nil {
		return Usage{}, err
	}
	state, err := t.team.Logs.State(ctx)
	if err != nil {
		return Usage{}, err
	}
	if b == nil || !b.made.Equal(state.Created) {
		b = &bill{storage: t.team, made: state.Created, next: 1, tally: usage.NewTally(nil)}
		c.bills.of[id] = b
	}
	return b.read(ctx, state)
}

// read continues the reading up to a state of the journals.
func (b *bill) read(ctx context.Context, state broker.State) (_ Usage, err error) {
	if b.next <= state.Last {
		if b.next, err = b.tally.Read(ctx, b.storage, b.next, 0); err != nil {
			return Usage{}, err
		}
		b.next = max(b.next, state.Last+1)
	}
	return UsageOf(b.tally.Table().Total), nil
}
