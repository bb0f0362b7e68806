package client

import (
	"context"
	"errors"
	"time"

	"agentteam/pkg/feed/state/timeline"
	"agentteam/pkg/team"
)

// errOver ends the reading of a feed behind the end of a goal.
var errOver = errors.New("the goal is over")

// Ended returns the goals of the team that have ended, as far as its record keeps them, the oldest
// first, each with what became of its tasks.
func (t Goals) Ended(ctx context.Context) ([]team.PastGoal, error) {
	record, err := t.record(ctx)
	if err != nil {
		return nil, err
	}
	tasks, err := t.board.All(ctx)
	return team.WithTasks(record.Ended(), tasks), err
}

// Timeline folds the team's feed into what each member was at, and which task was held when, from
// the beginning of a goal to its end, or up to now. goal is the number of the goal; 0 is that of
// the present one, or of the last. It reads the feed of that time once, so it takes about a second
// for 100,000 entries.
//
// Errors: NotFound for a goal that there was not, or of which the times are not stored any more;
// Unavailable.
func (t Goals) Timeline(ctx context.Context, goal int) (timeline.Timeline, error) {
	record, err := t.record(ctx)
	if err != nil {
		return timeline.Timeline{}, err
	}
	from, to, err := span(record, &goal)
	if err != nil {
		return timeline.Timeline{}, err
	}
	at := &Team{t.core}
	after, err := at.FeedAt(ctx, from)
	if err != nil {
		return timeline.Timeline{}, err
	}
	members, tasks, err := at.Before(ctx, after)
	if err != nil {
		return timeline.Timeline{}, err
	}
	ended := map[team.TaskID]bool{} // before the goal began
	for _, task := range tasks {
		ended[task.ID] = !task.Status.Open()
	}
	fold := timeline.New(timeline.Start{Goal: goal, From: from, OnLine: record.OnLine(), Members: members, Tasks: tasks,
		Counts: func(id team.TaskID) bool { return !ended[id] }})
	err = at.Feed(ctx, FeedOptions{After: after}, func(e Entry) error {
		if to != nil && e.Time.After(*to) {
			return errOver
		}
		fold.Apply(e)
		return nil
	})
	if err != nil && !errors.Is(err, errOver) {
		return timeline.Timeline{}, err
	}
	if to == nil {
		now := time.Now().UTC()
		to = &now
	}
	return fold.Timeline(*to), nil
}

// span is when a goal of the team began and ended; to is nil while it lasts. A goal of 0
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
