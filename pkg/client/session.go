package client

import (
	"context"
	"errors"
	"strings"

	"agentteam/pkg/team"
)

// A session is a team that programs identify by two of their own words, a user and a session.

// MakeSession is [Client.Make] for the team of this session of the user; it sets the name in n.
// Errors: InvalidArgument; Conflict if the team of that name is not this session.
func (c *Client) MakeSession(ctx context.Context, user, session string, n NewTeam) (*Team, error) {
	n.ID, n.UserID, n.SessionID = team.SessionTeam(user, session), user, session
	t, err := c.Make(ctx, n)
	if err != nil {
		return nil, err
	}
	is, err := t.isSession(ctx, user, session)
	if err == nil && !is {
		err = team.Errorf(team.Conflict, "team %s was not made as a session", n.ID).WithHint("`teamctl teams rm %s` makes room for it", n.ID)
	}
	return t, err
}

// OpenSession opens the team of this session of the user. Errors: NotFound.
func (c *Client) OpenSession(ctx context.Context, user, session string) (*Team, error) {
	t, err := c.Open(ctx, team.SessionTeam(user, session))
	is := false
	if err == nil {
		is, err = t.isSession(ctx, user, session)
	}
	if errors.Is(err, team.NotFound) || err == nil && !is {
		return nil, team.Errorf(team.NotFound, "user %q has no session %q", team.Clean(user, 40), team.Clean(session, 40)).
			WithHint("its first goal or task makes it")
	}
	return t, err
}

func (t *core) isSession(ctx context.Context, user, session string) (bool, error) {
	record, err := t.record(ctx)
	return record.UserID == user && record.SessionID == session, err
}

// Sessions returns the sessions of a user, in the order of their teams' names. Those that are being
// deleted, or cannot be read, are left out.
func (c *Client) Sessions(ctx context.Context, user string) ([]string, error) {
	all, err := c.registry.List(ctx)
	if err != nil {
		return nil, err
	}
	sessions := []string{}
	for _, sm := range all {
		if !strings.HasPrefix(string(sm.ID), string(team.SessionsOf(user))) {
			continue
		}
		t, err := c.Open(ctx, sm.ID)
		var record team.Team
		if err == nil {
			record, err = t.Record(ctx)
		}
		switch {
		case errors.Is(err, team.NotFound), errors.Is(err, team.Conflict), errors.Is(err, team.InvalidState):
		case err != nil:
			return nil, err
		case team.SessionTeam(record.UserID, record.SessionID) == sm.ID && record.UserID == user:
			sessions = append(sessions, record.SessionID)
		}
	}
	return sessions, nil
}
