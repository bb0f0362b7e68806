package model

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// work is the n-th answer of a model at work: a thought first, then text and calls, now and then
// several calls, or text behind one.
func work(n int) []map[string]any {
	call := func(i int) map[string]any {
		return map[string]any{"type": "tool_use", "id": fmt.Sprintf("toolu_%d_%d", n, i), "name": "bash", "input": map[string]any{"command": "<ls>"}}
	}
	blocks := []map[string]any{{"type": "thinking", "thinking": fmt.Sprintf("thought <%d>", n)}, {"type": "text", "text": "I look at it."}, call(0)}
	switch n % 10 {
	case 3:
		for i := range 11 {
			blocks = append(blocks, call(i+1))
		}
	case 5:
		blocks = []map[string]any{blocks[0], call(0), {"type": "text", "text": "And more."}}
	case 7:
		blocks = []map[string]any{blocks[0]}
	}
	return blocks
}

// worker holds a conversation as an agent does.
type worker struct {
	t  *testing.T
	ms []*Message
}

func newWorker(t *testing.T) *worker {
	return &worker{t, []*Message{{Role: "system", Content: strings.Repeat("You are coder-1. ", 300)}, {Role: "user", Content: "do it"}}}
}

// turn asks for one turn and appends it, its results and now and then mail.
func (w *worker) turn(c *Client) Reply {
	w.t.Helper()
	reply, err := c.Complete(w.t.Context(), Request{Messages: w.ms, Tools: asked.Tools}, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	m := reply.Message
	w.ms = append(w.ms, &m)
	for i, call := range m.ToolCalls {
		if i == 1 { // mail comes between results
			w.ms = append(w.ms, &Message{Role: "user", Content: "mail"})
		}
		w.ms = append(w.ms, &Message{Role: "tool", ToolCallID: call.ID, Content: strings.Repeat("result ", 200)})
	}
	return reply
}

func native(t *testing.T, url string) *Client {
	return client(t, Options{BaseURL: url, Profile: "anthropic", Model: "claude-opus-5-5", APIKey: "k", Attempts: 1})
}

// In a goal of 60 turns nothing is refused, thoughts go back as they came, and nine tenths of the
// input are read from the cache. A wait of more than five minutes costs one rewrite.
func TestMessagesOfAGoal(t *testing.T) {
	a, url := newAnthropic(t, work)
	c, w := native(t, url), newWorker(t)
	var sum Usage
	for n := range 60 {
		if n == 40 {
			a.now = a.now.Add(6 * time.Minute)
		}
		a.now = a.now.Add(30 * time.Second)
		sum = sum.Add(w.turn(c).Usage)
	}
	if len(a.refused) > 0 || a.asked != 60 {
		t.Fatalf("%d requests, refused %q", a.asked, a.refused)
	}
	if all := a.read + a.written + a.plain; a.read*100 < all*90 {
		t.Errorf("%d of %d tokens read from the cache, %d written, %d plain", a.read, all, a.written, a.plain)
	}
	if a.rewrites != 2 { // the first, and the one after the wait
		t.Errorf("%d requests found nothing in the cache, want 2", a.rewrites)
	}
	if a.thoughts != 59 || a.marks != 3 { // the tools are too small to be cached alone
		t.Errorf("%d thoughts went back, %d marks", a.thoughts, a.marks)
	}
	if want := (Usage{PromptTokens: a.read + a.written + a.plain, CachedTokens: a.read, WrittenTokens: a.written, CompletionTokens: 60 * 31, ReasoningTokens: 60 * 9}); sum != want {
		t.Errorf("usage %+v, want %+v", sum, want)
	}
}

// Where a marker or a summary has changed a conversation, the thoughts behind it stay away, and
// new ones go back.
func TestMessagesBehindAMarker(t *testing.T) {
	a, url := newAnthropic(t, work)
	c, w := native(t, url), newWorker(t)
	for range 12 {
		w.turn(c)
	}
	changed := *w.ms[3]
	changed.Content = "[left out]"
	w.ms[3] = &changed
	w.turn(c)
	if a.thoughts != 1 { // of the turn before what was changed
		t.Errorf("%d thoughts went back behind a marker", a.thoughts)
	}
	w.turn(c)
	if a.thoughts != 2 || len(a.refused) > 0 {
		t.Errorf("%d thoughts, refused %q", a.thoughts, a.refused)
	}
	w.ms = append(w.ms[:1:1], append([]*Message{{Role: "assistant", Content: "a summary"}}, w.ms[len(w.ms)-1:]...)...)
	w.ms[2] = &Message{Role: "assistant", Content: " "}
	w.turn(c)
	w.turn(c)
	if a.thoughts != 1 || len(a.refused) > 0 {
		t.Errorf("%d thoughts, refused %q", a.thoughts, a.refused)
	}
}

// A model that thinks by a budget gets the thought of a tool loop whatever stands before it. Where
// the loop has none, or the settings think no more, it is refused once and the task continues.
func TestMessagesWithABudget(t *testing.T) {
	a, url := newAnthropic(t, work)
	opt := Options{BaseURL: url, Profile: "anthropic", Model: "claude-haiku-4-5", APIKey: "k", Attempts: 1}
	still := client(t, opt)
	opt.Extra = map[string]any{"thinking": map[string]any{"type": "enabled", "budget_tokens": 4000}}
	c, w := client(t, opt), newWorker(t)
	for range 3 {
		w.turn(c)
	}
	w.turn(still)
	if len(a.refused) != 1 || !strings.Contains(a.refused[0], "cannot contain `thinking`") {
		t.Fatalf("without a budget: refused %q", a.refused)
	}
	w.ms[1] = &Message{Role: "user", Content: "[left out]"}
	w.turn(c)
	if _, err := c.Complete(t.Context(), Request{Messages: w.ms[:2], MaxTokens: 2000}, nil); err != nil {
		t.Error(err)
	}
	before := len(w.ms)
	w.turn(c)
	if len(a.refused) != 1 || a.thoughts != 5 {
		t.Fatalf("behind a change: %d thoughts, refused %q", a.thoughts, a.refused)
	}
	w.ms[before].Origin = "elsewhere m"
	w.turn(c)
	w.turn(c)
	if len(a.refused) != 2 || !strings.Contains(a.refused[1], "Expected `thinking`") {
		t.Errorf("behind another model's turn: refused %q", a.refused)
	}
}

// A service that refuses its own thoughts gets none, and the task continues.
func TestMessagesWithoutThoughts(t *testing.T) {
	a, url := newAnthropic(t, work)
	a.moody = true
	c, w := native(t, url), newWorker(t)
	for range 5 {
		w.turn(c)
	}
	if len(a.refused) != 1 || a.asked != 6 || a.thoughts != 0 {
		t.Errorf("%d requests, refused %q", a.asked, a.refused)
	}
}

// A task that changes to chat completions and back is refused nowhere. No thought and no
// signature goes elsewhere, and those of the first model go back to it.
func TestMessagesFallBack(t *testing.T) {
	a, url := newAnthropic(t, work)
	var elsewhere atomic.Int64
	chat, _ := endpoint(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if s := string(body); strings.Contains(s, "thought") || strings.Contains(s, "signature") || strings.Contains(s, answersTo) {
			t.Errorf("sent elsewhere: %s", s)
		}
		id := fmt.Sprintf("functions.bash:%d", elsewhere.Add(1))
		events(calls(`{"index":0,"id":"`+id+`","function":{"name":"bash","arguments":"[1]"}}`), finish("tool_calls"), count)(w, r)
	})
	first, w := native(t, url), newWorker(t)
	other := client(t, Options{BaseURL: chat, Model: "m"})
	for range 6 {
		w.turn(first)
	}
	for range 3 {
		w.turn(other)
	}
	for range 6 {
		w.turn(first)
	}
	if len(a.refused) > 0 || a.thoughts != 11 || elsewhere.Load() != 3 {
		t.Errorf("%d thoughts went back, refused %q", a.thoughts, a.refused)
	}
}

// Every reason to stop has its word.
func TestMessagesStops(t *testing.T) {
	for stop, want := range map[string]string{
		"end_turn": "stop", "max_tokens": "length", "stop_sequence": "stop", "tool_use": "tool_calls", "pause_turn": "pause_turn", "refusal": "content_filter",
		"model_context_window_exceeded": "", "": "tool_calls",
	} {
		a, url := newAnthropic(t, work)
		a.stop = stop
		reply, err := native(t, url).Complete(t.Context(), asked, nil)
		var refusal *Refusal
		if want == "" {
			if !errors.As(err, &refusal) || refusal.Reason != ContextLength {
				t.Errorf("%s: %v", stop, err)
			}
			continue
		}
		if cut := want == "length" || want == "content_filter"; !cut {
			want = "tool_calls" // there is a call
		}
		if err != nil || reply.FinishReason != want || (len(reply.Message.ToolCalls) == 0) != (want != "tool_calls") {
			t.Errorf("%s: %+v %v", stop, reply, err)
		}
	}
}

// A turn is whole or none, wherever its stream is cut.
func TestMessagesCut(t *testing.T) {
	a, _ := newAnthropic(t, work)
	full := httptest.NewRecorder()
	a.play(full, []byte(`{"model":"m"}`))
	parts := strings.SplitAfter(full.Body.String(), "\n\n")
	for n := range parts {
		url, _ := endpoint(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, strings.Join(parts[:n], ""))
		})
		reply, err := native(t, url).Complete(t.Context(), asked, nil)
		if whole := n >= len(parts)-2; whole != (err == nil) || whole && reply.Message.Thinking() == "" {
			t.Errorf("after %d of %d events: %v", n, len(parts), err)
		}
	}
}

// What the service has counted of an answer that breaks off is what that has cost; of the output it
// counts one token at first, so that is estimated by what came.
func TestMessagesCutCounts(t *testing.T) {
	a, _ := newAnthropic(t, work)
	full := httptest.NewRecorder()
	a.play(full, []byte(`{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"`+strings.Repeat("word ", 800)+`"}]}]}`))
	cut, _, _ := strings.Cut(full.Body.String(), "event: message_delta")
	url, _ := endpoint(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, cut)
	})
	_, err := native(t, url).Complete(t.Context(), asked, nil)
	var refusal *Refusal
	if !errors.As(err, &refusal) || refusal.Reason != Incomplete {
		t.Fatal(err)
	}
	if u := refusal.Used; u.WastedPrompt != a.plain || u.WastedCompletion < 10 || !u.Estimated {
		t.Errorf("used %+v, the service has counted %d tokens", u, a.plain)
	}
}

// A result says that its call failed, and shows its images.
func TestMessagesResults(t *testing.T) {
	d := dialectOf(t, "anthropic", "claude-opus-5-5", Options{})
	req := nasty("")
	for i := range req.Messages {
		if m := *req.Messages[i]; m.Role == "tool" && m.ToolCallID == "call_1" {
			m.IsError, m.Parts = true, req.Messages[2].Parts
			req.Messages[i] = &m
		}
	}
	c, err := d.encode(req)
	want := `{"type":"tool_result","tool_use_id":"call_1","content":[{"type":"text","text":"a b c\na picture:"},` +
		`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"cG5n"}}],"is_error":true}`
	if err != nil || !strings.Contains(string(c.body), want) || strings.Count(string(c.body), "is_error") != 1 {
		t.Errorf("%v: %s is missing in %s", err, want, c.body)
	}
	if err := (&anthropic{}).check(messagesTo(), c.body); err != nil {
		t.Error(err)
	}
}

// A stream that stays open behind its last event is waited for no longer.
func TestMessagesEnd(t *testing.T) {
	a, _ := newAnthropic(t, work)
	full := httptest.NewRecorder()
	a.play(full, []byte(`{"model":"m"}`))
	synctest.Test(t, func(t *testing.T) {
		c := bubbleClient(t, Options{Profile: "anthropic"}, func(r *http.Request) (*http.Response, error) {
			in, resp := stream(r)
			go io.WriteString(in, full.Body.String())
			return resp, nil
		})
		began := time.Now()
		if _, err := c.Complete(t.Context(), asked, nil); err != nil || time.Since(began) != lateEnd {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

// Settings stand in the words of Messages, and an image is one.
func TestMessagesSettings(t *testing.T) {
	d := dialectOf(t, "anthropic", "claude-opus-5-5", Options{Extra: map[string]any{"reasoning_effort": "low"}})
	c, err := d.encode(nasty(d.origin("claude-opus-5-5")))
	for _, s := range []string{`"output_config":{"effort":"low"}`, `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"cG5n"}}`, `"max_tokens":32000`} {
		if err != nil || !strings.Contains(string(c.body), s) {
			t.Errorf("%v: %s is missing in %s", err, s, c.body)
		}
	}
	both := dialectOf(t, "anthropic", "claude-opus-5-5", Options{Extra: map[string]any{"reasoning_effort": "low", "output_config": map[string]any{"format": 1}}})
	if c, err := both.encode(asked); err != nil || !strings.Contains(string(c.body), `"output_config":{"effort":"low","format":1}`) {
		t.Errorf("%v: %s", err, c.body)
	}
	if c, err := d.encode(asked); err != nil || strings.Contains(string(c.body), "cache_control") {
		t.Errorf("marks in a prompt that is too small to be cached: %s", c.body)
	}
	if err := (&anthropic{}).check(messagesTo(), c.body); err != nil {
		t.Error(err)
	}
}

func messagesTo() *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/v1/messages", nil)
	r.Header.Set("x-api-key", "k")
	r.Header.Set("anthropic-version", "2023-06-01")
	return r
}
