package client

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"agentteam/pkg/store/feed"
	"agentteam/pkg/store/feed/state/timeline"
	"agentteam/pkg/team"
)

// charts caches the folds of the goals whose timelines were read last. The next read of one
// continues from there.
type charts struct {
	mu   sync.Mutex
	kept []*chart // the one that was looked at last is the last
}

// mostCharts are cached, each until it was not read for unseen. One of 100,000 entries takes 17 MB.
const (
	mostCharts = 4
	unseen     = time.Minute
)

// chartOf identifies a fold. A team that was made again under its name has another time.
type chartOf struct {
	team      team.TeamID
	goal      int
	from      int64 // when it was set, in nanoseconds
	hasBranch bool
}

// of returns the chart of a goal, and caches it.
func (c *charts) of(of chartOf) *chart {
	c.mu.Lock()
	defer c.mu.Unlock()
	var k *chart
	if i := slices.IndexFunc(c.kept, func(k *chart) bool { return k.of == of }); i >= 0 {
		k = c.kept[i]
		c.kept = slices.Delete(c.kept, i, i+1)
		k.drop.Reset(unseen)
	} else {
		k = &chart{of: of, turn: semaphore.NewWeighted(1)}
		k.drop = time.AfterFunc(unseen, func() { c.forget(k) })
	}
	if c.kept = append(c.kept, k); len(c.kept) > mostCharts {
		c.kept[0].drop.Stop()
		c.kept = slices.Delete(c.kept, 0, 1)
	}
	return k
}

func (c *charts) forget(k *chart) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept = slices.DeleteFunc(c.kept, func(o *chart) bool { return o == k })
}

// chart is the fold of a goal, as far as the feed was read.
type chart struct {
	of   chartOf
	drop *time.Timer
	turn *semaphore.Weighted // of 1: readers take turns

	fold   *timeline.Fold // nil: nothing was read
	after  Cursor         // behind what is in it
	memory feed.Memory
	newest time.Time  // of the entries that are in it
	over   *time.Time // the end of the goal, if all up to there is in it
}

// errOver ends the reading of a feed after the end of a goal, errMadeAgain if one of its streams was
// made again since the last read.
var (
	errOver      = errors.New("the goal is over")
	errMadeAgain = errors.New("a stream was made anew")
)

// read continues the reading up to the end of the goal, or the present one. Entries that it has
// read before an error stay.
func (c *chart) read(ctx context.Context, t *Team, to *time.Time) error {
	if to != nil && c.newest.After(*to) || c.over != nil && (to == nil || !to.Equal(*c.over)) {
		c.fold = nil // it contains entries after the end, or lacks some before it
	}
	if c.fold != nil && c.over != nil {
		return nil
	}
	err := c.readOn(ctx, t, to)
	if errors.Is(err, errMadeAgain) {
		c.fold = nil
		err = c.readOn(ctx, t, to)
	}
	return err
}

func (c *chart) readOn(ctx context.Context, t *Team, to *time.Time) error {
	fresh := c.fold == nil
	if fresh {
		if err := c.begin(ctx, t); err != nil {
			return err
		}
	}
	at, err := t.WalkFeed(ctx, FeedOptions{After: c.after, Memory: &c.memory}, func(s feed.Step) error {
		switch {
		case to != nil && s.Time.After(*to):
			return errOver
		case !fresh && madeAgain(s.Event):
			return errMadeAgain
		}
		c.fold.Apply(s.Entry)
		if c.after = s.Cursor; s.Time.After(c.newest) {
			c.newest = s.Time
		}
		return nil
	})
	switch {
	case errors.Is(err, errOver):
		c.over = to
		return nil
	case err == nil:
		c.after = at.Cursor(t.ID())
	}
	return err
}

// begin begins the fold with the team's state when the goal was set.
func (c *chart) begin(ctx context.Context, t *Team) error {
	from := time.Unix(0, c.of.from).UTC()
	after, err := t.FeedAt(ctx, from)
	if err != nil {
		return err
	}
	members, tasks, err := t.Before(ctx, after)
	if err != nil {
		return err
	}
	ended := map[team.TaskID]bool{} // before the goal began
	for _, task := range tasks {
		ended[task.ID] = !task.Status.Open()
	}
	c.fold = timeline.New(timeline.Start{Goal: c.of.goal, From: from, HasBranch: c.of.hasBranch, Members: members, Tasks: tasks,
		Counts: func(id team.TaskID) bool { return !ended[id] }})
	c.after, c.memory, c.newest, c.over = after, feed.Memory{}, time.Time{}, nil
	return nil
}

// madeAgain reports whether an event of the feed reports that a stream was made again.
func madeAgain(e team.Event) bool {
	var r feed.Reset
	return feed.IsReset(e) && json.Unmarshal(e.Event.Value, &r) == nil &&
		slices.ContainsFunc(r.Missing, func(m feed.Missing) bool { return m.Why == "made_anew" })
}
