package model

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// messagesReader builds one turn from the events of Anthropic's Messages, or from a whole message.
type messagesReader struct {
	partial
	blocks []*messagesBlock
	counts fields // the newest count of each kind of token
}

// messagesBlock is one block of an answer.
type messagesBlock struct {
	index int
	raw   fields                      // as it began
	grown map[string]*strings.Builder // its fields that come in pieces
	args  strings.Builder
}

type messagesEvent struct {
	Type    string          `json:"type"`
	Index   int             `json:"index"`
	Message messagesWhole   `json:"message"`
	Block   fields          `json:"content_block"`
	Delta   messagesDelta   `json:"delta"`
	Error   json.RawMessage `json:"error"`
	messagesWhole
}

// messagesWhole are the fields of a whole message.
type messagesWhole struct {
	Model   string   `json:"model"`
	Content []fields `json:"content"`
	Stop    string   `json:"stop_reason"`
	Usage   fields   `json:"usage"`
}

type messagesDelta struct {
	Type      string `json:"type"`
	Text      string `json:"text"`
	Thinking  string `json:"thinking"`
	Signature string `json:"signature"`
	Partial   string `json:"partial_json"`
	Stop      string `json:"stop_reason"`
}

func newMessagesReader(req Request, onDelta func(string)) *messagesReader {
	return &messagesReader{partial: newPartial(req, onDelta), counts: fields{}}
}

func (r *messagesReader) event(name string, data []byte) error {
	var e messagesEvent
	if err := json.Unmarshal(data, &e); err != nil {
		if said, ok := errorOf(data); ok {
			return said
		}
		return fmt.Errorf("an event cannot be read: %w", err)
	}
	if isSet(e.Error) {
		return streamError(e.Error, "the stream reports an error")
	}
	r.model = cmp.Or(e.Message.Model, e.Model, r.model)
	switch cmp.Or(e.Type, name) {
	case "message_start":
		r.count(e.Message.Usage)
	case "content_block_start":
		r.begin(e.Index, e.Block)
	case "content_block_delta":
		r.grow(e.Index, e.Delta)
	case "message_delta":
		r.count(e.Usage)
		return r.end(e.Delta.Stop)
	case "message": // of an endpoint that does not stream
		for i, block := range e.Content {
			r.begin(i, block)
		}
		r.count(e.Usage)
		return r.end(e.Stop)
	case "":
		said, ok := errorOf(data)
		if ok {
			return said
		}
	}
	return nil
}

// count updates the numbers that usage has.
func (r *messagesReader) count(usage fields) {
	maps.DeleteFunc(usage, func(_ string, v json.RawMessage) bool { return string(v) == "null" })
	maps.Copy(r.counts, usage)
	whole, _ := json.Marshal(r.counts) // it was JSON before
	r.usage = readUsage(whole)
}

func (r *messagesReader) begin(index int, raw fields) {
	b := &messagesBlock{index: index, raw: raw, grown: map[string]*strings.Builder{}}
	r.blocks = append(r.blocks, b)
	if loose(raw["type"]) == "text" {
		text := loose(raw["text"])
		b.add("text", text)
		r.say(text)
	}
}

// add appends a piece to the field.
func (b *messagesBlock) add(field, piece string) {
	if b.grown[field] == nil {
		b.grown[field] = &strings.Builder{}
	}
	b.grown[field].WriteString(piece)
}

func (r *messagesReader) grow(index int, d messagesDelta) {
	i := slices.IndexFunc(r.blocks, func(b *messagesBlock) bool { return b.index == index })
	if i < 0 {
		kinds := map[string]string{"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "thinking", "input_json_delta": "tool_use"}
		kind, _ := json.Marshal(kinds[d.Type]) // a string always encodes
		r.begin(index, fields{"type": kind})
		i = len(r.blocks) - 1
	}
	b := r.blocks[i]
	switch d.Type {
	case "text_delta":
		b.add("text", d.Text)
		r.say(d.Text)
	case "thinking_delta":
		b.add("thinking", d.Thinking)
	case "signature_delta":
		b.add("signature", d.Signature)
	case "input_json_delta":
		b.args.WriteString(d.Partial)
	}
}

// end records the reason why the answer ended; "" is none.
func (r *messagesReader) end(stop string) error {
	switch stop {
	case "model_context_window_exceeded":
		// A second answer would be cut off again: the conversation must be shorter.
		return &apiError{code: "context_length_exceeded", message: "the answer has filled the model's context window"}
	case "refusal":
		stop = "content_filter"
	case "tool_use":
		stop = "tool_calls"
	}
	r.finish = cmp.Or(finishReason(stop), r.finish)
	return nil
}

func (r *messagesReader) over() {
	if len(r.blocks) > 0 && !slices.ContainsFunc(r.blocks, func(b *messagesBlock) bool { return !json.Valid([]byte(b.arguments())) }) {
		r.finish = "stop"
	}
}

func (r *messagesReader) reply() Reply {
	reply := r.partial.reply()
	var kept []json.RawMessage
	thought := false
	for _, b := range r.blocks {
		was := answerBlock{Type: loose(b.raw["type"])}
		switch was.Type {
		case "text":
			was.Length = len(b.text("text"))
		case "tool_use":
			if r.cut() {
				continue
			}
			reply.Message.ToolCalls = append(reply.Message.ToolCalls, ToolCall{ID: r.ids.own(loose(b.raw["id"])), Name: loose(b.raw["name"]), Arguments: b.arguments()})
			reply.FinishReason = "tool_calls"
		case "thinking", "redacted_thinking":
			if was.Type == "thinking" && b.text("signature") == "" && len(loose(b.raw["signature"])) == 0 {
				continue // unsigned it is refused
			}
			thought = true
			kept = append(kept, b.whole())
			continue
		default: // of a tool that runs at the service, which none of ours does
			continue
		}
		raw, _ := json.Marshal(was) // always encodes
		kept = append(kept, raw)
	}
	if thought {
		reply.Message.Extra = map[string]json.RawMessage{}
		reply.Message.Extra[answerBlocks], _ = json.Marshal(kept) // each is JSON
	}
	return reply
}

// text returns a field that arrived in pieces.
func (b *messagesBlock) text(field string) string {
	if b.grown[field] == nil {
		return ""
	}
	return b.grown[field].String()
}

// whole returns a thought in the form in which it goes back, with its pieces.
func (b *messagesBlock) whole() json.RawMessage {
	raw := maps.Clone(b.raw)
	for field, s := range b.grown {
		raw[field], _ = json.Marshal(loose(raw[field]) + s.String()) // a string always encodes
	}
	out, _ := json.Marshal(raw) // so does what was JSON before
	return out
}

// arguments returns the arguments in pieces, else those at the beginning of the call.
func (b *messagesBlock) arguments() string {
	args := strings.TrimSpace(b.args.String())
	if args == "" {
		args = strings.TrimSpace(string(b.raw["input"]))
	}
	if args == "" || args == "null" {
		return "{}"
	}
	args, _ = repairArguments(args)
	return args
}

func (r *messagesReader) size() (n int) {
	for _, b := range r.blocks {
		n += b.args.Len() + len(b.raw["name"])
		for _, s := range b.grown {
			n += s.Len()
		}
	}
	return n
}
