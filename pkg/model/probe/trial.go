package probe

import (
	"context"
	"encoding/json"

	"agentteam/pkg/model"
)

// trialAnswer leaves room for a model that thinks first.
const trialAnswer = 2000

// Answerer returns turns: a [model.Client] or a router.
type Answerer interface {
	Complete(ctx context.Context, r model.Request, onDelta func(string)) (model.Reply, error)
}

// CallsTools asks a model, by an alias of the process, for one call of a tool without effect, and reports whether it
// makes it. It costs some hundred tokens. Errors: those of [model.Client.Complete]; a [model.Refusal] for
// [model.NoTools] is an answer too: the model calls no tools.
func CallsTools(ctx context.Context, m Answerer, alias string) (bool, error) {
	reply, err := m.Complete(ctx, model.Request{Model: alias, MaxTokens: trialAnswer,
		Messages: []*model.Message{
			{Role: "system", Content: "You are doctor, role doctor, in team doctor."},
			{Role: "user", Content: "Call the tool ready now, with the word yes. Do not answer in text."},
		},
		Tools: []model.ToolSpec{{Name: "ready", Description: "Says that you are ready.",
			Schema: json.RawMessage(`{"type":"object","properties":{"word":{"type":"string"}},"required":["word"]}`)}},
	}, nil)
	return len(reply.Message.ToolCalls) > 0, err
}
