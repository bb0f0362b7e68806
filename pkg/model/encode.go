package model

import (
	"cmp"
	"encoding/json"
	"errors"

	"github.com/sashabaranov/go-openai"

	"agentteam/pkg/team"
)

// encode returns req as the body of a streamed chat completion.
func encode(req Request) ([]byte, error) {
	body := struct {
		Model               string               `json:"model"`
		Messages            []map[string]any     `json:"messages"`
		Tools               []openai.Tool        `json:"tools,omitempty"`
		MaxTokens           int                  `json:"max_tokens,omitempty"`
		MaxCompletionTokens int                  `json:"max_completion_tokens,omitempty"`
		Stream              bool                 `json:"stream"`
		StreamOptions       openai.StreamOptions `json:"stream_options"`
	}{
		Model:         req.Model,
		Stream:        true,
		StreamOptions: openai.StreamOptions{IncludeUsage: true},
	}
	if renamedLimit(req.Model) {
		body.MaxCompletionTokens = req.MaxTokens
	} else {
		body.MaxTokens = req.MaxTokens
	}
	for i, m := range req.Messages {
		if i > 0 && m.Role == "system" {
			// The chat templates of several open models refuse it.
			return nil, team.Errorf(team.InvalidArgument, "message %d of the conversation is a system message; only the first may be", i)
		}
		body.Messages = append(body.Messages, encodeMessage(m))
	}
	for _, t := range req.Tools {
		if t.Schema == nil {
			t.Schema = json.RawMessage(`{"type":"object","properties":{}}`) // null is refused
		}
		body.Tools = append(body.Tools, openai.Tool{
			Type:     openai.ToolTypeFunction,
			Function: &openai.FunctionDefinition{Name: t.Name, Description: t.Description, Parameters: t.Schema},
		})
	}
	data, err := json.Marshal(body)
	if err != nil {
		return nil, team.Errorf(team.InvalidArgument, "encode the conversation: %w", err)
	}
	return data, nil
}

// renamedLimit reports whether the model takes its limit as
// max_completion_tokens. The SDK knows which do; all others, and every endpoint
// that is not OpenAI's, know max_tokens.
func renamedLimit(model string) bool {
	//lint:ignore SA1019 asking whether it is refused is the point
	err := openai.NewReasoningValidator().Validate(openai.ChatCompletionRequest{Model: model, MaxTokens: 1})
	return errors.Is(err, openai.ErrReasoningModelMaxTokensDeprecated)
}

func encodeMessage(m *Message) map[string]any {
	w := map[string]any{}
	for k, v := range m.Extra {
		w[k] = v
	}
	w["role"] = m.Role
	w["content"] = m.Content // also if empty: several endpoints refuse a message without it
	if m.Role == "tool" {
		w["tool_call_id"] = m.ToolCallID
		if m.Content == "" {
			w["content"] = "(no output)" // an empty result is refused too
		}
	}
	if len(m.ToolCalls) > 0 {
		calls := make([]map[string]any, len(m.ToolCalls))
		for i, c := range m.ToolCalls {
			calls[i] = encodeCall(c)
		}
		w["tool_calls"] = calls
	}
	return w
}

func encodeCall(c ToolCall) map[string]any {
	w := map[string]any{}
	for k, v := range c.Extra {
		w[k] = v
	}
	args := cmp.Or(c.Arguments, "{}")
	if !json.Valid([]byte(args)) {
		// vLLM and others parse the arguments of earlier turns and would refuse
		// this conversation for good. The model still sees what it wrote.
		quoted, _ := json.Marshal(map[string]string{"malformed_arguments": args})
		args = string(quoted)
	}
	w["id"], w["type"] = c.ID, "function"
	w["function"] = map[string]string{"name": c.Name, "arguments": args}
	return w
}

// tokens estimates how many tokens n bytes of text are: four bytes each, which is
// near enough for English and code and, at three bytes a character, for Chinese.
func tokens(n int) int { return (n + 3) / 4 }
