package model

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// assembly puts one turn together from the chunks of its stream.
type assembly struct {
	tools   map[string]bool // the names that the model was offered
	ids     map[string]bool // call ids that the conversation holds already
	content strings.Builder
	extra   pieces
	calls   []*toolCall
	finish  string // "" until the endpoint said why it stopped
	model   string
	usage   Usage
}

type toolCall struct {
	index *int // the endpoint's number for it; nil if it sends none
	id    string
	name  string
	args  strings.Builder
	extra pieces
}

func newAssembly(req Request) *assembly {
	a := &assembly{tools: map[string]bool{}, ids: map[string]bool{}, model: req.Model, extra: pieces{}}
	for _, t := range req.Tools {
		a.tools[t.Name] = true
	}
	for _, m := range req.Messages {
		for _, c := range m.ToolCalls {
			a.ids[c.ID] = true
		}
	}
	return a
}

// add takes one chunk, the JSON of a data line. An error means that the stream is
// broken: the chunk cannot be read, or it reports one.
func (a *assembly) add(raw []byte, onDelta func(string)) error {
	var chunk struct {
		Model   string `json:"model"`
		Choices []struct {
			Index        int    `json:"index"`
			Delta        fields `json:"delta"`
			FinishReason string `json:"finish_reason"`
		} `json:"choices"`
		Usage *Usage          `json:"usage"`
		Error json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(raw, &chunk); err != nil {
		return fmt.Errorf("a chunk cannot be read: %w", err)
	}
	if len(chunk.Error) > 0 && string(chunk.Error) != "null" {
		return fmt.Errorf("the stream reports %s", chunk.Error)
	}
	a.model = cmp.Or(chunk.Model, a.model)
	if chunk.Usage != nil {
		a.usage = *chunk.Usage
	}
	for _, c := range chunk.Choices {
		if c.Index != 0 { // we ask for one choice only
			continue
		}
		if err := a.addDelta(c.Delta, onDelta); err != nil {
			return fmt.Errorf("a chunk cannot be read: %w", err)
		}
		if c.FinishReason == "error" { // OpenRouter's word for a provider that broke down
			return errors.New("the stream reports an error of the provider")
		}
		a.finish = cmp.Or(c.FinishReason, a.finish)
	}
	return nil
}

func (a *assembly) addDelta(d fields, onDelta func(string)) error {
	var text, role string
	var calls []fields
	if err := errors.Join(d.take("content", &text), d.take("role", &role), d.take("tool_calls", &calls)); err != nil {
		return err
	}
	a.extra.add(d)
	if text != "" {
		a.content.WriteString(text)
		onDelta(text)
	}
	for _, c := range calls {
		if err := a.addCall(c); err != nil {
			return err
		}
	}
	return nil
}

// addCall takes one piece of a tool call.
func (a *assembly) addCall(d fields) error {
	var index *int
	var id, kind string
	var fn struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	if err := errors.Join(d.take("index", &index), d.take("id", &id), d.take("type", &kind), d.take("function", &fn)); err != nil {
		return err
	}
	c := a.find(index, id, fn.Name)
	c.id = cmp.Or(c.id, id)
	// The name may come in pieces, or whole in every piece.
	if !a.tools[c.name] || fn.Name != c.name {
		c.name += fn.Name
	}
	c.args.WriteString(argumentText(fn.Arguments))
	c.extra.add(d)
	return nil
}

// find returns the call that a piece belongs to: by its number, else by its id,
// else the one before, unless the piece clearly begins another.
func (a *assembly) find(index *int, id, name string) *toolCall {
	for _, c := range slices.Backward(a.calls) {
		switch {
		case index != nil && c.index != nil && *c.index == *index:
			// Some number every call 0; a new id with a new name tells them apart.
			if id == "" || c.id == "" || id == c.id || name == "" {
				return c
			}
		case index == nil && id != "" && id == c.id:
			return c
		}
	}
	if index == nil && id == "" && len(a.calls) > 0 {
		last := a.calls[len(a.calls)-1]
		if name == "" || last.args.Len() == 0 && !a.tools[last.name] {
			return last
		}
	}
	c := &toolCall{index: index, extra: pieces{}}
	a.calls = append(a.calls, c)
	return c
}

// reply returns the finished turn.
func (a *assembly) reply() Reply {
	r := Reply{
		Message:      Message{Role: "assistant", Content: a.content.String(), Extra: a.extra.join()},
		FinishReason: a.finish,
		Usage:        a.usage,
		Model:        a.model,
	}
	if a.finish == "length" || a.finish == "content_filter" {
		return r // the last call may be cut in the middle of its arguments
	}
	for _, c := range a.calls {
		if c.id == "" || a.ids[c.id] { // the agent tells its calls apart by id
			c.id = "call_" + strings.ToLower(rand.Text())
		}
		a.ids[c.id] = true
		r.Message.ToolCalls = append(r.Message.ToolCalls, ToolCall{
			ID: c.id, Name: c.name, Arguments: cmp.Or(c.args.String(), "{}"), Extra: c.extra.join(),
		})
		r.FinishReason = "tool_calls" // whatever the endpoint calls it
	}
	return r
}

// size is the length in bytes of all that the model wrote.
func (a *assembly) size() int {
	n := a.content.Len() + a.extra.size()
	for _, c := range a.calls {
		n += len(c.name) + c.args.Len()
	}
	return n
}
