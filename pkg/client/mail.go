package client

import (
	"context"
	"errors"

	"agentteam/pkg/team"
)

// NewMail is a message of a person.
type NewMail struct {
	As      team.AgentID // the person's seat; "" = the person before the team
	To      team.AgentID // team.Everyone = all members
	Text    string
	Summary string // its first words; "" = taken from the text
	ReplyTo string // id of the message that it answers; "" = none
	Urgent  bool   // its reader is to see it before it goes on
}

// Send stores a message and returns it with its receivers. A member that has left reads it when it
// is back. Errors: NotFound for a name that never was a member, and for the message that it
// answers; PermissionDenied to write as an agent; InvalidState for a team that is not at work, and
// for a seat that was given up.
func (t Mail) Send(ctx context.Context, m NewMail) (team.Message, []team.AgentID, error) {
	return t.send(ctx, m, "")
}

// send is Send under an id; "" is a new one.
func (t *core) send(ctx context.Context, m NewMail, id string) (team.Message, []team.AgentID, error) {
	if m.ReplyTo != "" {
		if _, err := t.find(ctx, m.ReplyTo); err != nil {
			return team.Message{}, nil, err
		}
	}
	record, err := t.record(ctx)
	if err != nil {
		return team.Message{}, nil, err
	}
	if record.Status != team.Active {
		return team.Message{}, nil, team.Errorf(team.InvalidState, "team %s is %s: nobody would read it", t.id(), record.Status).
			WithHint("teamctl run --team %s GOAL sets it a goal", t.id())
	}
	if m.As != "" {
		if err := t.requireSeat(ctx, m.As); err != nil {
			return team.Message{}, nil, err
		}
	}
	sent, to, err := t.mailbox.Send(ctx, m.message(id))
	return sent, to, t.unknown(ctx, m.To, err)
}

// message returns the message, without the fields that the mailbox sets.
func (m NewMail) message(id string) team.Message {
	letter := team.Message{ID: id, Type: team.MsgUser, From: team.UserAgent, To: m.To, Content: m.Text, Summary: m.Summary, InReplyTo: m.ReplyTo, Urgent: m.Urgent}
	if m.As != "" {
		letter.From, letter.Type = m.As, team.MsgMessage
		if m.To == team.Everyone {
			letter.Type = team.MsgBroadcast
		}
	}
	return letter
}

// requireSeat checks that a person may write under this name.
func (t *core) requireSeat(ctx context.Context, a team.AgentID) error {
	m, err := t.roster.Get(ctx, a)
	switch {
	case errors.Is(err, team.NotFound):
		return team.Errorf(team.NotFound, "nobody has a seat called %s", a).WithHint("a seat is made by its first claim: teamctl tasks claim ID --as %s", a)
	case err != nil:
		return err
	case m.Backend != team.Person:
		return team.Errorf(team.PermissionDenied, "%s is an agent and writes for itself", a).WithHint("leave --as out to write as the person before the team")
	case m.State == team.Stopped:
		return team.Errorf(team.InvalidState, "the seat %s was given up", a).WithHint("a claim takes it again: teamctl tasks claim ID --as %s", a)
	}
	return nil
}
