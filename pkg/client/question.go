package client

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

// Questions returns the questions to a person, the user or a person with a seat, oldest first,
// answered or not; see [StoredMessage].Open. Errors: as of [Mail.Inbox].
func (t Mail) Questions(ctx context.Context, who team.AgentID) ([]StoredMessage, error) {
	return t.inbox(ctx, who, func(l StoredMessage) (bool, error) { return l.Asks(), nil })
}

// Answer answers a question. which is its id or a prefix of it, the name of a member with only one
// open question, or "" for the only open one. The answer goes to its sender, or to the agent that
// holds the question's task now. as is a person's seat, "" the user. It returns the question and
// the answer. Of concurrent answers, one is stored.
//
// Errors: NotFound for an unknown id, and if no question is open; InvalidArgument if several are
// open and none is named, for a message that is not a question, and for a text that is not one of
// its choices; PermissionDenied for a question to another person; Conflict for an answered
// question, or if no member waits for the answer any more; those of [Mail.Send].
func (t Mail) Answer(ctx context.Context, as team.AgentID, which, text string) (q StoredMessage, answer team.Message, err error) {
	who := team.UserAgent
	if as != "" {
		who = as
		if err := t.requireSeat(ctx, as); err != nil {
			return q, answer, err
		}
	}
	letters, err := t.Inbox(ctx, who)
	has := func(name string) bool {
		return slices.ContainsFunc(letters, func(l StoredMessage) bool { return l.ID == name || l.Open && l.waits(name) })
	}
	if begun := openBegunWith(letters, which); begun != "" && !has(which) {
		which = begun
	}
	switch {
	case err != nil:
	case which != "" && !has(which):
		err = t.notAsked(ctx, who, which)
	case which == "" && has(text):
		err = team.Errorf(team.InvalidArgument, "%s says which question is meant, and there is no answer beside it", text).WithHint("teamctl answer %s TEXT", text)
	}
	if err == nil {
		q, err = pick(letters, which)
	}
	if err == nil {
		text, err = q.Choose(text)
	}
	if err != nil {
		return q, answer, err
	}
	// The server takes one message of an id within two minutes, and there was none just now: so of
	// racing answers one is stored.
	answer, _, err = t.send(ctx, NewMail{As: as, To: cmp.Or(q.AnswerTo, q.From), Text: text, ReplyTo: q.ID}, answerTo+q.ID)
	if err != nil {
		return q, answer, err
	}
	return q, answer, t.confirm(ctx, q, answer)
}

// openBegunWith returns the id of the only open question whose id has this prefix; "" if there is
// none.
func openBegunWith(letters []StoredMessage, beginning string) (id string) {
	for _, l := range letters {
		switch {
		case beginning == "" || !l.Open || !strings.HasPrefix(l.ID, beginning):
		case id != "":
			return ""
		default:
			id = l.ID
		}
	}
	return id
}

// answerTo is the prefix before a question's id in its answer's id.
const answerTo = "answer-"

// pick returns the question with that id, or the only open one: of the member with that name, or
// with "" of all.
func pick(letters []StoredMessage, which string) (StoredMessage, error) {
	var open []StoredMessage
	for _, l := range letters {
		if l.Open && (which == "" || l.waits(which)) {
			open = append(open, l)
		}
		if l.ID != which {
			continue
		}
		switch f := l.Deliveries[0]; {
		case !l.Asks():
			return l, team.Errorf(team.InvalidArgument, "%s of %s is no question", l.ID, l.From).WithHint("write back with: teamctl send %s --reply-to %s TEXT", l.From, l.ID)
		case f.ProcessedAt != nil:
			return l, team.Errorf(team.Conflict, "the question %s of %s was answered at %s", l.ID, l.From, f.ProcessedAt.Local().Format("15:04:05")).
				WithHint("to say more: teamctl send %s TEXT", l.From)
		case !l.Open:
			return l, team.Errorf(team.Conflict, "no member waits for an answer to %s of %s any more: %s", l.ID, l.From, noMore(l)).
				WithHint("to say it all the same: teamctl send %s TEXT", l.From)
		}
		return l, nil
	}
	switch len(open) {
	case 0:
		return StoredMessage{}, team.Errorf(team.NotFound, "no question is open").WithHint("teamctl inbox user lists the mail to you")
	case 1:
		return open[0], nil
	}
	lines := make([]string, len(open))
	for i, l := range open {
		lines[i] = string(l.From) + l.For() + ": " + team.Clean(l.Summary, 60)
		if l.Which(open) == l.ID {
			lines[i] = l.ID + " of " + lines[i]
		}
	}
	hint := "name one: teamctl answer ID TEXT"
	if !slices.ContainsFunc(open, func(l StoredMessage) bool { return l.Which(open) == l.ID }) {
		hint = "say whose: teamctl answer NAME TEXT"
	}
	return StoredMessage{}, team.Errorf(team.InvalidArgument, "%d questions are open: %s", len(open), strings.Join(lines, "; ")).WithHint("%s", hint)
}

// noMore returns why no member waits for the answer to an unanswered question.
func noMore(q StoredMessage) string {
	if q.TaskID != "" {
		return string(q.TaskID) + " has ended"
	}
	return string(q.From) + " has left"
}

// waits reports whether the member with that name has asked the question, or waits for its answer
// now.
func (l StoredMessage) waits(name string) bool {
	return string(l.From) == name || string(l.AnswerTo) == name
}

// Which returns a name for an open question among all open ones of a person, for [Mail.Answer]: the
// name of its sender or, if that member has asked several or waits for the answer to another, its
// id.
func (l StoredMessage) Which(all []StoredMessage) string {
	if slices.ContainsFunc(all, func(o StoredMessage) bool { return o.Open && o.waits(string(l.From)) && o.ID != l.ID }) {
		return l.ID
	}
	return string(l.From)
}

// notAsked returns why who cannot answer a message that is not in the inbox, or a member that waits
// for no answer.
func (t *core) notAsked(ctx context.Context, who team.AgentID, id string) error {
	l, err := t.find(ctx, id)
	if errors.Is(err, team.NotFound) {
		return team.Errorf(team.NotFound, "no open question to %s has the id or the sender %q", who, team.Clean(id, 40)).
			WithHint("teamctl inbox %s lists the mail to %s with its ids", who, who)
	}
	if err != nil {
		return err
	}
	return team.Errorf(team.PermissionDenied, "the message %s is to %s, not to %s", id, l.To, who).WithHint("only who was asked may answer")
}

// confirm checks that an answer is the one that was stored. Errors: Conflict.
func (t *core) confirm(ctx context.Context, q StoredMessage, answer team.Message) error {
	asked := []string{subject.Inbox(t.id(), "*", q.To)} // of two answers each may go to another holder of the task
	if q.To != team.UserAgent {
		asked = append(asked, subject.Inbox(t.id(), "*", team.UserAgent))
	}
	return t.messages(ctx, q.Seq+1, func(l StoredMessage) error {
		switch {
		case l.ID != answer.ID:
			return nil
		case l.Content != answer.Content || l.From != answer.From:
			return team.Errorf(team.Conflict, "the question %s of %s was answered by %s at the same moment", q.ID, q.From, l.From).WithHint("to say more: teamctl send %s TEXT", q.From)
		}
		return broker.ErrEnough
	}, asked...)
}
