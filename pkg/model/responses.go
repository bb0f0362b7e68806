package model

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
)

// responsesWire writes requests of OpenAI's Responses. Nothing is kept at the
// server: each request holds the whole conversation, and the thinking of earlier
// turns goes back as the server encrypted it.
type responsesWire struct{}

// The fields of a message's Extra that the Responses wire fills in.
const (
	reasoningItems = "reasoning_items" // the items of thinking, whole
	phaseField     = "phase"           // of the text: OpenAI wants it back
)

func (responsesWire) path() string { return "/responses" }

func (responsesWire) head(e *encoding, req Request) []byte {
	o := openObject(nil)
	o.text("model", e.model)
	e.bodyFields(o, e.responsesSettings(),
		bodyField{"stream", "true"}, bodyField{"store", "false"}, bodyField{"include", `["reasoning.encrypted_content"]`})
	if len(req.Tools) > 0 {
		list(o, "tools", req.Tools, func(b []byte, _ int, t ToolSpec) []byte {
			tool := openObject(b)
			tool.text("type", "function")
			tool.text("name", t.Name)
			tool.said("description", t.Description)
			if schema := e.schema(t.Schema); schema != nil {
				tool.raw("parameters", schema)
			}
			tool.raw("strict", []byte("false")) // else the server makes every argument a required one
			return tool.close()
		})
	}
	if len(req.Messages) > 0 && req.Messages[0].Role == "system" {
		o.text("instructions", e.text(req.Messages[0]))
	}
	o.key("input")
	return append(o.b, '[')
}

// moved are settings in the words of chat completions, which most endpoints speak,
// that stand in a field of another here.
var moved = []struct{ setting, field, key string }{
	{"reasoning_effort", "reasoning", "effort"},
	{"verbosity", "text", "verbosity"},
}

// responsesSettings returns the extra fields of the body in the words of Responses.
func (e *encoding) responsesSettings() map[string]json.RawMessage {
	extra := maps.Clone(e.Extra)
	for _, m := range moved {
		v, set := extra[m.setting]
		if _, whole := extra[m.field]; set && !whole && !slices.Contains(e.Drop, m.setting) {
			inner := openObject(nil)
			inner.raw(m.key, v)
			extra[m.field] = inner.close()
		}
		delete(extra, m.setting)
	}
	return extra
}

func (responsesWire) tail(e *encoding, limit int) []byte {
	o := &object{b: []byte("]"), any: true}
	o.number("max_output_tokens", limit)
	return o.close()
}

func (responsesWire) message(e *encoding, b []byte, ms []*Message, prev string, _ bool) ([]byte, string) {
	switch m := ms[0]; m.Role {
	case "system":
		return b, prev // stands in the instructions
	case "tool":
		o := openObject(b)
		o.text("type", "function_call_output")
		o.text("call_id", e.callID(m.ToolCallID))
		o.text("output", cmp.Or(e.text(m), "(no output)"))
		return append(o.close(), ','), "tool"
	case "assistant":
		return e.responsesTurn(b, m), "assistant"
	}
	o := openObject(b)
	o.text("type", "message")
	o.text("role", "user")
	e.responsesContent(o, e.parts(ms))
	return append(o.close(), ','), "user"
}

// responsesTurn appends the items of a turn of the assistant: its thinking, its
// text, its calls. A turn with neither text nor calls has none: thinking is refused
// without what followed from it.
func (e *encoding) responsesTurn(b []byte, m *Message) []byte {
	text := e.text(m)
	own := m.Origin == "" || m.Origin == e.origin
	if own && (text != "" || len(m.ToolCalls) > 0) {
		b = appendThinking(b, m.Extra[reasoningItems])
	}
	if text != "" {
		o := openObject(b)
		o.text("type", "message") // llama.cpp knows no item without
		o.text("role", "assistant")
		o.text("content", text)
		if p, ok := m.Extra[phaseField]; ok && own {
			o.raw(phaseField, p)
		}
		b = append(o.close(), ',')
	}
	for _, c := range m.ToolCalls {
		// Without the item's own id: it names something in the server's store
		// ("Expected an ID that begins with 'fc'", nodetool-ai/nodetool#4252).
		o := openObject(b)
		o.text("type", "function_call")
		o.text("call_id", e.callID(c.ID))
		o.text("name", e.callName(c.Name))
		o.text("arguments", arguments(c))
		b = append(o.close(), ',')
	}
	return b
}

// appendThinking appends the items that hold encrypted thinking. Ids are left out:
// "Item with id 'rs_...' not found. Items are not persisted when store is set to
// false" (maximhq/bifrost#5410), and an item without its encrypted content means
// nothing to the server.
func appendThinking(b []byte, raw json.RawMessage) []byte {
	var items []struct {
		Summary   json.RawMessage `json:"summary"`
		Encrypted string          `json:"encrypted_content"`
	}
	if json.Unmarshal(raw, &items) != nil {
		return b
	}
	for _, item := range items {
		if item.Encrypted == "" {
			continue
		}
		if len(item.Summary) == 0 {
			item.Summary = json.RawMessage("[]") // "Missing required parameter: 'input[N].summary'"
		}
		o := openObject(b)
		o.text("type", "reasoning")
		o.raw("summary", item.Summary)
		o.text("encrypted_content", item.Encrypted)
		b = append(o.close(), ',')
	}
	return b
}

func (e *encoding) responsesContent(o *object, ps []contentPart) {
	switch {
	case len(ps) == 0:
		o.text("content", "(empty)")
		return
	case len(ps) == 1 && ps[0].image == "":
		o.text("content", ps[0].text)
		return
	}
	list(o, "content", ps, func(b []byte, _ int, p contentPart) []byte {
		part := openObject(b)
		if p.image != "" {
			part.text("type", "input_image")
			part.text("image_url", p.image)
		} else {
			part.text("type", "input_text")
			part.text("text", p.text)
		}
		return part.close()
	})
}
