package feed

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"agentteam/pkg/model"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
	"agentteam/pkg/team/codec"
)

// texts returns the events of a record of a conversation. The events have the record's id, so that every reader knows them by
// the same id.
func (v *view) texts(ctx context.Context, m broker.Msg) ([]team.Event, error) {
	var r journal.Record
	if codec.Unmarshal(m.Data, &r) != nil || r.V != team.Protocol {
		return nil, nil
	}
	if r.StoredRecord != "" { // the entry has only a reference
		var err error
		if r, err = journal.Decode(ctx, v.team, m); err != nil {
			return nil, onlyUnavailable(err)
		}
	}
	return inWords(r, subject.Author(m.Subject)), nil
}

// onlyUnavailable drops a permanent error: an unreadable record has no events.
func onlyUnavailable(err error) error {
	if errors.Is(err, team.InvalidState) {
		return nil
	}
	return err
}

// inWords returns the events of a record of an agent's conversation. Input to the conversation has its events at its source.
func inWords(r journal.Record, agent team.AgentID) []team.Event {
	event := func(b team.EventBody) team.Event {
		b.MessageID, b.RunID = r.ID, r.RunID
		return team.Event{AgentID: agent, RunID: r.RunID, Event: b}
	}
	switch {
	case r.Kind == journal.Turn:
		var reply model.Reply
		if codec.Unmarshal(r.Turn, &reply) != nil {
			return nil
		}
		var told []team.Event
		if text := textOf(reply.Message); text != "" {
			told = append(told, event(team.EventBody{Type: team.TextChunk, Role: "assistant", Delta: text}))
		}
		for _, c := range reply.Message.ToolCalls {
			told = append(told, event(team.EventBody{Type: team.ToolCallChunk, ToolCallID: c.ID, ToolCallName: c.Name, Delta: c.Arguments}))
		}
		if len(told) > 0 {
			told[0].Event.Tokens = reply.Usage.PromptTokens + reply.Usage.CompletionTokens
		}
		return told
	case r.Kind == journal.Result && r.Result != nil:
		return []team.Event{event(team.EventBody{Type: team.ToolCallResult, Role: "tool",
			ToolCallID: r.Result.CallID, ToolCallName: r.Result.Name, Content: r.Result.Content})}
	case r.Kind == journal.Refused && r.Refusal != nil:
		return []team.Event{event(team.EventBody{Type: team.Retry, Message: r.Refusal.Cause, Code: r.Refusal.Reason, Value: asJSON(r.Refusal)})}
	case r.Kind == journal.Compact:
		return []team.Event{event(team.EventBody{Type: team.Compacted, Message: r.Text})}
	}
	return nil
}

// textOf returns the text of a turn.
func textOf(m model.Message) string {
	texts := []string{m.Content}
	for _, p := range m.Parts {
		texts = append(texts, p.Text)
	}
	return strings.Join(texts, "")
}

// sent returns the events of a stored message. Its sender is taken from its subject.
func sent(m broker.Msg) []team.Event {
	var msg team.Message
	if codec.Unmarshal(m.Data, &msg) != nil || msg.V != team.Protocol {
		return nil // also a dead letter
	}
	msg.From = subject.Sender(m.Subject)
	return []team.Event{{AgentID: msg.From, Event: team.EventBody{Type: team.MailSent, MessageID: msg.ID, Value: asJSON(msg)}}}
}

// asJSON encodes values that were decoded from JSON, or consist of strings.
func asJSON(v any) json.RawMessage {
	data, err := codec.Marshal(v)
	if err != nil {
		return nil
	}
	return data
}
