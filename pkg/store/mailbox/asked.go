package mailbox

import (
	"context"
	"errors"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

// The bounds of the earlier questions that a new holder of a task reads.
const (
	maxAsked      = 16   // the newest
	maxAskedRunes = 4000 // of a question, and of an answer
)

// Asked returns the newest questions that the holders of t have asked people for it, oldest first, and the answers by
// the ids of the questions; copies are the stored copies of t, oldest first. Questions are stored as mail only. Errors:
// Unavailable.
func (b *Mailbox) Asked(ctx context.Context, t team.Task, copies []team.Task) (questions []team.Message, answers map[string]team.Message, err error) {
	people, err := b.people(ctx)
	if err != nil {
		return nil, nil, err
	}
	var asked []Delivery
	err = b.each(ctx, 1, func(m Delivery) error {
		if m.Asks() && m.TaskID == t.ID {
			asked = append(asked, m)
		}
		return nil
	}, people, func(p team.AgentID) []string { return []string{subject.Inbox(b.team.ID, p, "*")} })
	if err != nil || asked == nil {
		return nil, nil, err
	}
	asked = asked[max(0, len(asked)-maxAsked):]
	for _, q := range asked {
		q.Content = team.Clip(q.Content, maxAskedRunes)
		questions = append(questions, q.Message)
	}
	answers = map[string]team.Message{}
	err = b.each(ctx, asked[0].Seq, func(m Delivery) error {
		for _, q := range asked {
			if answers[q.ID].ID == "" && (m.From == q.To || m.From == team.UserAgent) && m.Seq > q.Seq && m.Answers(q.Message, q.WaitedAt(copies, m.CreatedAt)) {
				m.Content = team.Clip(m.Content, maxAskedRunes)
				answers[q.ID] = m.Message
			}
		}
		return nil
	}, people, func(p team.AgentID) []string {
		return []string{subject.Inbox(b.team.ID, "*", p), subject.Broadcast(b.team.ID, p)}
	})
	return questions, answers, err
}

// Answered blocks until a person has answered the question of w, to any member, and returns the answer. Errors:
// Unavailable; ctx's.
func (b *Mailbox) Answered(ctx context.Context, w team.Await) (answer team.Message, err error) {
	people := []string{subject.Inbox(b.team.ID, "*", team.UserAgent)}
	if w.From != team.UserAgent {
		people = append(people, subject.Inbox(b.team.ID, "*", w.From))
	}
	err = b.team.Messages.Follow(ctx, broker.Mark{}, func(m broker.Msg) error {
		if msg, ok := decode(m); ok && msg.InReplyTo == w.MessageID && msg.Wakes() {
			answer = msg
			return broker.ErrEnough
		}
		return nil
	}, nil, people...)
	switch {
	case errors.Is(err, broker.ErrEnough):
		return answer, nil
	case err == nil:
		err = ctx.Err()
	}
	return answer, err
}

// people returns the people who may be asked: the user, and members with seats, also those that have left.
func (b *Mailbox) people(ctx context.Context) ([]team.AgentID, error) {
	all := []team.AgentID{team.UserAgent}
	members, err := b.members.List(ctx)
	for _, m := range members {
		if m.Backend == team.Person {
			all = append(all, m.AgentID)
		}
	}
	return all, err
}

// each calls f for the messages on the subjects of each person from a sequence on, in order.
func (b *Mailbox) each(ctx context.Context, from uint64, f func(Delivery) error, people []team.AgentID, of func(team.AgentID) []string) error {
	var subjects []string
	for _, p := range people {
		subjects = append(subjects, of(p)...)
	}
	return b.team.Messages.Read(ctx, from, func(m broker.Msg) error {
		if msg, ok := decode(m); ok {
			return f(Delivery{Message: msg, Seq: m.Seq})
		}
		return nil
	}, subjects...)
}
