package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// talkKind says how a conversation goes. Each turn but the last makes calls of read_file.
type talkKind struct {
	calls  int
	turns  int
	tokens int                  // of the text before the calls
	subs   bool                 // its calls are of subagent, which answers with a text
	at     map[int]func() error // called before the n-th request is answered
}

// talk is one conversation, as the endpoint sees it.
type talk struct {
	talkKind
	done chan struct{} // closed once the last turn was answered

	// Until done is closed these are the handler's, one request at a time.
	n           int // requests so far
	begun, sent time.Time
	gaps        []float64 // ms from the end of answer i to request i+1
	spans       []float64 // ms from the begin of answer i to request i+1
	starts      []float64 // ms from the end of an answer to the first request of the subagent that it calls
	err         error
}

func newTalk(k talkKind) *talk { return &talk{talkKind: k, done: make(chan struct{})} }

// messages is how many the n-th request holds: the system message, the task, and those
// of all turns before.
func (t *talk) messages(n int) int { return 2 + n*(1+t.calls) }

// between returns the gaps before requests of so many messages.
func (t *talk) between(from, to int) (ms []float64) {
	for i, gap := range t.gaps {
		if m := t.messages(i + 1); from <= m && m <= to {
			ms = append(ms, gap)
		}
	}
	return ms
}

// rates are the tokens a second of the answers that were read, but for the first, which
// finds everything cold.
func (t *talk) rates() (all []float64) {
	for _, ms := range t.spans[1:] {
		all = append(all, float64(t.tokens)/ms*1000)
	}
	return all
}

// endpoint is a model endpoint that holds one conversation at a time.
type endpoint struct {
	url string
	srv *http.Server

	mu   sync.Mutex
	talk *talk
}

func listen() (*endpoint, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	e := &endpoint{url: "http://" + l.Addr().String() + "/v1"}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", e.complete)
	e.srv = &http.Server{Handler: mux}
	go func() { _ = e.srv.Serve(l) }() // until close
	return e, nil
}

func (e *endpoint) close() { e.srv.Close() }

// hold makes t the present conversation.
func (e *endpoint) hold(t *talk) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.talk = t
}

// finish waits for the last turn of t. stalled is far above what any turn takes.
func (e *endpoint) finish(ctx context.Context, t *talk, ended <-chan struct{}) error {
	const stalled = 3 * time.Minute
	select {
	case <-t.done:
		return t.err
	case <-ended:
		return fmt.Errorf("the process ended in the middle of its conversation")
	case <-time.After(stalled):
		return fmt.Errorf("the conversation has not ended after %v", stalled)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// subagentAsks begins what a subagent asks with.
var subagentAsks = []byte("You are a subagent of")

// leaderAsks ends the system message of a leader, which has nothing to do here.
var leaderAsks = []byte("You are leader, role leader,")

func (e *endpoint) complete(w http.ResponseWriter, r *http.Request) {
	came := time.Now() // its headers are here, the body is not read yet
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the caller has left
	}
	w.Header().Set("Content-Type", "text/event-stream")
	e.mu.Lock()
	defer e.mu.Unlock()
	if t := e.talk; t != nil && bytes.Contains(body[:min(len(body), 4096)], subagentAsks) {
		t.starts = append(t.starts, milliseconds(came.Sub(t.sent)))
		_, _ = w.Write(closing("It is so."))
		return
	}
	if t := e.talk; t != nil && !bytes.Contains(body[:min(len(body), 32<<10)], leaderAsks) {
		t.answer(w, came)
		return
	}
	_, _ = w.Write(closing("I wait."))
}

// answer takes the next turn.
func (t *talk) answer(w http.ResponseWriter, came time.Time) {
	if t.n > t.turns { // after its end some have a last word to say
		_, _ = w.Write(closing("Done."))
		return
	}
	if t.n > 0 {
		t.gaps = append(t.gaps, milliseconds(came.Sub(t.sent)))
		t.spans = append(t.spans, milliseconds(came.Sub(t.begun)))
	}
	if f := t.at[t.n]; f != nil && t.err == nil {
		t.err = f()
	}
	n := t.n
	t.n++
	if n == t.turns {
		_, _ = w.Write(completing())
		flush(w)
		close(t.done)
		return
	}
	text, calls := t.words(), t.callsOf(n)
	t.begun = time.Now()
	_, _ = w.Write(text)
	_, _ = w.Write(calls)
	flush(w)
	t.sent = time.Now()
}

func flush(w http.ResponseWriter) { _ = http.NewResponseController(w).Flush() }

// words is the text of a turn, a token an event.
func (t *talk) words() []byte {
	var b bytes.Buffer
	for i := range t.tokens {
		b.Write(event(map[string]any{"content": strings.Repeat(string(rune('a'+i%26)), 4) + " "}, ""))
	}
	return b.Bytes()
}

// callsOf are the calls of the n-th turn: of the whole conversation no two are the same.
func (t *talk) callsOf(n int) []byte {
	var b bytes.Buffer
	for i := range t.calls {
		if t.subs {
			b.Write(event(toolCall(i, fmt.Sprintf("call_%d_%d", n, i), "subagent", fmt.Sprintf(`{"prompt":"Look at %s."}`, pieceName(n*t.calls+i))), ""))
			continue
		}
		b.Write(event(toolCall(i, fmt.Sprintf("call_%d_%d", n, i), "read_file", fmt.Sprintf(`{"path":%q}`, pieceName(n*t.calls+i))), ""))
	}
	return append(b.Bytes(), end("tool_calls")...)
}

// completing completes the one task there is. A plain loop has no such tool, and ends.
func completing() []byte {
	return append(event(toolCall(0, "call_end", "update_task", `{"task_id":"T-001","status":"completed","result_summary":"read it all"}`), ""), end("tool_calls")...)
}

func closing(text string) []byte {
	return append(event(map[string]any{"content": text}, ""), end("stop")...)
}

func toolCall(index int, id, name, args string) map[string]any {
	return map[string]any{"tool_calls": []any{map[string]any{"index": index, "id": id, "type": "function",
		"function": map[string]string{"name": name, "arguments": args}}}}
}

// end is a finish reason, what it cost, and the end of the stream.
func end(reason string) []byte {
	usage := []byte(`data: {"id":"c","object":"chat.completion.chunk","model":"bench","choices":[],"usage":{"prompt_tokens":1000,"completion_tokens":100,"total_tokens":1100}}` + "\n\ndata: [DONE]\n\n")
	return append(event(map[string]any{}, reason), usage...)
}

func event(delta map[string]any, finish string) []byte {
	choice := map[string]any{"index": 0, "delta": delta, "finish_reason": nil}
	if finish != "" {
		choice["finish_reason"] = finish
	}
	data, err := json.Marshal(map[string]any{"id": "c", "object": "chat.completion.chunk", "model": "bench", "choices": []any{choice}})
	if err != nil {
		panic(err) // strings and numbers always encode
	}
	return append(append([]byte("data: "), data...), "\n\n"...)
}
