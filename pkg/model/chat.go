package model

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"maps"
	"math/big"
	"regexp"
	"slices"
	"strings"
)

// chatWire writes chat completions.
type chatWire struct{}

func (chatWire) path() string { return "/chat/completions" }

const ephemeral = `{"type":"ephemeral"}`

func (chatWire) head(e *encoding, req Request) []byte {
	o := openObject(nil)
	o.text("model", e.model)
	ours := []bodyField{{"stream", "true"}}
	if e.AskUsage {
		ours = append(ours, bodyField{"stream_options", `{"include_usage":true}`})
	}
	if e.marks == onTop {
		ours = append(ours, bodyField{"cache_control", ephemeral})
	}
	e.bodyFields(o, e.Extra, ours...)
	if len(req.Tools) > 0 {
		list(o, "tools", req.Tools, func(b []byte, i int, t ToolSpec) []byte {
			return e.chatTool(b, t, e.marks == onBlocks && i == len(req.Tools)-1)
		})
	}
	o.key("messages")
	return append(o.b, '[')
}

func (e *encoding) chatTool(b []byte, t ToolSpec, mark bool) []byte {
	fn := openObject(nil)
	fn.text("name", t.Name)
	fn.said("description", t.Description)
	if schema := e.schema(t.Schema); schema != nil {
		fn.raw("parameters", schema)
	}
	o := openObject(b)
	o.text("type", "function")
	o.raw("function", fn.close())
	if mark {
		o.raw("cache_control", []byte(ephemeral))
	}
	return o.close()
}

func (chatWire) tail(e *encoding, limit int) []byte {
	o := &object{b: []byte("]"), any: true}
	o.number(e.limitFieldFor(e.model), limit)
	return o.close()
}

func (chatWire) message(e *encoding, b []byte, ms []*Message, prev string, mark bool) ([]byte, string) {
	m := ms[0]
	switch {
	case e.joins(m) || m.Role == "user":
		if !slices.ContainsFunc(ms, func(m *Message) bool { return m.Role != "assistant" }) {
			return b, prev // empty turns only
		}
		if prev == "tool" && e.AfterTool != "" {
			b = e.line(b, "assistant", e.AfterTool)
		}
		o := openObject(b)
		o.text("role", "user")
		e.chatContent(o, e.parts(ms), mark)
		return append(o.close(), ','), "user"
	case m.Role == "system":
		o := openObject(b)
		o.text("role", e.SystemRole)
		e.chatContent(o, []contentPart{{text: e.text(m)}}, e.marks == onBlocks)
		return append(o.close(), ','), "system"
	case m.Role == "tool":
		o := openObject(b)
		o.text("role", "tool")
		o.text("tool_call_id", e.callID(m.ToolCallID))
		// An empty result is refused by several.
		e.chatContent(o, []contentPart{{text: cmp.Or(e.text(m), "(no output)")}}, mark)
		return append(o.close(), ','), "tool"
	case e.leavesOut(m):
		return b, prev
	}
	if e.BeforeTurn != "" && prev != "user" && prev != "tool" {
		b = e.line(b, "user", e.BeforeTurn)
	}
	return append(e.chatTurn(b, m), ','), "assistant"
}

// line appends a message of ours.
func (e *encoding) line(b []byte, role, text string) []byte {
	o := openObject(b)
	o.text("role", role)
	o.text("content", text)
	if role == "assistant" && e.Always != "" {
		o.text(e.Always, "")
	}
	return append(o.close(), ',')
}

// chatTurn appends a turn of the assistant.
func (e *encoding) chatTurn(b []byte, m *Message) []byte {
	o := openObject(b)
	o.text("role", "assistant")
	text := e.text(m)
	switch {
	case text != "":
		o.text("content", text)
	case len(m.ToolCalls) == 0:
		o.text("content", e.EmptyTurn)
	case e.BesideCalls == emptyText:
		o.text("content", "")
	case e.BesideCalls == null:
		o.raw("content", []byte("null"))
	}
	if len(m.ToolCalls) > 0 {
		list(o, "tool_calls", m.ToolCalls, func(b []byte, i int, c ToolCall) []byte { return e.chatCall(b, m, i, c) })
	}
	back := e.extras(m, m.Extra)
	if _, ok := back[e.Always]; e.Always != "" && !ok {
		o.text(e.Always, "")
	}
	fields(back).write(o, "role", "content", "tool_calls")
	return o.close()
}

// chatCall appends the i-th call of m.
func (e *encoding) chatCall(b []byte, m *Message, i int, c ToolCall) []byte {
	o := openObject(b)
	o.text("id", e.callID(c.ID))
	o.text("type", "function")
	fn := openObject(nil)
	fn.text("name", e.callName(c.Name))
	fn.text("arguments", arguments(c))
	o.raw("function", fn.close())
	back := e.extras(m, c.Extra)
	if back == nil && i == 0 { // another model's
		back = e.Foreign
	}
	fields(back).write(o, "id", "type", "function", "index")
	return o.close()
}

// chatContent writes what people or tools gave: as text if it is nothing else, for
// several endpoints know no other content.
func (e *encoding) chatContent(o *object, ps []contentPart, mark bool) {
	if len(ps) == 0 {
		ps = []contentPart{{text: "(empty)"}} // an empty message is refused by several
	}
	if !mark && len(ps) == 1 && ps[0].image == "" {
		o.text("content", ps[0].text)
		return
	}
	list(o, "content", ps, func(b []byte, i int, p contentPart) []byte {
		part := openObject(b)
		if p.image != "" {
			url := openObject(nil)
			url.text("url", p.image)
			part.text("type", "image_url")
			part.raw("image_url", url.close())
		} else {
			part.text("type", "text")
			part.text("text", p.text)
		}
		if mark && i == len(ps)-1 {
			part.raw("cache_control", []byte(ephemeral))
		}
		return part.close()
	})
}

// write writes the fields in the order of their names, without those that are ours.
func (f fields) write(o *object, ours ...string) {
	for _, k := range slices.Sorted(maps.Keys(f)) {
		if !slices.Contains(ours, k) {
			o.raw(k, f[k])
		}
	}
}

var nineAlnum = regexp.MustCompile(`^[a-zA-Z0-9]{9}$`)

var shortWord = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,40}$`)

// callID returns the id of a call in the form that the endpoint takes.
func (e *encoding) callID(id string) string {
	if e.CallIDs == anyID || nineAlnum.MatchString(id) || e.CallIDs == shortID && shortWord.MatchString(id) {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	digits := new(big.Int).SetBytes(sum[:]).Text(62)
	if e.CallIDs == shortID {
		return "call_" + digits[len(digits)-24:]
	}
	return digits[len(digits)-9:]
}

// callName returns the name of a call in the form that the endpoint takes. Models
// make up names that it would refuse, such as "functions.bash<|channel|>commentary".
func (e *encoding) callName(name string) string {
	switch {
	case e.names.MatchString(name):
		return name
	case name == "":
		return "unknown"
	}
	name = strings.Map(func(r rune) rune {
		if r < 128 && (r == '-' || r == '_' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z') {
			return r
		}
		return '_'
	}, name)
	if !e.names.MatchString(name[:1]) { // the length aside: a wrong beginning
		name = "_" + name
	}
	return name[:min(len(name), 64)]
}

// dataURL returns data as an address that holds it.
func dataURL(mediaType string, data []byte) string {
	return "data:" + mediaType + ";base64," + base64.StdEncoding.EncodeToString(data)
}
