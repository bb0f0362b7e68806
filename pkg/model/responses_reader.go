package model

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// responsesReader builds one turn from the events of a Responses stream.
type responsesReader struct {
	partial
	items []*outputItem
	other int // bytes of what is neither text nor arguments
}

// outputItem is one item of the output: text, thinking or a call.
type outputItem struct {
	index int // the server's number for it
	told  toldItem
	raw   json.RawMessage // as the server gave it when it was done
	said  bool            // its text came in pieces
	args  strings.Builder // as they came in pieces
}

// toldItem is an item as the server reports it.
type toldItem struct {
	Type      string          `json:"type"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments string          `json:"arguments"`
	Phase     json.RawMessage `json:"phase"`
	Content   []struct {
		Text    string `json:"text"`
		Refusal string `json:"refusal"`
	} `json:"content"`
}

// responsesEvent is the part of an event of any type that is read.
type responsesEvent struct {
	Type     string          `json:"type"`
	Index    int             `json:"output_index"`
	Delta    json.RawMessage `json:"delta"`
	Item     json.RawMessage `json:"item"`
	Response struct {
		Model      string            `json:"model"`
		Output     []json.RawMessage `json:"output"`
		Error      json.RawMessage   `json:"error"`
		Usage      json.RawMessage   `json:"usage"`
		Incomplete struct {
			Reason string `json:"reason"`
		} `json:"incomplete_details"`
	} `json:"response"`
	Arguments string          `json:"arguments"`
	Error     json.RawMessage `json:"error"`
}

func newResponsesReader(req Request, onDelta func(string)) *responsesReader {
	return &responsesReader{partial: newPartial(req, onDelta)}
}

func (r *responsesReader) event(name string, data []byte) error {
	var e responsesEvent
	if err := json.Unmarshal(data, &e); err != nil {
		return fmt.Errorf("an event cannot be read: %w", err)
	}
	r.model = cmp.Or(e.Response.Model, r.model)
	switch cmp.Or(e.Type, name) {
	case "response.output_text.delta", "response.refusal.delta":
		r.find(e.Index).said = true
		r.say(eventText(e.Delta))
	case "response.function_call_arguments.delta":
		r.find(e.Index).args.WriteString(eventText(e.Delta))
	case "response.function_call_arguments.done":
		r.find(e.Index).told.Arguments = e.Arguments
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		r.other += len(eventText(e.Delta))
	case "response.output_item.added":
		return r.item(e.Index, e.Item, false)
	case "response.output_item.done":
		return r.item(e.Index, e.Item, true)
	case "response.completed":
		return r.end(e, "stop")
	case "response.incomplete":
		return r.end(e, cmp.Or(finishReason(e.Response.Incomplete.Reason), "length"))
	case "response.failed":
		r.usage = readUsage(e.Response.Usage)
		return streamError(e.Response.Error, "the endpoint reports that the answer failed")
	case "error":
		if !isSet(e.Error) {
			e.Error = data // the event is itself the error's object
		}
		return streamError(e.Error, "the stream reports an error")
	}
	return nil // there are dozens that only say where the server is
}

// streamError returns the error that a stream reports, with the message without if it has none.
func streamError(reported json.RawMessage, without string) error {
	e, _ := errorIn(fields{"error": reported})
	e.message = cmp.Or(e.message, without)
	return &e
}

// eventText returns the text of a piece; "" for other JSON.
func eventText(raw json.RawMessage) (text string) {
	_ = json.Unmarshal(raw, &text)
	return text
}

// find returns the item of that number, a new one if there is none.
func (r *responsesReader) find(index int) *outputItem {
	for _, it := range slices.Backward(r.items) {
		if it.index == index {
			return it
		}
	}
	it := &outputItem{index: index}
	r.items = append(r.items, it)
	return it
}

// item reads an item as the server reports it, at its beginning and at its end.
func (r *responsesReader) item(index int, raw json.RawMessage, done bool) error {
	var told toldItem
	if err := json.Unmarshal(raw, &told); err != nil {
		return fmt.Errorf("an item cannot be read: %w", err)
	}
	it := r.find(index)
	if it.told.CallID != "" && told.CallID != "" && it.told.CallID != told.CallID {
		// Some gateways number every item 0.
		it = &outputItem{index: index}
		r.items = append(r.items, it)
	}
	told.Arguments = cmp.Or(told.Arguments, it.told.Arguments)
	it.told = told
	if !done {
		return nil
	}
	it.raw = raw
	if !it.said { // a server that sends no pieces
		for _, c := range told.Content {
			if told.Type == "message" {
				r.say(c.Text + c.Refusal)
			}
		}
	}
	if told.Type == "reasoning" {
		r.other += len(raw)
	}
	return nil
}

// end reads the event with the reason why the answer ended.
func (r *responsesReader) end(e responsesEvent, finish string) error {
	if len(r.items) == 0 { // a server that tells only the whole
		for i, raw := range e.Response.Output {
			if err := r.item(i, raw, true); err != nil {
				return err
			}
		}
	}
	r.usage = readUsage(e.Response.Usage)
	r.finish = finish
	return nil
}

func (r *responsesReader) over() {
	if len(r.items) > 0 && !slices.ContainsFunc(r.items, func(it *outputItem) bool { return it.raw == nil }) {
		r.finish = "stop"
	}
}

func (r *responsesReader) reply() Reply {
	reply := r.partial.reply()
	extra := map[string]json.RawMessage{}
	var thinking []json.RawMessage
	for _, it := range r.items {
		switch {
		case it.told.Type == "reasoning" && it.raw != nil:
			thinking = append(thinking, it.raw)
		case it.told.Type == "message" && len(it.told.Phase) > 0 && string(it.told.Phase) != "null":
			extra[phaseField] = it.told.Phase
		case it.told.Type == "function_call" && r.finish == "stop": // else the last may be cut
			args, _ := repairArguments(cmp.Or(it.told.Arguments, it.args.String(), "{}"))
			reply.Message.ToolCalls = append(reply.Message.ToolCalls, ToolCall{ID: r.ids.own(it.told.CallID), Name: it.told.Name, Arguments: args})
			reply.FinishReason = "tool_calls"
		}
	}
	if len(thinking) > 0 {
		extra[reasoningItems], _ = json.Marshal(thinking) // each came as JSON
	}
	if len(extra) > 0 {
		reply.Message.Extra = extra
	}
	return reply
}

func (r *responsesReader) size() int {
	n := r.text.Len() + r.other
	for _, it := range r.items {
		n += len(it.told.Name) + max(len(it.told.Arguments), it.args.Len())
	}
	return n
}
