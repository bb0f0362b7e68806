package model

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"math/big"
	"regexp"
	"slices"
	"strings"

	openai "github.com/sashabaranov/go-openai"
)

// chatWire encodes chat completions.
type chatWire struct{}

func (chatWire) path() string { return "/chat/completions" }

const ephemeral = `{"type":"ephemeral"}`

func (chatWire) write(e *encoding, req Request, runs []run, end int) (call, error) {
	r := openai.ChatCompletionRequest{Model: e.model, Messages: []openai.ChatCompletionMessage{}}
	extra := e.extra()
	if e.AskUsage && e.ours("stream_options", extra) {
		r.StreamOptions = &openai.StreamOptions{IncludeUsage: true}
	}
	if e.marks == onTop && e.ours("cache_control", extra) {
		extra["cache_control"] = json.RawMessage(ephemeral)
	}
	c := &carrier{encoding: e, req: req, extra: extra, limit: e.limitFieldFor(e.model)}
	var kept beginning
	at := 0
	for i, run := range runs {
		if i == end {
			at, kept = len(r.Messages), e.upTo(r.Messages)
		}
		r.Messages = e.chatMessages(r.Messages, run)
	}
	r.Messages = slices.Insert(r.Messages, at, openai.ChatCompletionMessage{Role: e.element(nil, &c.to)})
	r.Messages = slices.Insert(r.Messages, 0, openai.ChatCompletionMessage{Role: e.element(e.earlier.body, &c.from)})
	for i, t := range req.Tools {
		schema := e.schema(t.Schema)
		if schema == nil {
			schema = noKey
		}
		tool := openai.Tool{Type: openai.ToolTypeFunction, Function: &openai.FunctionDefinition{Name: e.say(t.Name), Description: e.said(t.Description), Parameters: e.raw(schema)}}
		if e.marks == onBlocks && i == len(req.Tools)-1 {
			tool.Parameters = map[string]any{"cache_control": e.raw([]byte(ephemeral))}
		}
		r.Tools = append(r.Tools, tool)
	}
	return carry(c, runs[:end], kept, func(c *openai.Client) (*openai.ChatCompletionStream, error) {
		return c.CreateChatCompletionStream(context.Background(), r)
	})
}

// upTo returns the beginning that ends with the messages.
func (e *encoding) upTo(ms []openai.ChatCompletionMessage) beginning {
	b := beginning{last: e.earlier.last, pictures: e.pictures}
	if len(ms) > 0 {
		b.last = ms[len(ms)-1].Role
	}
	return b
}

// chatMessages appends the messages of a run.
func (e *encoding) chatMessages(to []openai.ChatCompletionMessage, r run) []openai.ChatCompletionMessage {
	prev := e.upTo(to).last
	m := r.ms[0]
	switch {
	case e.joins(m) || m.Role == "user":
		if !slices.ContainsFunc(r.ms, func(m *Message) bool { return m.Role != "assistant" }) {
			return to // empty turns only
		}
		if prev == "tool" && e.AfterTool != "" {
			to = append(to, e.chatTurn(&Message{Role: "assistant", Content: e.AfterTool}))
		}
		return append(to, e.chatContent(openai.ChatCompletionMessage{Role: "user"}, e.parts(r.ms), r.mark))
	case m.Role == "system":
		return append(to, e.chatContent(openai.ChatCompletionMessage{Role: e.SystemRole}, []contentPart{{text: e.text(m)}}, e.marks == onBlocks))
	case m.Role == "tool":
		// An empty result is refused by several.
		result := []contentPart{{text: cmp.Or(e.text(m), "(no output)")}}
		return append(to, e.chatContent(openai.ChatCompletionMessage{Role: "tool", ToolCallID: e.say(e.callID(m.ToolCallID))}, result, r.mark))
	case e.leavesOut(m):
		return to
	}
	if e.BeforeTurn != "" && prev != "user" && prev != "tool" {
		to = append(to, openai.ChatCompletionMessage{Role: "user", Content: e.say(e.BeforeTurn)})
	}
	return append(to, e.chatTurn(m))
}

// chatTurn encodes a turn of the assistant.
func (e *encoding) chatTurn(m *Message) openai.ChatCompletionMessage {
	turn := openai.ChatCompletionMessage{Role: "assistant"}
	text := e.text(m)
	switch {
	case text != "":
		turn.Content = e.say(text)
	case len(m.ToolCalls) == 0:
		turn.Content = e.say(e.EmptyTurn)
	case e.WithCalls == emptyText:
		turn.Content = e.say("")
	case e.WithCalls == null:
		turn.Content = e.raw([]byte("null"))
	}
	for i, c := range m.ToolCalls {
		back := e.extras(m, c.Extra)
		if back == nil && i == 0 { // another model's
			back = e.Foreign
		}
		turn.ToolCalls = append(turn.ToolCalls, openai.ToolCall{
			ID: e.say(e.callID(c.ID)), Type: openai.ToolType(e.also("function", back, "id", "type", "function", "index")),
			Function: openai.FunctionCall{Name: e.say(e.callName(c.Name)), Arguments: e.say(arguments(c))},
		})
	}
	back := e.extras(m, m.Extra)
	if _, ok := back[e.Always]; e.Always != "" && !ok {
		back = maps.Clone(back)
		if back == nil {
			back = fields{}
		}
		back[e.Always] = json.RawMessage(`""`)
	}
	if len(back) > 0 {
		turn.Role = e.also("assistant", back, "role", "content", "tool_calls")
	}
	return turn
}

// chatContent returns m with the content from people or tools: as a string if it is only text, for several endpoints
// accept no other content.
func (e *encoding) chatContent(m openai.ChatCompletionMessage, ps []contentPart, mark bool) openai.ChatCompletionMessage {
	if len(ps) == 0 {
		ps = []contentPart{{text: "(empty)"}} // an empty message is refused by several
	}
	if !mark && len(ps) == 1 && ps[0].image == "" {
		m.Content = e.say(ps[0].text)
		return m
	}
	for i, p := range ps {
		part := openai.ChatMessagePart{Type: openai.ChatMessagePartTypeText}
		if p.image != "" {
			part.Type, part.ImageURL = openai.ChatMessagePartTypeImageURL, &openai.ChatMessageImageURL{URL: e.say(p.image)}
		} else {
			part.Text = e.say(p.text)
		}
		if mark && i == len(ps)-1 {
			part.Type = openai.ChatMessagePartType(e.also(string(part.Type), fields{"cache_control": json.RawMessage(ephemeral)}))
		}
		m.MultiContent = append(m.MultiContent, part)
	}
	return m
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

// callName returns the name of a call in the form that the endpoint takes. Models invent names that it would refuse,
// such as "functions.bash<|channel|>commentary".
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

// dataURL returns data as a data URL.
func dataURL(mediaType string, data []byte) string {
	return "data:" + mediaType + ";base64," + base64.StdEncoding.EncodeToString(data)
}
