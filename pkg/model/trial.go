package model

import (
	"context"
	"encoding/json"
)

// trialAnswer is room for a model that thinks first.
const trialAnswer = 2000

// Answerer gives turns: a [Client] or a [Router].
type Answerer interface {
	Complete(ctx context.Context, r Request, onDelta func(string)) (Reply, error)
}

// CallsTools asks a model, by an alias of the process, for one call of a tool that does nothing,
// and reports whether it makes it. It costs some hundred tokens. Errors: those of
// [Client.Complete]; a [Refusal] for [NoTools] is an answer too: it makes none.
func CallsTools(ctx context.Context, m Answerer, alias string) (bool, error) {
	reply, err := m.Complete(ctx, Request{Model: alias, MaxTokens: trialAnswer,
		Messages: []*Message{
			{Role: "system", Content: "You are doctor, role doctor, in team doctor."},
			{Role: "user", Content: "Call the tool ready now, with the word yes. Do not answer in text."},
		},
		Tools: []ToolSpec{{Name: "ready", Description: "Says that you are ready.",
			Schema: json.RawMessage(`{"type":"object","properties":{"word":{"type":"string"}},"required":["word"]}`)}},
	}, nil)
	return len(reply.Message.ToolCalls) > 0, err
}
