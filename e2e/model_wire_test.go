package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// stream is an answer on its way, as server-sent events.
type stream struct {
	w  http.ResponseWriter
	id string
}

func openStream(w http.ResponseWriter, r *request) *stream {
	w.Header().Set("Content-Type", "text/event-stream")
	s := &stream{w, fmt.Sprintf("chatcmpl-%d", r.serial)}
	s.choice(map[string]any{"role": "assistant", "content": ""}, "")
	return s
}

// event sends one event, the name left out if it is "".
func (s *stream) event(name string, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // a broken test
	}
	if name != "" {
		name = "event: " + name + "\n"
	}
	s.raw(name + "data: " + string(data) + "\n\n")
}

func (s *stream) raw(text string) {
	_, _ = io.WriteString(s.w, text) // a caller that has left needs no answer
	_ = http.NewResponseController(s.w).Flush()
}

func (s *stream) choice(delta map[string]any, finish string) {
	c := map[string]any{"index": 0, "delta": delta, "finish_reason": nil}
	if finish != "" {
		c["finish_reason"] = finish
	}
	s.event("", map[string]any{"id": s.id, "object": "chat.completion.chunk", "model": "proof", "choices": []any{c}})
}

// text sends a text in two pieces, so that it must be put together.
func (s *stream) text(text string) {
	half := len(text) / 2
	for _, piece := range []string{text[:half], text[half:]} {
		if piece != "" {
			s.choice(map[string]any{"content": piece}, "")
		}
	}
}

// call sends a call, its arguments in two pieces.
func (s *stream) call(index, serial int, c call) {
	half := len(c.args) / 2
	piece := func(fields map[string]any) {
		fields["index"] = index
		s.choice(map[string]any{"tool_calls": []any{fields}}, "")
	}
	piece(map[string]any{"id": fmt.Sprintf("call_%d_%d", serial, index), "type": "function", "function": map[string]string{"name": c.name, "arguments": c.args[:half]}})
	piece(map[string]any{"function": map[string]string{"arguments": c.args[half:]}})
}

func (s *stream) done() { s.raw("data: [DONE]\n\n") }

// apiError is an error object as OpenAI gives it.
func apiError(code any, kind, text string) map[string]any {
	return map[string]any{"error": map[string]any{"message": text, "type": kind, "param": nil, "code": code}}
}

// refuse answers with a status and an error object.
func refuse(status int, code, kind, text string) answer {
	return func(w http.ResponseWriter, _ *request) {
		var c any
		if code != "" {
			c = code
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(apiError(c, kind, text))
	}
}

// jsonBody answers 200 with an error object and no stream.
func jsonBody(code any, kind, text string) answer {
	return func(w http.ResponseWriter, _ *request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(apiError(code, kind, text))
	}
}

// html answers 200 with a page for people, as a portal or a wrong address does.
func html(text string) answer {
	return func(w http.ResponseWriter, _ *request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, "<!doctype html>\n<html><head><title>%s</title></head><body><p>Please sign in.</p></body></html>\n", text)
	}
}

// inStream answers 200 and begins a stream whose only event is an error, its object the
// first key.
func inStream(code any, kind, text string) answer {
	return func(w http.ResponseWriter, _ *request) {
		w.Header().Set("Content-Type", "text/event-stream")
		(&stream{w: w}).event("", apiError(code, kind, text))
	}
}

// errorEvent begins an answer and then sends an event of the name error.
func errorEvent(kind, text string) answer {
	return func(w http.ResponseWriter, r *request) {
		s := openStream(w, r)
		s.text("I begin to say something")
		s.event("error", map[string]any{"type": "error", "error": map[string]string{"type": kind, "message": text}})
	}
}

// lateError begins an answer and then sends a chunk that has an error among its keys.
func lateError(code any, text string) answer {
	return func(w http.ResponseWriter, r *request) {
		s := openStream(w, r)
		s.text("I begin to say something")
		body, _ := json.Marshal(map[string]any{"message": text, "code": code})
		s.raw(fmt.Sprintf("data:  {\"id\": %q, \"choices\": [], \"error\": %s}\n\n", s.id, body))
	}
}

// cut breaks the connection in the middle of a call's arguments.
func cut(w http.ResponseWriter, r *request) {
	s := openStream(w, r)
	s.choice(map[string]any{"tool_calls": []any{map[string]any{"index": 0, "id": "call_cut", "type": "function",
		"function": map[string]string{"name": "bash", "arguments": `{"command": "echo never `}}}}, "")
	panic(http.ErrAbortHandler)
}

// ended ends the stream in order, in the middle of a call's arguments.
func ended(w http.ResponseWriter, r *request) {
	s := openStream(w, r)
	s.choice(map[string]any{"tool_calls": []any{map[string]any{"index": 0, "id": "call_cut", "type": "function",
		"function": map[string]string{"name": "bash", "arguments": `{"command": "echo never `}}}}, "")
}

// dropped closes the connection before it says anything.
func dropped(http.ResponseWriter, *request) { panic(http.ErrAbortHandler) }

// silent never says anything.
func silent(_ http.ResponseWriter, r *request) { <-r.gone }

// stalled begins to speak and then says nothing more.
func stalled(w http.ResponseWriter, r *request) {
	openStream(w, r).text("I begin to say something")
	<-r.gone
}

// kept sends nothing but comments that keep the connection open.
func kept(w http.ResponseWriter, r *request) {
	s := &stream{w: w}
	w.Header().Set("Content-Type", "text/event-stream")
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-r.gone:
			return
		case <-tick.C:
			s.raw(": keep-alive\n\n")
		}
	}
}

// endless says something now and then, and never comes to an end.
func endless(w http.ResponseWriter, r *request) {
	s := openStream(w, r)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-r.gone:
			return
		case <-tick.C:
			s.choice(map[string]any{"content": "and "}, "")
		}
	}
}
