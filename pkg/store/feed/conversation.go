package feed

import (
	"context"
	"errors"
	"fmt"

	"agentteam/pkg/model"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
	"agentteam/pkg/team/codec"
)

// Names of the events of type CUSTOM that only [Conversation] passes on.
const (
	TaskGiven = "task"     // the agent got a task to work on, which is the value
	Note      = "note"     // the agent got a note from the team's own programs: the message
	Thinking  = "thinking" // the thinking of its model before the text: the message
)

// Conversation calls f for all that an agent heard, wrote and did, by its journal, in order; with follow it continues until ctx
// ends, and then returns nil. Its entries have no cursor. In addition to the feed's events of the agent, it has the mail that
// the agent has read, [TaskGiven], [Note] and [Thinking]. An error of f ends it. Errors: Unavailable.
func Conversation(ctx context.Context, t *broker.Storage, a team.AgentID, follow bool, f func(Entry) error) error {
	give := func(m broker.Msg) error {
		var r journal.Record
		if codec.Unmarshal(m.Data, &r) != nil || r.V != team.Protocol {
			return nil
		}
		if r.StoredRecord != "" || r.Stored != "" {
			var err error
			if r, err = journal.Decode(ctx, t, m); err != nil {
				return onlyUnavailable(err)
			}
		}
		for _, e := range append(heard(r, a), inWords(r, a)...) {
			e.TeamID, e.Event = t.ID, e.Event.Stamp(m.Time)
			if err := f(Entry{Time: m.Time.UTC(), Event: e}); err != nil {
				return err
			}
		}
		return nil
	}
	if !follow {
		return t.Logs.Read(ctx, 1, give, subject.Log(t.ID, a))
	}
	err := t.Logs.Follow(ctx, broker.Mark{}, give, nil, subject.Log(t.ID, a))
	if ctx.Err() != nil && (err == nil || errors.Is(err, ctx.Err())) {
		return nil
	}
	return err
}

// heard returns the events that a record adds to an agent's conversation besides its texts and calls.
func heard(r journal.Record, a team.AgentID) []team.Event {
	event := func(who team.AgentID, b team.EventBody) []team.Event {
		b.RunID = r.RunID
		return []team.Event{{AgentID: who, RunID: r.RunID, Event: b}}
	}
	switch {
	case r.Kind == journal.Mail && r.Message != nil:
		return event(r.Message.From, team.EventBody{Type: team.MailSent, MessageID: r.Message.ID, Value: asJSON(r.Message)})
	case r.Kind == journal.Backlog && r.Backlog != nil:
		events := event(a, team.EventBody{Type: team.Custom, Name: Note, Message: fmt.Sprintf("%d messages had piled up; %d of them are told whole.", r.Backlog.Count, len(r.Backlog.Whole))})
		for _, l := range r.Backlog.Whole {
			events = append(events, event(l.Message.From, team.EventBody{Type: team.MailSent, MessageID: l.Message.ID, Value: asJSON(l.Message)})...)
		}
		return events
	case r.Kind == journal.Task && r.Task != nil:
		return event(a, team.EventBody{Type: team.Custom, Name: TaskGiven, Value: asJSON(r.Task)})
	case r.Kind == journal.Note:
		return event(a, team.EventBody{Type: team.Custom, Name: Note, Message: r.Text})
	case r.Kind == journal.Turn:
		var reply model.Reply
		if codec.Unmarshal(r.Turn, &reply) == nil && reply.Message.Thinking() != "" {
			return event(a, team.EventBody{Type: team.Custom, Name: Thinking, MessageID: r.ID, Message: reply.Message.Thinking()})
		}
	}
	return nil
}
