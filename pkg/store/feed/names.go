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

// spoken is what a record of a conversation tells. The ids of its events are that of the
// record, so that everybody knows them by the same.
func (v *view) spoken(ctx context.Context, m broker.Msg) ([]team.Event, error) {
	var r journal.Record
	if codec.Unmarshal(m.Data, &r) != nil || r.V != team.Protocol {
		return nil, nil
	}
	if r.StoredRecord != "" { // what stands here only says where it lies
		var err error
		if r, err = journal.Decode(ctx, v.team, m); err != nil {
			return nil, onlyUnavailable(err)
		}
	}
	return inWords(r, subject.Author(m.Subject)), nil
}

// onlyUnavailable leaves out what will not change: a record that nobody can read tells
// nothing.
func onlyUnavailable(err error) error {
	if errors.Is(err, team.InvalidState) {
		return nil
	}
	return err
}

// inWords is what a record of an agent's conversation tells. What is put into the
// conversation is told by where it comes from.
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

// textOf is what a turn says in words.
func textOf(m model.Message) string {
	texts := []string{m.Content}
	for _, p := range m.Parts {
		texts = append(texts, p.Text)
	}
	return strings.Join(texts, "")
}

// sent is what a stored message tells. Its sender is the one by whose subject it came.
func sent(m broker.Msg) []team.Event {
	var msg team.Message
	if codec.Unmarshal(m.Data, &msg) != nil || msg.V != team.Protocol {
		return nil // also what was put aside since its receiver could not read it
	}
	msg.From = subject.Sender(m.Subject)
	return []team.Event{{AgentID: msg.From, Event: team.EventBody{Type: team.MailSent, MessageID: msg.ID, Value: asJSON(msg)}}}
}

// asJSON writes what has been read from JSON, or consists of texts.
func asJSON(v any) json.RawMessage {
	data, err := codec.Marshal(v)
	if err != nil {
		return nil
	}
	return data
}
