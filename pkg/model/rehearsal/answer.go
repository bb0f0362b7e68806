package rehearsal

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// answer is a turn on its way to the asker.
type answer struct {
	turn  turn
	model string
	usage usage
	cut   bool // break off in the middle
	error any  // told in the middle of a stream; nil: none
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

// malformed returns t as a model that loses the thread gives it: its first call
// only, the arguments cut. The call's id does not mark the step as played, so
// that it is played properly once the agent asks again.
func (t turn) malformed() turn {
	c := t.calls[0]
	c.ID = t.newID("malformed", -1) // no step's
	c.Function.Arguments = c.Function.Arguments[:len(c.Function.Arguments)/2]
	t.calls = []toolCall{c}
	return t
}

func (t turn) finishReason() string {
	if len(t.calls) > 0 {
		return "tool_calls"
	}
	return "stop"
}

// whole sends the answer as one JSON document.
func (a answer) whole(w http.ResponseWriter) {
	message := map[string]any{"role": "assistant", "content": a.turn.text}
	if len(a.turn.calls) > 0 {
		message["tool_calls"] = a.turn.calls
	}
	doc := a.envelope("chat.completion")
	doc["usage"] = a.usage
	doc["choices"] = []any{map[string]any{"index": 0, "message": message, "finish_reason": a.turn.finishReason()}}
	body := encoded(doc)
	if a.error != nil {
		body = encoded(a.error)
	}
	w.Header().Set("Content-Type", "application/json")
	if a.cut {
		_, _ = w.Write(body[:len(body)/2])
		panic(http.ErrAbortHandler) // breaks the connection, so that the client sees it
	}
	_, _ = w.Write(body) // a client that is gone needs no answer
}

// stream sends the answer as server-sent events, in pieces like OpenAI's.
func (a answer) stream(w http.ResponseWriter, withUsage bool) {
	w.Header().Set("Content-Type", "text/event-stream")
	base := a.envelope("chat.completion.chunk")
	send := func(choices []any, usage any) {
		base["choices"] = choices
		if withUsage {
			base["usage"] = usage
		}
		fmt.Fprintf(w, "data: %s\n\n", encoded(base))
		_ = http.NewResponseController(w).Flush() // where it cannot, it comes at the end
	}
	deltas := a.turn.deltas()
	if a.cut || a.error != nil {
		deltas = deltas[:(len(deltas)+1)/2]
	}
	for _, d := range deltas {
		send([]any{map[string]any{"index": 0, "delta": d, "finish_reason": nil}}, nil)
	}
	if a.error != nil {
		fmt.Fprintf(w, "data: %s\n\n", encoded(a.error))
	}
	if a.cut || a.error != nil {
		return
	}
	send([]any{map[string]any{"index": 0, "delta": struct{}{}, "finish_reason": a.turn.finishReason()}}, nil)
	if withUsage {
		send([]any{}, a.usage)
	}
	fmt.Fprint(w, "data: [DONE]\n\n")
}

// deltas cuts the turn into the pieces that a stream brings.
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

// pieces cuts text between characters: at least two pieces, so that a reader must
// join them, and at most about fifty, since each costs a write.
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

// encoded is v as JSON without the escapes that are only of use inside HTML.
func encoded(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // strings, numbers and maps of them always encode
	return bytes.TrimSpace(b.Bytes())
}
