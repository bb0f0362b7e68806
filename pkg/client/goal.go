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
	begun   time.Time
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
	mail := team.Message{Type: team.MsgUser, From: team.UserAgent, To: team.Leader, Content: text}
	if err := mail.Validate(); err != nil { // before anything is changed
		return nil, err
	}
	g := &Goal{team: t, begun: time.Now(), ended: map[team.TaskID]bool{}}
	var err error
	if g.after, err = feed.End(ctx, t.team); err != nil {
		return nil, err
	}
	last, err := t.team.Logs.LastSeq(ctx)
	if err != nil {
		return nil, err
	}
	g.log = last + 1
	tasks, err := t.board.All(ctx)
	if err != nil {
		return nil, err
	}
	for _, task := range tasks {
		g.ended[task.ID] = !task.Status.Open()
	}
	// The mail first: a team that became active without it would be asked what it
	// does, and know nothing; and an end of the present goal that does not know of it
	// is refused once the record is written. The board is opened by whoever leads.
	if _, _, err := t.mailbox.Send(ctx, mail); err != nil {
		return nil, err
	}
	record, started, err := t.client.registry.StartGoal(ctx, t.team, text, workspace)
	if err != nil {
		return nil, err
	}
	g.number, g.started = record.GoalNumber, started
	return g, nil
}

// Wait blocks until the goal has ended and returns the team's record as it then
// was, or ctx's error.
func (g *Goal) Wait(ctx context.Context) (team.Team, error) {
	var last team.Team
	err := g.team.team.Bucket.Watch(ctx, func(e broker.Entry) error {
		record, err := registry.Decode(e)
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

// Follow calls f for everything that happens in the team since the goal was set, until
// ctx ends; then it returns nil.
func (g *Goal) Follow(ctx context.Context, f func(Entry) error) error {
	return g.team.Feed(ctx, FeedOptions{After: g.after, Follow: true}, f)
}

// Elapsed is how long ago the goal was set.
func (g *Goal) Elapsed() time.Duration { return time.Since(g.begun) }
