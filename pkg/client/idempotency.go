package client

import (
	"context"
	"errors"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/registry"
	"agentteam/pkg/team"
)

// once is [broker.Bucket.Once] for a call that sends a message.
func (t *core) once(ctx context.Context, kind, key string, m NewMail, do func(c *broker.Call, existed bool) error) (broker.Call, bool, error) {
	c, err := broker.NewCall(kind, m.As, key, m.Text, m.To, m.ReplyTo, m.Urgent)
	if err != nil {
		return c, false, err
	}
	return t.team.Bucket.Once(ctx, c, do)
}

// stored returns the message of a call that was begun before, which may not have sent it. Errors:
// NotFound; Unavailable.
func (t *core) stored(ctx context.Context, c *broker.Call, existed bool) (StoredMessage, error) {
	if !existed {
		return StoredMessage{}, team.NotFound
	}
	return t.find(ctx, c.ID)
}

// SendOnce is [Mail.Send] for a caller that may have to repeat it. If an earlier call of the same
// sender had the same key, existed is true, and msg is that call's message with its id; it is sent
// only if that caller was killed before it sent it. Errors: those of Send; Conflict if that call
// was for another message.
func (t Mail) SendOnce(ctx context.Context, key string, m NewMail) (msg team.Message, to []team.AgentID, existed bool, err error) {
	c, existed, err := t.once(ctx, "mail", key, m, func(c *broker.Call, existed bool) error {
		// The server takes one message of an id within two minutes: of racing calls one is stored.
		l, err := t.stored(ctx, c, existed)
		switch {
		case errors.Is(err, team.NotFound):
			l.Message, c.Members, err = t.send(ctx, m, c.ID)
		case err == nil && m.To == team.Everyone:
			c.Members, err = t.hearers(ctx, l)
		default:
			c.Members = []team.AgentID{m.To}
		}
		c.Stored = l.Stored
		return err
	})
	msg = m.message(c.ID)
	msg.Stored = c.Stored
	return msg, c.Members, existed, err
}

// NewGoal describes a goal to set.
type NewGoal struct {
	Text      string
	Workspace string // where the members work from now on; "" = as before
	Key       string // a word of the caller's that makes the call one that may be repeated; "" = it is not
	Add       bool   // mail the text to the leader of a team that is at work

	WithChanges bool // the line begins with the uncommitted changes of the workspace

	Budgets team.Budgets // over those of the team; see [team.Budgets.Over]
}

func (n NewGoal) stored() registry.NewGoal {
	return registry.NewGoal{Text: n.Text, Workspace: n.Workspace, WithChanges: n.WithChanges, Budgets: n.Budgets}
}

// Set is [Goals.Start], except that it returns Conflict if the team is already working, unless
// n.Add is set. If two callers race, the loser's text is mailed to the leader.
//
// If an earlier call had the same key, existed is true and the message is not sent again; if that
// caller was killed before it set the goal, this call sets it. Errors: those of Start; Conflict if
// the team is already working, or if the earlier call had another text; InvalidState for changes to
// an integration branch that has begun without them.
func (t Goals) Set(ctx context.Context, n NewGoal) (g *Goal, existed bool, err error) {
	if n.Key == "" {
		g, err = t.setGoal(ctx, n, &broker.Call{}, false)
		return g, false, err
	}
	c, existed, err := t.once(ctx, "goal", n.Key, NewMail{Text: n.Text, To: team.Leader}, func(c *broker.Call, existed bool) error {
		if g, err = t.setGoal(ctx, n, c, existed); err == nil && g.started {
			c.Goal = g.number
		}
		return err
	})
	if err == nil && g == nil {
		if g, err = t.Present(ctx); err == nil {
			g.started = g.number == c.Goal
		}
	}
	return g, existed, err
}

// setGoal sets the goal of a call, or completes an earlier caller's attempt.
func (t *core) setGoal(ctx context.Context, n NewGoal, c *broker.Call, existed bool) (*Goal, error) {
	record, err := t.record(ctx) // before the mail: a goal that another caller with the key has set has its mail stored
	if err != nil {
		return nil, err
	}
	mail, err := t.stored(ctx, c, existed)
	switch {
	case err == nil:
		// A goal younger than the mail is this one, or a later one. Then no goal is set; nor if the
		// team is at work: then the call has only sent the mail.
		own := setFor(record, n.Text, mail)
		if !own && !record.AtWork() && (record.GoalAt == nil || record.GoalAt.Before(mail.StoredAt)) {
			if _, _, err := t.client.registry.StartGoal(ctx, t.team, n.stored()); err != nil {
				return nil, err
			}
			own = true
		}
		g, err := Goals{t}.Present(ctx)
		if err == nil {
			g.started = own
		}
		return g, err
	case !errors.Is(err, team.NotFound):
		return nil, err
	case record.AtWork() && !n.Add:
		return nil, team.Errorf(team.Conflict, "team %s is at work: %s", t.id(), team.Summarize(record.Goal)).
			WithHint("wait for its end, or stop it; with add the text goes to its leader as mail")
	case n.WithChanges && record.AtWork():
		return nil, team.Errorf(team.InvalidState, "team %s is at work, and uncommitted changes are taken along where a goal begins", t.id()).
			WithHint("commit them and wait for the end of its goal; without them the text goes to its leader as mail")
	case n.WithChanges && record.Status == team.Active && record.WithChanges != record.GoalNumber+1 && record.Branch != nil && record.Branch.Goal > record.GoalNumber:
		return nil, team.Errorf(team.InvalidState, "the line of team %s has begun, without uncommitted changes: its leader waits for a goal", t.id()).
			WithHint("`teamctl stop --team %s`, and set the goal then", t.id())
	}
	g, err := t.startGoal(ctx, c.ID, n)
	if err == nil && !g.started && c.ID != "" { // perhaps because another caller with the key has set it
		if mail, err = t.find(ctx, c.ID); err == nil {
			g.started = setFor(g.record, n.Text, mail)
		}
	}
	return g, err
}

// setFor reports whether record has the goal of this text that the mail was about: it was set after
// the mail, by the clocks of servers.
func setFor(record team.Team, text string, mail StoredMessage) bool {
	return record.Goal == text && record.GoalAt != nil && !record.GoalAt.Before(mail.StoredAt.Add(-margin))
}
