package stricttest

import (
	"encoding/json"
	"strings"
)

// request is the part of a chat completion request that an endpoint can be strict about.
type request struct {
	Model    string    `json:"model"`
	Messages []message `json:"messages"`
	Tools    []tool    `json:"tools"`

	fields map[string]json.RawMessage // all of them
}

type tool struct {
	Function struct {
		Name       string          `json:"name"`
		Parameters json.RawMessage `json:"parameters"`
	} `json:"function"`
}

type message struct {
	Role       string          `json:"role"`
	RawContent json.RawMessage `json:"content"`
	ToolCalls  []toolCall      `json:"tool_calls"`

	fields map[string]json.RawMessage // all of them
}

type toolCall struct {
	ID       string `json:"id"`
	Function struct {
		Name string `json:"name"`
	} `json:"function"`
}

// UnmarshalJSON keeps the names of all fields.
func (r *request) UnmarshalJSON(raw []byte) error {
	type plain request
	if err := json.Unmarshal(raw, (*plain)(r)); err != nil {
		return err
	}
	return json.Unmarshal(raw, &r.fields)
}

// UnmarshalJSON keeps the names of all fields.
func (m *message) UnmarshalJSON(raw []byte) error {
	type plain message
	if err := json.Unmarshal(raw, (*plain)(m)); err != nil {
		return err
	}
	return json.Unmarshal(raw, &m.fields)
}

// silent reports whether the message has no text.
func (m message) silent() bool {
	var text string
	return len(m.RawContent) == 0 || json.Unmarshal(m.RawContent, &text) == nil && strings.TrimSpace(text) == ""
}
