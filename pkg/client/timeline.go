package client

import (
	"context"
	"errors"
	"time"

	"agentteam/pkg/store/feed/state/timeline"
	"agentteam/pkg/team"
)

// Ended returns the team's ended goals that its record keeps, the oldest first, each with the
// outcome of its tasks.
func (t Goals) Ended(ctx context.Context) ([]team.PastGoal, error) {
	record, err := t.record(ctx)
	if err != nil {
		return nil, err
	}
	tasks, err := t.board.All(ctx)
	return team.WithTasks(record.Ended(), tasks), err
}

// EndedGoal is an ended goal with its duration and usage.
type EndedGoal struct {
	team.PastGoal
	Elapsed *float64 `json:"elapsed_seconds"` // null: it is not stored when the goal was set, or when it ended
	Usage   *Usage   `json:"usage"`           // of the calls until the next goal was set; null: it is not stored when this one was
}

// Took is [Goals.Ended] with the duration and usage of each goal. It reads the journals since the
// first of them was set.
func (t Goals) Took(ctx context.Context) ([]EndedGoal, error) {
	ended, err := t.Ended(ctx)
	if err != nil {
		return nil, err
	}
	goals := make([]EndedGoal, len(ended))
	for i, g := range ended {
		goals[i].PastGoal = g
		if g.SetAt == nil {
			continue
		}
		if g.EndedAt != nil {
			goals[i].Elapsed = new(g.EndedAt.Sub(*g.SetAt).Seconds())
		}
		sum, err := (&Team{t.core}).Cost(ctx, g.Number)
		if err != nil && !errors.Is(err, team.NotFound) { // the time when the next one was set is not stored
			return nil, err
		}
		if err == nil {
			goals[i].Usage = new(UsageOf(sum.Total))
		}
	}
	return goals, nil
}

// Timeline folds the team's feed into the work of each member, and the holds of each task, from the
// beginning of a goal to its end, or up to now. goal is the number of the goal; 0 is the present or
// the last one. It reads that part of the feed once, which takes about two seconds for 100,000
// entries; the client caches the fold for the next call, see [charts].
//
// Errors: NotFound for an unknown goal, or one whose times are not stored any more; Unavailable.
func (t Goals) Timeline(ctx context.Context, goal int) (timeline.Timeline, error) {
	record, err := t.record(ctx)
	if err != nil {
		return timeline.Timeline{}, err
	}
	from, to, err := span(record, &goal)
	if err != nil {
		return timeline.Timeline{}, err
	}
	of := chartOf{record.ID, goal, from.UnixNano(), record.HasBranch()}
	c := t.client.charts.of(of)
	defer t.client.charts.of(of) // the time until it is dropped starts again
	if err := c.turn.Acquire(ctx, 1); err != nil {
		return timeline.Timeline{}, team.Errorf(team.Unavailable, "read the timeline of team %s: %w", record.ID, err)
	}
	defer c.turn.Release(1)
	if err := c.read(ctx, &Team{t.core}, to); err != nil {
		return timeline.Timeline{}, err
	}
	if to == nil {
		now := time.Now().UTC()
		to = &now
	}
	return c.fold.Timeline(*to), nil
}

// span returns when a goal of the team began and ended; to is nil while it lasts. A goal of 0
// becomes the newest. Errors: NotFound.
func span(record team.Team, goal *int) (from time.Time, to *time.Time, err error) {
	if *goal == 0 {
		*goal = record.GoalNumber
	}
	if *goal == 0 {
		return from, nil, team.Errorf(team.NotFound, "team %s has had no goal yet", record.ID).WithHint("set one first")
	}
	var set *time.Time
	if *goal == record.GoalNumber {
		set, to = record.GoalAt, record.FinishedAt
	}
	for _, past := range record.PastGoals {
		if past.Number == *goal {
			set, to = past.SetAt, past.EndedAt
		}
	}
	if set == nil {
		return from, nil, team.Errorf(team.NotFound, "when goal %d of team %s was worked on is not stored", *goal, record.ID).
			WithHint("the team keeps the times of its present goal and of the last ones before it")
	}
	return *set, to, nil
}
