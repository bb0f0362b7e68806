package client

import (
	"context"
	"errors"
	"time"

	"agentteam/pkg/broker"
	"agentteam/pkg/feed"
	"agentteam/pkg/registry"
	"agentteam/pkg/subject"
	"agentteam/pkg/team"
)

// Goal is one goal under way, as its starter follows it.
type Goal struct {
	team    *Team
	number  int
	started bool
	begun   time.Time            // by the server's clock, if it was resumed
	record  team.Team            // as it was when the goal was set or found
	ended   map[team.TaskID]bool // tasks of the board that had ended before
	after   feed.Cursor          // where in the feed it begins
	log     uint64               // first journal record that may belong to it
}

// Started reports whether the text became the team's goal; false means that the
// team was at work, and the text was mailed to its leader.
func (g *Goal) Started() bool { return g.started }

// Has reports whether the task was there to be done for this goal: it was open when
// the goal was set, or was created since.
func (g *Goal) Has(id team.TaskID) bool { return !g.ended[id] }

// StartGoal sets the team a goal. A team that is at work keeps its own, and the
// text goes to its leader as mail.
func (t *Team) StartGoal(ctx context.Context, text, workspace string) (*Goal, error) {
	g, _, err := t.mailGoal(ctx, "", text)
	if err != nil {
		return nil, err
	}
	return g, g.set(ctx, text, workspace)
}

// mailGoal returns a goal that is yet to be set, and the mail in which the leader reads it, under
// an id, or with "" under a new one.
func (t *Team) mailGoal(ctx context.Context, id, text string) (g *Goal, mail team.Message, err error) {
	mail = team.Message{ID: id, Type: team.MsgUser, From: team.UserAgent, To: team.Leader, Content: text}
	if err := mail.Validate(); err != nil { // before anything is changed
		return nil, mail, err
	}
	g = &Goal{team: t, begun: time.Now(), ended: map[team.TaskID]bool{}}
	if g.after, err = feed.End(ctx, t.team); err != nil {
		return nil, mail, err
	}
	last, err := t.team.Logs.LastSeq(ctx)
	if err != nil {
		return nil, mail, err
	}
	g.log = last + 1
	tasks, err := t.board.All(ctx)
	if err != nil {
		return nil, mail, err
	}
	for _, task := range tasks {
		g.ended[task.ID] = !task.Status.Open()
	}
	// The mail first: a team that became active without it would be asked what it
	// does, and know nothing; and an end of the present goal that does not know of it
	// is refused once the record is written. The board is opened by whoever leads.
	mail, _, err = t.mailbox.Send(ctx, mail)
	return g, mail, err
}

// set makes the text the goal of a team that is not at work.
func (g *Goal) set(ctx context.Context, text, workspace string) (err error) {
	g.record, g.started, err = g.team.client.registry.StartGoal(ctx, g.team.team, text, workspace)
	g.number = g.record.GoalNumber
	return err
}

// ResumeGoal returns the goal that the team is at work on, or that has ended since that
// time, as if its starter had gone on to follow it; [Goal.Follow] begins with what has
// happened since. Errors: InvalidState if there is none.
func (t *Team) ResumeGoal(ctx context.Context, since time.Time) (*Goal, error) {
	record, err := t.Record(ctx)
	if err != nil {
		return nil, err
	}
	if !record.AtWork() && (record.FinishedAt == nil || record.FinishedAt.Before(since)) {
		how := "it has none"
		if record.Status != team.Active {
			how = "the last one is over: " + string(record.Status)
		}
		return nil, team.Errorf(team.InvalidState, "team %s has no goal under way; %s", t.ID(), how).WithHint("set one: teamctl run --team %s GOAL", t.ID())
	}
	g := &Goal{team: t, number: record.GoalNumber, started: true, record: record, ended: map[team.TaskID]bool{}}
	if g.after, err = feed.Since(ctx, t.team, since); err != nil {
		return nil, err
	}
	// What was written first after the goal was prepared is the record that set it.
	set, err := t.team.Bucket.Next(ctx, record.GoalSeq+1)
	if err != nil {
		return nil, err
	}
	g.begun = set.Time
	if g.log, err = t.team.Logs.FirstSince(ctx, set.Time); err != nil {
		return nil, err
	}
	return g, g.endedBefore(ctx)
}

// Move makes dir the folder in which the team works. Those who work for it already stay where
// they are; nobody does where the old folder is gone.
func (t *Team) Move(ctx context.Context, dir string) (team.Team, error) {
	return t.client.registry.Move(ctx, t.team, dir)
}

// PresentGoal returns the goal that the team has, or had last. Errors: InvalidState for a
// team that never had one.
func (t *Team) PresentGoal(ctx context.Context) (*Goal, error) {
	record, err := t.Record(ctx)
	if err != nil {
		return nil, err
	}
	if record.Goal == "" {
		return nil, team.Errorf(team.InvalidState, "team %s has no goal", t.ID()).
			WithHint("teamctl run GOAL sets one; teamctl events --follow shows what happens without one")
	}
	g := &Goal{team: t, number: record.GoalNumber, record: record, ended: map[team.TaskID]bool{}}
	if record.GoalAt != nil { // else a program set it that did not keep the time: all there is may be for it
		g.begun = *record.GoalAt
		if g.after, err = feed.Since(ctx, t.team, g.begun); err != nil {
			return nil, err
		}
		if g.log, _, err = g.after.Seqs(t.ID()); err != nil {
			return nil, err
		}
	}
	g.log++
	return g, g.endedBefore(ctx)
}

// endedBefore notes the tasks that had ended before a goal that was found.
func (g *Goal) endedBefore(ctx context.Context) error {
	tasks, err := g.team.board.All(ctx)
	for _, task := range tasks {
		g.ended[task.ID] = !task.Status.Open() && task.Revision <= g.record.GoalSeq
	}
	return err
}

// Record is the team's record as it was when the goal was set, or found.
func (g *Goal) Record() team.Team { return g.record }

// After is the place in the feed where the goal begins.
func (g *Goal) After() Cursor { return g.after }

// Begun is when the goal was set; zero if that is not known.
func (g *Goal) Begun() time.Time { return g.begun }

// Wait blocks until the goal has ended and returns the team's record as it then
// was, or ctx's error.
func (g *Goal) Wait(ctx context.Context) (team.Team, error) {
	var last team.Team
	err := g.team.team.Bucket.Watch(ctx, func(e broker.Entry) error {
		record, err := registry.Decode(e)
		if errors.Is(err, team.ErrUnreadable) {
			return nil // it says nothing, so it does not say that the goal has ended
		}
		if err != nil {
			return err
		}
		last = record
		if record.Status != team.Active || record.GoalNumber != g.number {
			return errEnded
		}
		return nil
	}, nil, subject.KeyTeam)
	switch {
	case errors.Is(err, errEnded):
		return last, nil
	case err != nil:
		return last, err
	}
	return last, ctx.Err()
}

var errEnded = errors.New("the goal has ended")

// Follow calls f for everything that happens in the team behind a place of the feed, such
// as [Goal.After], until ctx ends; then it returns nil.
func (g *Goal) Follow(ctx context.Context, after Cursor, f func(Entry) error) error {
	return g.team.Feed(ctx, FeedOptions{After: after, Follow: true}, f)
}

// Elapsed is how long the goal took, or has taken until now.
func (g *Goal) Elapsed() time.Duration {
	switch {
	case g.begun.IsZero():
		return 0
	case g.record.Status != team.Active && g.record.FinishedAt != nil:
		return g.record.FinishedAt.Sub(g.begun)
	}
	return time.Since(g.begun)
}
