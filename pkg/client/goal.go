package client

import (
	"context"
	"errors"
	"time"

	"agentteam/pkg/broker"
	"agentteam/pkg/journal"
	"agentteam/pkg/registry"
	"agentteam/pkg/subject"
	"agentteam/pkg/team"
)

// Usage is what model calls cost, in tokens.
type Usage struct {
	ModelCalls       int `json:"model_calls"`
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
	TotalTokens      int `json:"total_tokens"`
}

// Goal is one goal under way, as its starter follows it.
type Goal struct {
	team    *Team
	number  int
	started bool
	begun   time.Time
	events  uint64 // first event that may belong to it
	log     uint64 // first journal record that may belong to it
}

// Started reports whether the text became the team's goal; false means that the
// team was at work, and the text was mailed to its leader.
func (g *Goal) Started() bool { return g.started }

// StartGoal sets the team a goal. A team that is at work keeps its own, and the
// text goes to its leader as mail.
func (t *Team) StartGoal(ctx context.Context, text, workspace string) (*Goal, error) {
	g := &Goal{team: t, begun: time.Now()}
	last, err := t.team.Events.LastSeq(ctx)
	if err != nil {
		return nil, err
	}
	g.events = last + 1
	if last, err = t.team.Logs.LastSeq(ctx); err != nil {
		return nil, err
	}
	g.log = last + 1
	if err := t.board.Reopen(ctx); err != nil {
		return nil, err
	}
	// The mail first: a team that became active without it would be asked what it
	// does, and know nothing.
	if _, _, err := t.Send(ctx, team.Leader, text); err != nil {
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

// Follow calls f for every event of the team since the goal was set, until ctx
// ends; then it returns nil.
func (g *Goal) Follow(ctx context.Context, f func(team.Event) error) error {
	return g.team.log().Follow(ctx, g.events, f)
}

// Usage sums up what the goal has cost so far, from the members' journals.
func (g *Goal) Usage(ctx context.Context) (u Usage, err error) {
	err = journal.Each(ctx, g.team.team, g.log, func(r journal.Record) {
		if prompt, completion, ok := r.Usage(); ok {
			u.ModelCalls++
			u.PromptTokens += prompt
			u.CompletionTokens += completion
		}
	})
	u.TotalTokens = u.PromptTokens + u.CompletionTokens
	return u, err
}

// Elapsed is how long ago the goal was set.
func (g *Goal) Elapsed() time.Duration { return time.Since(g.begun) }
