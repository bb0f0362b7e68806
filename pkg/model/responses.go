package model

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	openai "github.com/sashabaranov/go-openai"
)

// responsesWire encodes requests of OpenAI's Responses. The server stores nothing: each request has the whole
// conversation, and the encrypted thinking of earlier turns goes back unchanged.
type responsesWire struct{}

// The fields of a message's Extra that the Responses wire fills in.
const (
	reasoningItems = "reasoning_items" // the items of thinking, whole
	phaseField     = "phase"           // of the text: OpenAI wants it back
)

func (responsesWire) path() string { return "/responses" }

func (responsesWire) write(e *encoding, req Request, runs []run, end int) (call, error) {
	extra := e.settings([]movedSetting{{effortField, "reasoning", "effort"}, {"verbosity", "text", "verbosity"}})
	r := openai.CreateResponseRequest{Model: e.model}
	if e.ours("store", extra) {
		r.Store = new(bool)
	}
	if e.ours("include", extra) {
		r.Include = []openai.ResponseInclude{openai.ResponseIncludeReasoningEncryptedContent}
	}
	c := &carrier{encoding: e, req: req, extra: extra, limit: "max_output_tokens"}
	items, kept := []any{e.element(e.earlier.body, &c.from)}, beginning{}
	if len(e.earlier.messages) > 0 && req.Messages[0].Role == "system" {
		r.Instructions = e.say(e.text(req.Messages[0]))
	}
	for i, run := range runs {
		if i == end {
			kept.pictures = e.pictures
			items = append(items, e.element(nil, &c.to))
		}
		if run.ms[0].Role == "system" {
			r.Instructions = e.say(e.text(run.ms[0]))
		} else {
			items = e.responsesItems(items, run.ms)
		}
	}
	r.Input = items
	for _, t := range req.Tools {
		// Unless strict is false the server makes every argument required.
		parameters := map[string]any{"name": e.say(t.Name), "strict": false}
		if t.Description != "" {
			parameters["description"] = e.say(t.Description)
		}
		if schema := e.schema(t.Schema); schema != nil {
			parameters["parameters"] = e.raw(schema)
		}
		r.Tools = append(r.Tools, openai.ResponseTool{Type: openai.ToolTypeFunction, Parameters: parameters})
	}
	return carry(c, runs[:end], kept, func(c *openai.Client) (*openai.ResponseStream, error) {
		return c.CreateResponseStream(context.Background(), r)
	})
}

// movedSetting is a setting of chat completions that is part of another field here.
type movedSetting struct{ setting, field, key string }

// settings returns the extra fields of the body in the terms of a wire.
func (e *encoding) settings(moved []movedSetting) fields {
	extra := e.extra()
	for _, m := range moved {
		v, set := extra[m.setting]
		delete(extra, m.setting)
		whole := fields{}
		if field, ok := extra[m.field]; !set || slices.Contains(e.Drop, m.setting) || ok && json.Unmarshal(field, &whole) != nil {
			continue
		}
		if _, own := whole[m.key]; !own && whole != nil {
			whole[m.key] = v
			extra[m.field], _ = json.Marshal(whole) // it was JSON before
		}
	}
	return extra
}

// responsesItems appends the items of messages.
func (e *encoding) responsesItems(to []any, ms []*Message) []any {
	switch m := ms[0]; m.Role {
	case "tool":
		return append(to, openai.ResponseFunctionCallOutput{Type: "function_call_output", CallID: e.say(e.callID(m.ToolCallID)), Output: e.say(cmp.Or(e.text(m), "(no output)"))})
	case "assistant":
		return e.responsesTurn(to, m)
	}
	return append(to, openai.ResponseInputMessage{Type: "message", Role: "user", Content: e.responsesContent(e.parts(ms))})
}

// responsesTurn appends the items of a turn of the assistant: its thinking, its text, its calls. A turn with neither
// text nor calls has none: thinking alone is refused.
func (e *encoding) responsesTurn(to []any, m *Message) []any {
	text := e.text(m)
	own := m.Origin == "" || m.Origin == e.origin
	if own && (text != "" || len(m.ToolCalls) > 0) {
		to = e.appendThinking(to, m.Extra[reasoningItems])
	}
	if text != "" {
		said := openai.ResponseInputMessage{Type: "message", Role: "assistant", Content: e.say(text)} // llama.cpp knows no item without a type
		if p, ok := m.Extra[phaseField]; ok && own {
			said.Phase = e.raw(p)
		}
		to = append(to, said)
	}
	for _, c := range m.ToolCalls {
		// Without the item's own id: it refers to the server's store ("Expected an ID that begins with 'fc'",
		// nodetool-ai/nodetool#4252).
		to = append(to, openai.ResponseOutputItem{Type: "function_call", CallID: e.say(e.callID(c.ID)), Name: e.say(e.callName(c.Name)), Arguments: e.say(arguments(c))})
	}
	return to
}

// appendThinking appends the items with encrypted thinking. Ids are left out: "Item with id 'rs_...' not found. Items
// are not persisted when store is set to false" (maximhq/bifrost#5410), and an item without its encrypted content means
// nothing to the server.
func (e *encoding) appendThinking(to []any, raw json.RawMessage) []any {
	var items []struct {
		Summary   json.RawMessage `json:"summary"`
		Encrypted string          `json:"encrypted_content"`
	}
	if json.Unmarshal(raw, &items) != nil {
		return to
	}
	for _, item := range items {
		if item.Encrypted == "" {
			continue
		}
		if len(item.Summary) == 0 {
			item.Summary = json.RawMessage("[]") // "Missing required parameter: 'input[N].summary'"
		}
		to = append(to, struct { // go-openai has no words for encrypted thinking
			Type      string `json:"type"`
			Summary   string `json:"summary"`
			Encrypted string `json:"encrypted_content"`
		}{"reasoning", e.raw(item.Summary), e.say(item.Encrypted)})
	}
	return to
}

func (e *encoding) responsesContent(ps []contentPart) any {
	switch {
	case len(ps) == 0:
		return e.say("(empty)")
	case len(ps) == 1 && ps[0].image == "":
		return e.say(ps[0].text)
	}
	var content []any
	for _, p := range ps {
		if p.image != "" {
			content = append(content, openai.ResponseInputImage{Type: "input_image", ImageURL: e.say(p.image)})
		} else {
			content = append(content, openai.ResponseInputText{Type: "input_text", Text: e.say(p.text)})
		}
	}
	return content
}
