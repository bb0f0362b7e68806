package client

import (
	"context"
	"errors"
	"slices"
	"strings"

	"agentteam/pkg/subject"
	"agentteam/pkg/team"
)

// Questions returns what is asked of a person, the one before the team or one with a seat,
// oldest first, answered or not; see [Letter].Open. Errors: as of [Team.Inbox].
func (t *Team) Questions(ctx context.Context, who team.AgentID) ([]Letter, error) {
	return t.inbox(ctx, who, func(l Letter) (bool, error) { return l.Asks(), nil })
}

// Answer answers a question of that id or, with "", the only one that is open; as is a
// person's seat, "" the person before the team. It returns the question and the answer.
// However many answer at once, one answer is stored.
//
// Errors: NotFound for an id that nobody has, and if nothing is asked; InvalidArgument if
// several are open and none is named, for a message that is no question, and for what is none
// of its choices; PermissionDenied for a question to somebody else; Conflict for one that is
// answered; those of [Team.Send].
func (t *Team) Answer(ctx context.Context, as team.AgentID, id, text string) (q Letter, answer team.Message, err error) {
	who := team.UserAgent
	if as != "" {
		who = as
		if err := t.seated(ctx, as); err != nil {
			return q, answer, err
		}
	}
	letters, err := t.Inbox(ctx, who)
	has := func(id string) bool { return slices.ContainsFunc(letters, func(l Letter) bool { return l.ID == id }) }
	switch {
	case err != nil:
	case id != "" && !has(id):
		err = t.notAsked(ctx, who, id)
	case id == "" && has(text):
		err = team.Errorf(team.InvalidArgument, "there is no answer beside the id %s", text).WithHint("teamctl answer ID TEXT")
	}
	if err == nil {
		q, err = pick(letters, id)
	}
	if err == nil {
		text, err = q.Choose(text)
	}
	if err != nil {
		return q, answer, err
	}
	// The server takes one message of an id within two minutes, and it has just been seen
	// that there is none yet: so of answers that race one is stored.
	answer, _, err = t.send(ctx, Mail{As: as, To: q.From, Text: text, ReplyTo: q.ID}, answerTo+q.ID)
	if err != nil {
		return q, answer, err
	}
	return q, answer, t.confirm(ctx, q, answer)
}

// answerTo stands before the id of a question in that of its answer.
const answerTo = "answer-"

// pick returns the question of that id, or with "" the only one that is open.
func pick(letters []Letter, id string) (Letter, error) {
	var open []Letter
	for _, l := range letters {
		if l.Open {
			open = append(open, l)
		}
		if l.ID != id {
			continue
		}
		switch f := l.Fates[0]; {
		case !l.Asks():
			return l, team.Errorf(team.InvalidArgument, "%s of %s is no question", id, l.From).WithHint("write back with: teamctl send %s --reply-to %s TEXT", l.From, id)
		case f.ProcessedAt != nil:
			return l, team.Errorf(team.Conflict, "the question %s of %s was answered at %s", id, l.From, f.ProcessedAt.Local().Format("15:04:05")).
				WithHint("to say more: teamctl send %s TEXT", l.From)
		}
		return l, nil
	}
	switch len(open) {
	case 0:
		return Letter{}, team.Errorf(team.NotFound, "no question is open").WithHint("teamctl inbox user lists the mail to you")
	case 1:
		return open[0], nil
	}
	lines := make([]string, len(open))
	for i, l := range open {
		lines[i] = l.ID + " of " + string(l.From) + ": " + team.Clean(l.Summary, 60)
	}
	return Letter{}, team.Errorf(team.InvalidArgument, "%d questions are open: %s", len(open), strings.Join(lines, "; ")).WithHint("name one: teamctl answer ID TEXT")
}

// notAsked is why who cannot answer a message that is not in the inbox.
func (t *Team) notAsked(ctx context.Context, who team.AgentID, id string) error {
	l, err := t.find(ctx, id)
	if err != nil {
		return err
	}
	return team.Errorf(team.PermissionDenied, "the message %s is to %s, not to %s", id, l.To, who).WithHint("only who was asked may answer")
}

// confirm makes sure that an answer is the one that was stored. Errors: Conflict.
func (t *Team) confirm(ctx context.Context, q Letter, answer team.Message) error {
	err := t.letters(ctx, q.Seq+1, func(l Letter) error {
		switch {
		case l.ID != answer.ID:
			return nil
		case l.Content != answer.Content || l.From != answer.From:
			return team.Errorf(team.Conflict, "the question %s of %s was answered by %s at the same moment", q.ID, q.From, l.From).WithHint("to say more: teamctl send %s TEXT", q.From)
		}
		return errFound
	}, subject.Inbox(t.ID(), q.From, ">"))
	if errors.Is(err, errFound) {
		return nil
	}
	return err
}
