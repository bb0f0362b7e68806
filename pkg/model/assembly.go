package model

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"

	"agentteam/pkg/team/codec"
)

// partial is the common state of the readers of an unfinished turn.
type partial struct {
	onDelta func(string)
	ids     heldIDs
	text    strings.Builder
	finish  string // "" until the endpoint said why it stopped
	model   string
	usage   Usage
}

func newPartial(req Request, onDelta func(string)) partial {
	return partial{onDelta: onDelta, ids: idsIn(req), model: req.Model}
}

func (p *partial) say(text string) {
	if text != "" {
		p.text.WriteString(text)
		p.onDelta(text)
	}
}

func (p *partial) finished() bool { return p.finish != "" }

func (p *partial) used() Usage { return p.usage }

// cut reports whether the last call may be cut in the middle of its arguments.
func (p *partial) cut() bool { return p.finish == "length" || p.finish == "content_filter" }

// reply returns the turn without its calls.
func (p *partial) reply() Reply {
	return Reply{Message: Message{Role: "assistant", Content: p.text.String()}, FinishReason: p.finish, Usage: p.usage, Model: p.model}
}

// chatReader builds one turn from the chunks of a chat completion, or from a whole one.
type chatReader struct {
	partial
	extra chunks
	calls callList
	chunk chunk // the newest; each takes the room of the last
}

var _ turnReader = (*chatReader)(nil)

func newChatReader(req Request, onDelta func(string)) *chatReader {
	r := &chatReader{partial: newPartial(req, onDelta), extra: chunks{}}
	r.calls.known = namesOf(req)
	return r
}

// heldIDs are the ids of the calls in the conversation.
type heldIDs map[string]bool

func idsIn(req Request) heldIDs {
	ids := heldIDs{}
	for _, m := range req.Messages {
		for _, c := range m.ToolCalls {
			ids[c.ID] = true
		}
	}
	return ids
}

// own returns id, or a new one if it is empty or in use: the agent distinguishes its calls by id.
func (ids heldIDs) own(id string) string {
	if id == "" || ids[id] {
		id = "call_" + strings.ToLower(rand.Text())
	}
	ids[id] = true
	return id
}

// chunk is the part of a chat.completion.chunk, or of a chat.completion, that is read.
type chunk struct {
	Model   word `json:"model"`
	Choices []struct {
		Index        number          `json:"index"`
		Delta        json.RawMessage `json:"delta"`
		Message      json.RawMessage `json:"message"` // of an endpoint that does not stream, or does it so
		FinishReason word            `json:"finish_reason"`
	} `json:"choices"`
	Usage json.RawMessage `json:"usage"`
	Error json.RawMessage `json:"error"`
}

func (r *chatReader) event(name string, data []byte) error {
	if len(data) == 0 || string(data) == endMark {
		return nil
	}
	room := r.chunk.Choices[:cap(r.chunk.Choices)]
	clear(room)
	r.chunk = chunk{Choices: room[:0]}
	c := &r.chunk
	if err := codec.Unmarshal(data, c); err != nil {
		if name == "error" || data[0] == '[' {
			e := parseError(data)
			return &e
		}
		return fmt.Errorf("a chunk cannot be read: %w", err)
	}
	if name == "error" || isSet(c.Error) || len(c.Choices) == 0 && !isSet(c.Usage) {
		if e, ok := errorOf(data); ok {
			return e
		}
	}
	r.model = cmp.Or(string(c.Model), r.model)
	if isSet(c.Usage) {
		if u := readUsage(c.Usage); u != (Usage{}) { // some send it with every chunk, or empty at last
			r.usage = u
		}
	}
	for _, choice := range c.Choices {
		delta, callsOnly := choice.Delta, choice.Index != 0 // we ask for one choice only
		if !isSet(delta) && isSet(choice.Message) && !r.calls.has(choice.Index) {
			delta, callsOnly = choice.Message, callsOnly || r.size() > 0 // else it may say once more what came in pieces
		}
		if err := r.add(choice.Index, delta, callsOnly); err != nil {
			return fmt.Errorf("a chunk cannot be read: %w", err)
		}
		if choice.Index != 0 && !r.calls.has(choice.Index) {
			continue
		}
		if choice.FinishReason == "error" { // OpenRouter's word for a provider that broke down
			return &apiError{kind: "server_error", message: "the provider behind the endpoint broke down"}
		}
		r.finish = cmp.Or(finishReason(string(choice.FinishReason)), r.finish)
	}
	return nil
}

// errorOf returns the error that an event reports; ok is false if it reports none.
func errorOf(data []byte) (*apiError, bool) {
	f := fields{}
	_ = json.Unmarshal(data, &f) // it was read before
	e, ok := errorIn(f)
	return &e, ok
}

// finishReason returns the endpoint's word in the vocabulary of chat completions, if it is known.
func finishReason(word string) string {
	switch strings.ToLower(word) {
	case "max_tokens", "max_output_tokens", "model_length":
		return "length"
	case "safety", "recitation", "prohibited_content", "blocklist", "spii":
		return "content_filter"
	case "end_turn", "eos", "stop_sequence", "stop":
		return "stop"
	}
	return word
}

// add reads a delta, the part of a chunk about one choice.
func (r *chatReader) add(choice number, delta json.RawMessage, callsOnly bool) error {
	if said, ok := onlyContent(delta); ok && !callsOnly {
		r.say(said)
		return nil
	}
	if !isSet(delta) {
		return nil
	}
	d := fields{}
	if err := json.Unmarshal(delta, &d); err != nil {
		return err
	}
	if isSet(d["content"]) && !callsOnly {
		said, thought, err := contentOf(d["content"])
		if err != nil {
			return err
		}
		if thought != "" {
			raw, _ := json.Marshal(thought) // a string always encodes
			r.extra.add(fields{"reasoning_content": raw})
		}
		r.say(said)
	}
	delete(d, "content")
	delete(d, "role")
	var calls []fields
	if err := d.take("tool_calls", &calls); err != nil {
		return err
	}
	if isSet(d["function_call"]) { // as it was before there were several
		calls = append(calls, fields{"function": d["function_call"]})
		delete(d, "function_call")
	}
	if !callsOnly {
		r.extra.add(d)
	}
	for _, c := range calls {
		if err := r.calls.add(choice, c); err != nil {
			return err
		}
	}
	return nil
}

// onlyContent returns the text of a delta that has nothing else; ok is false for any other. Most deltas of a stream are
// such, and general decoding takes several times as long.
func onlyContent(delta []byte) (said string, ok bool) {
	rest, is := bytes.CutPrefix(delta, []byte(`{"content":`))
	if !is || len(rest) < len(`""}`) || bytes.Count(rest, []byte(`"`)) != 2 || !bytes.HasSuffix(rest, []byte(`"}`)) {
		return "", false
	}
	return unescaped(rest[:len(rest)-1])
}

// contentOf decodes a message's content: a string, or an array of parts as Mistral's reasoning models send it.
func contentOf(raw json.RawMessage) (said, thought string, err error) {
	if raw[0] != '[' {
		err = json.Unmarshal(raw, &said)
		return said, "", err
	}
	var parts []struct {
		Type     string          `json:"type"`
		Text     string          `json:"text"`
		Thinking json.RawMessage `json:"thinking"`
	}
	if err := json.Unmarshal(raw, &parts); err != nil {
		return "", "", fmt.Errorf("content: %w", err)
	}
	for _, p := range parts {
		said += p.Text
		if isSet(p.Thinking) {
			t, _, err := contentOf(p.Thinking)
			if err != nil {
				return "", "", err
			}
			thought += t
		}
	}
	return said, thought, nil
}

func (r *chatReader) over() {
	if r.calls.whole() && (len(r.calls.list) > 0 || r.text.Len() > 0) {
		r.finish = "stop"
	}
}

func (r *chatReader) reply() Reply {
	turn := r.partial.reply()
	if turn.Message.Extra = r.extra.join(); r.cut() {
		return turn
	}
	if turn.Message.ToolCalls = r.calls.calls(r.ids); turn.Message.ToolCalls != nil {
		turn.FinishReason = "tool_calls" // whatever the endpoint calls it
	}
	return turn
}

func (r *chatReader) size() int { return r.text.Len() + r.extra.size() + r.calls.size() }
