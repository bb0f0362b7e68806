package rehearsal

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"strings"
	"time"

	"agentteam/pkg/team/codec"
)

// answer is a turn that is being sent.
type answer struct {
	turn  turn
	model string
	usage usage
	cut   bool     // break off in the middle
	error *refusal // told in the middle of a stream; nil: none
}

type usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens"`
}

// usageOf counts four bytes a token, as a rough tokenizer would.
func usageOf(promptBytes int, t turn) usage {
	written := len(t.text)
	for _, c := range t.calls {
		written += len(c.Function.Name) + len(c.Function.Arguments)
	}
	u := usage{Prompt: promptBytes/4 + 1, Completion: written/4 + 1}
	u.Total = u.Prompt + u.Completion
	return u
}

// spoiled returns t with the fault. A spoiled call has an id that does not mark the step as played, so that the step is
// played properly when the agent asks again.
func (t turn) spoiled(by fault) turn {
	switch {
	case by.Malformed, by.NoObject:
		c := t.calls[0]
		c.ID = callID("spoiled", -1) // no step's
		c.Function.Arguments = c.Function.Arguments[:len(c.Function.Arguments)/2]
		if by.NoObject {
			c.Function.Arguments = `["` + c.Function.Name + `"]`
		}
		t.calls = []toolCall{c}
	case by.OddIDs:
		for i := range t.calls {
			t.calls[i].ID += ".functions." + t.calls[i].Function.Name + ":" + strings.Repeat("0", 40)
		}
	case by.Empty:
		t.text, t.calls = "", nil
	case by.Length:
		t.text, t.calls, t.limited = strings.ToValidUTF8(t.text[:len(t.text)/2], ""), nil, true
	}
	return t
}

func (t turn) finishReason() string {
	switch {
	case t.limited:
		return "length"
	case len(t.calls) > 0:
		return "tool_calls"
	}
	return "stop"
}

// send sends the answer as one JSON document.
func (a answer) send(w http.ResponseWriter) {
	body := encoded(a.document())
	if a.error != nil {
		body = encoded(a.error.body())
	}
	w.Header().Set("Content-Type", "application/json")
	if a.cut {
		_, _ = w.Write(body[:len(body)/2])
		panic(http.ErrAbortHandler) // breaks the connection, so that the client sees it
	}
	_, _ = w.Write(body) // a client that is gone needs no answer
}

// sendEvent sends an event of a stream.
func sendEvent(w http.ResponseWriter, data any) {
	fmt.Fprintf(w, "data: %s\n\n", encoded(data))
	_ = http.NewResponseController(w).Flush() // where it cannot, it comes at the end
}

// document returns the answer as one JSON document.
func (a answer) document() any {
	message := map[string]any{"role": "assistant", "content": a.turn.text}
	if len(a.turn.calls) > 0 {
		message["tool_calls"] = a.turn.calls
	}
	doc := a.envelope("chat.completion")
	doc["usage"] = a.usage
	doc["choices"] = []any{map[string]any{"index": 0, "message": message, "finish_reason": a.turn.finishReason()}}
	return doc
}

// stream sends the answer in chunks like OpenAI's.
func (a answer) stream(r request, w http.ResponseWriter) {
	base := a.envelope("chat.completion.chunk")
	send := func(choices []any, usage any) {
		base["choices"] = choices
		if r.StreamOptions.IncludeUsage {
			base["usage"] = usage
		}
		sendEvent(w, base)
	}
	deltas := a.turn.deltas()
	if a.cut || a.error != nil { // it breaks off
		deltas = deltas[:(len(deltas)+1)/2]
	}
	for _, d := range deltas {
		send([]any{map[string]any{"index": 0, "delta": d, "finish_reason": nil}}, nil)
	}
	switch {
	case a.error != nil:
		sendEvent(w, a.error.body())
		return
	case a.cut:
		return
	}
	send([]any{map[string]any{"index": 0, "delta": struct{}{}, "finish_reason": a.turn.finishReason()}}, nil)
	if r.StreamOptions.IncludeUsage {
		send([]any{}, a.usage)
	}
	fmt.Fprint(w, "data: [DONE]\n\n")
}

// deltas returns the chunks of the turn in a stream.
func (t turn) deltas() []map[string]any {
	ds := []map[string]any{{"role": "assistant", "content": ""}}
	for _, p := range pieces(t.text) {
		ds = append(ds, map[string]any{"content": p})
	}
	for i, c := range t.calls {
		ds = append(ds, map[string]any{"tool_calls": []any{map[string]any{
			"index": i, "id": c.ID, "type": c.Type, "function": function{Name: c.Function.Name},
		}}})
		for _, p := range pieces(c.Function.Arguments) {
			ds = append(ds, map[string]any{"tool_calls": []any{map[string]any{
				"index": i, "function": map[string]string{"arguments": p},
			}}})
		}
	}
	return ds
}

// pieces cuts text between characters: into at least two pieces, so that a reader must join them, and at most about
// fifty, since each costs a write.
func pieces(text string) (ps []string) {
	chars := []rune(text)
	size := max(len(chars)/50, min(len(chars)/2, 12), 1)
	for len(chars) > 0 {
		n := min(size, len(chars))
		ps, chars = append(ps, string(chars[:n])), chars[n:]
	}
	return ps
}

func (a answer) envelope(object string) map[string]any {
	return map[string]any{
		"id": "chatcmpl-" + strings.ToLower(rand.Text()), "object": object,
		"created": time.Now().Unix(), "model": a.model,
	}
}

// encoded returns v as JSON without the escapes that only HTML needs.
func encoded(v any) []byte {
	data, _ := codec.Plain(v) // strings, numbers and maps of them always encode
	return data
}
