package rehearsal

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// request is the part of a chat completion request that a script uses.
type request struct {
	Model         string    `json:"model"`
	Messages      []message `json:"messages"`
	Tools         []tool    `json:"tools"`
	Stream        bool      `json:"stream"`
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
}

type tool struct {
	Type     string `json:"type"`
	Function struct {
		Name       string          `json:"name"`
		Parameters json.RawMessage `json:"parameters"`
	} `json:"function"`
}

type message struct {
	Role       string          `json:"role"`
	RawContent json.RawMessage `json:"content"`
	Content    string          `json:"-"` // the text in RawContent
	ToolCalls  []toolCall      `json:"tool_calls"`
	ToolCallID string          `json:"tool_call_id"`
}

type toolCall struct {
	ID       string   `json:"id"`
	Type     string   `json:"type"`
	Function function `json:"function"`
}

type function struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// parseChat decodes a request and refuses what some endpoint in use would. Each error states the fault and its place.
func parseChat(body []byte) (request, error) {
	var r request
	if err := json.Unmarshal(body, &r); err != nil {
		return r, fmt.Errorf("the body is not a chat completion request: %w", err)
	}
	if r.Model == "" {
		return r, errors.New("model is missing")
	}
	for i := range r.Messages {
		if err := r.Messages[i].read(); err != nil {
			return r, fmt.Errorf("messages[%d]: %w", i, err)
		}
	}
	if err := r.checkTools(); err != nil {
		return r, err
	}
	for i, m := range r.Messages {
		if err := m.check(i); err != nil {
			return r, fmt.Errorf("messages[%d]: %w", i, err)
		}
	}
	return r, checkOrder(r.Messages)
}

// read fills in Content from a string, or from the texts of a list of parts.
func (m *message) read() error {
	if len(m.RawContent) == 0 || string(m.RawContent) == "null" {
		return nil
	}
	if json.Unmarshal(m.RawContent, &m.Content) == nil {
		return nil
	}
	var parts []struct{ Type, Text string }
	if json.Unmarshal(m.RawContent, &parts) != nil {
		return errors.New("content must be a string or a list of parts")
	}
	for _, p := range parts {
		if p.Type != "text" && p.Type != "image_url" {
			return fmt.Errorf("a part of content has the type %q, not text or image_url", p.Type)
		}
		m.Content += p.Text
	}
	return nil
}

var toolName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

func (r request) checkTools() error {
	seen := map[string]bool{}
	for i, t := range r.Tools {
		name := t.Function.Name
		var schema struct {
			Type string `json:"type"`
		}
		switch {
		case t.Type != "function":
			return fmt.Errorf("tools[%d]: type is %q, not function", i, t.Type)
		case !toolName.MatchString(name):
			return fmt.Errorf("tools[%d]: bad name %q", i, name)
		case seen[name]:
			return fmt.Errorf("tools[%d]: a second tool with the name %s", i, name)
		case json.Unmarshal(t.Function.Parameters, &schema) != nil || schema.Type != "object":
			return fmt.Errorf("tools[%d]: parameters of %s must be the schema of an object", i, name)
		}
		seen[name] = true
	}
	return nil
}

// check checks the i-th message alone.
func (m message) check(i int) error {
	switch m.Role {
	case "system", "user", "assistant", "tool":
	default:
		return fmt.Errorf("unknown role %q", m.Role)
	}
	if (i == 0) != (m.Role == "system") {
		return fmt.Errorf("it is a %s message; there must be exactly one system message, the first", m.Role)
	}
	switch {
	case m.RawContent == nil:
		return fmt.Errorf("the %s message has no content key", m.Role)
	case string(m.RawContent) == "null":
		return errors.New("content must be a string or a list of parts")
	case m.Content == "" && !(len(m.ToolCalls) > 0 && m.Role == "assistant") && len(m.RawContent) <= len(`""`):
		return fmt.Errorf("the content of the %s message is empty", m.Role)
	}
	if len(m.ToolCalls) > 0 && m.Role != "assistant" {
		return fmt.Errorf("a %s message has tool_calls", m.Role)
	}
	for k, c := range m.ToolCalls {
		switch {
		case c.ID == "" || c.Type != "function" || c.Function.Name == "":
			return fmt.Errorf("tool_calls[%d] needs an id, the type function and a name", k)
		case !toolName.MatchString(c.Function.Name):
			return fmt.Errorf("tool_calls[%d]: bad name %q", k, c.Function.Name)
		case !isObject(c.Function.Arguments):
			return fmt.Errorf("tool_calls[%d]: the arguments are no JSON object", k)
		}
	}
	return nil
}

// checkOrder checks that every call is answered, once, before any other message, and that there is something to reply
// to.
func checkOrder(ms []message) error {
	open, seen := map[string]bool{}, map[string]bool{}
	for i, m := range ms {
		if m.Role == "tool" {
			if !open[m.ToolCallID] {
				return fmt.Errorf("messages[%d]: no open tool call has the id %q", i, m.ToolCallID)
			}
			delete(open, m.ToolCallID)
			continue
		}
		if len(open) > 0 {
			return fmt.Errorf("messages[%d]: %d tool calls before it have no tool message", i, len(open))
		}
		for _, c := range m.ToolCalls {
			if seen[c.ID] {
				return fmt.Errorf("messages[%d]: the tool call id %s comes twice", i, c.ID)
			}
			open[c.ID], seen[c.ID] = true, true
		}
	}
	switch {
	case len(open) > 0:
		return fmt.Errorf("%d tool calls at the end have no tool message", len(open))
	case len(ms) < 2:
		return errors.New("messages needs a system message and at least one more")
	case ms[len(ms)-1].Role == "assistant":
		return errors.New("the last message is the assistant's own; there is nothing to reply to")
	}
	return nil
}

var introduction = regexp.MustCompile(`(?m)^You are (\S+), role (\S+), in team (\S+)\.\s*\z`)

// asker returns the agent in the last line of the system message.
func (r request) asker() (asker, error) {
	m := introduction.FindStringSubmatch(r.Messages[0].Content)
	if m == nil {
		return asker{}, errors.New(`the system message must end with the line "You are NAME, role ROLE, in team TEAM."`)
	}
	return asker{name: m[1], role: m[2], team: m[3]}, nil
}

// isObject reports whether s is a JSON object: several endpoints refuse a conversation with
// a call whose arguments are anything else.
func isObject(s string) bool {
	s = strings.TrimSpace(s)
	return strings.HasPrefix(s, "{") && json.Valid([]byte(s))
}
