package rehearsal

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"agentteam/pkg/team"
)

const system = `{"role":"system","content":"More.\n\nYou are coder-1, role coder, in team red.\n"}`

// post sends a request with these messages after the system message, and other
// keys of the body.
func post(t *testing.T, h http.Handler, keys, messages string) *httptest.ResponseRecorder {
	t.Helper()
	return postRaw(t, h, `{"model":"m",`+keys+`"messages":[`+system+`,`+messages+`]}`)
}

func postRaw(t *testing.T, h http.Handler, body string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "POST", "/v1/chat/completions", strings.NewReader(body)))
	return w
}

func handlerOf(t *testing.T, src string) http.Handler {
	t.Helper()
	s, err := Parse("test", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	return NewHandler(s, nil)
}

const hello = `{"role":"user","content":"hello"}`

// Each of these is refused by an endpoint in use.
func TestStrictness(t *testing.T) {
	h := handlerOf(t, "agents: [{rules: [{name: a, say: fine}]}]")
	call := func(id string) string {
		return `{"role":"assistant","content":"","tool_calls":[{"id":"` + id + `","type":"function","function":{"name":"bash","arguments":"{}"}}]}`
	}
	answer := func(id string) string { return `{"role":"tool","tool_call_id":"` + id + `","content":"ok"}` }
	tools := func(ts string) string {
		return `{"model":"m","tools":[` + ts + `],"messages":[` + system + `,` + hello + `]}`
	}
	bash := `{"type":"function","function":{"name":"bash","parameters":{"type":"object"}}}`

	for name, tt := range map[string]struct{ body, want string }{
		"fine":                      {tools(bash), ""},
		"call and answer":           {`m:` + hello + `,` + call("c1") + `,` + answer("c1"), ""},
		"answers in another order":  {`m:` + hello + `,` + strings.Replace(call("c1"), "]}", `,{"id":"c2","type":"function","function":{"name":"bash","arguments":"{}"}}]}`, 1) + `,` + answer("c2") + `,` + answer("c1"), ""},
		"not JSON":                  {`{`, "not a chat completion request"},
		"no model":                  {`{"messages":[` + system + `,` + hello + `]}`, "model is missing"},
		"no messages":               {`{"model":"m"}`, "needs a system message"},
		"system only":               {`{"model":"m","messages":[` + system + `]}`, "needs a system message and at least one more"},
		"no system message":         {`{"model":"m","messages":[` + hello + `,` + hello + `]}`, "messages[0]: it is a user message; there must be exactly one system message, the first"},
		"second system message":     {`m:` + hello + `,` + system, "messages[2]: it is a system message; there must be exactly one"},
		"unknown role":              {`m:{"role":"developer","content":"x"}`, `messages[1]: unknown role "developer"`},
		"no content key":            {`m:` + hello + `,` + strings.Replace(call("c1"), `"content":"",`, "", 1) + `,` + answer("c1"), "messages[2]: the assistant message has no content key"},
		"content null":              {`m:{"role":"user","content":null}`, "messages[1]: content must be a string"},
		"empty tool result":         {`m:` + hello + `,` + call("c1") + `,{"role":"tool","tool_call_id":"c1","content":""}`, "messages[3]: the content of the tool message is empty"},
		"tool calls of a user":      {`m:` + strings.Replace(call("c1"), "assistant", "user", 1), "messages[1]: the content"},
		"call without id":           {`m:` + hello + `,` + call("") + `,` + hello, "messages[2]: tool_calls[0] needs an id"},
		"arguments not JSON":        {`m:` + hello + `,` + strings.Replace(call("c1"), `"{}"`, `"{"`, 1) + `,` + answer("c1"), "messages[2]: tool_calls[0]: the arguments are no JSON object"},
		"call never answered":       {`m:` + hello + `,` + call("c1"), "1 tool calls at the end have no tool message"},
		"user before the answer":    {`m:` + hello + `,` + call("c1") + `,` + hello + `,` + answer("c1"), "messages[3]: 1 tool calls before it have no tool message"},
		"answer to nothing":         {`m:` + hello + `,` + answer("c1"), `messages[2]: no open tool call has the id "c1"`},
		"answered twice":            {`m:` + hello + `,` + call("c1") + `,` + answer("c1") + `,` + answer("c1"), `messages[4]: no open tool call has the id "c1"`},
		"call id twice":             {`m:` + hello + `,` + call("c1") + `,` + answer("c1") + `,` + call("c1") + `,` + answer("c1"), "messages[4]: the tool call id c1 comes twice"},
		"nothing to reply to":       {`m:` + hello + `,{"role":"assistant","content":"x"}`, "the last message is the assistant's own"},
		"two tools of a name":       {tools(bash + `,` + bash), "tools[1]: a second tool with the name bash"},
		"tool without parameters":   {tools(`{"type":"function","function":{"name":"bash","parameters":null}}`), "tools[0]: parameters of bash must be the schema of an object"},
		"bad tool name":             {tools(`{"type":"function","function":{"name":"team.bash","parameters":{"type":"object"}}}`), `tools[0]: bad name "team.bash"`},
		"tool of another type":      {tools(`{"type":"web_search"}`), `tools[0]: type is "web_search"`},
		"nobody is introduced":      {`{"model":"m","messages":[{"role":"system","content":"You are helpful."},` + hello + `]}`, `must end with the line "You are NAME`},
		"mistyped":                  {`{"model":"m","messages":"hello"}`, "not a chat completion request"},
		"empty user message":        {`m:{"role":"user","content":""}`, "messages[1]: the content of the user message is empty"},
		"empty turn":                {`m:` + hello + `,{"role":"assistant","content":""},` + hello, "messages[2]: the content of the assistant message is empty"},
		"user after assistant text": {`m:` + hello + `,{"role":"assistant","content":"x"},` + hello, ""},
		"made-up tool name":         {`m:` + hello + `,` + strings.Replace(call("c1"), `"bash"`, `"functions.bash<|channel|>"`, 1) + `,` + answer("c1"), `messages[2]: tool_calls[0]: bad name "functions.bash<|channel|>"`},
		"content of parts":          {`m:{"role":"user","content":[{"type":"text","text":"hel"},{"type":"image_url","image_url":{"url":"data:"}}]}`, ""},
		"empty list of parts":       {`m:{"role":"user","content":[]}`, "messages[1]: the content of the user message is empty"},
		"part of another type":      {`m:{"role":"user","content":[{"type":"audio"}]}`, `messages[1]: a part of content has the type "audio"`},
	} {
		t.Run(name, func(t *testing.T) {
			var w *httptest.ResponseRecorder
			if messages, ok := strings.CutPrefix(tt.body, "m:"); ok {
				w = post(t, h, "", messages)
			} else {
				w = postRaw(t, h, tt.body)
			}
			var doc struct {
				Error struct{ Message, Type string }
			}
			if err := json.Unmarshal(w.Body.Bytes(), &doc); err != nil {
				t.Fatal(err)
			}
			want := http.StatusBadRequest
			if tt.want == "" {
				want = http.StatusOK
			}
			if w.Code != want || !strings.Contains(doc.Error.Message, tt.want) {
				t.Errorf("answer %d %+v, want %d %q", w.Code, doc.Error, want, tt.want)
			}
		})
	}
}

func TestOtherAddresses(t *testing.T) {
	h := handlerOf(t, "model: mine\nagents: [{rules: [{name: a, say: fine}]}]")
	for _, tt := range []struct {
		method, path string
		status       int
		want         string
	}{
		{"GET", "/v1/models", 200, `"id":"mine"`},
		{"GET", "/v1/chat/completions", 404, `"message":"there is no GET /v1/chat/completions"`},
		{"POST", "/chat/completions", 404, `"type":"invalid_request_error"`},
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), tt.method, tt.path, nil))
		if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.want) {
			t.Errorf("%s %s = %d %s, want %d %s", tt.method, tt.path, w.Code, w.Body, tt.status, tt.want)
		}
	}
}

func TestBodyLimit(t *testing.T) {
	h := handlerOf(t, "agents: [{rules: [{name: a, say: fine}]}]")
	if w := postRaw(t, h, strings.Repeat(" ", maxBodyBytes+1)); w.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("status %d, want 413", w.Code)
	}
}

type chunk struct {
	Choices []struct {
		Delta struct {
			Role, Content string
			ToolCalls     []struct {
				Index    int
				ID, Type string
				Function function
			} `json:"tool_calls"`
		}
		FinishReason *string `json:"finish_reason"`
	}
	Usage *usage
}

// chunks reads a stream; done reports whether [DONE] ended it.
func chunks(t *testing.T, body io.Reader) (cs []chunk, done bool) {
	t.Helper()
	lines := bufio.NewScanner(body)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		switch {
		case data == "[DONE]":
			return cs, true
		case ok:
			var c chunk
			if err := json.Unmarshal([]byte(data), &c); err != nil {
				t.Fatal(err)
			}
			cs = append(cs, c)
		}
	}
	return cs, false
}

const speaker = `
agents:
- rules:
  - name: work
    steps:
    - say: "I look, 我看看 🔍."
      calls: [{tool: a, args: {x: "one < two"}}, {tool: b}]
      fault: {FAULT}
  - {name: rest, say: rest}
`

// join puts the stream of speaker's turn together.
func join(cs []chunk) (text string, args []string, names string) {
	for _, c := range cs {
		for _, choice := range c.Choices {
			text += choice.Delta.Content
			for _, call := range choice.Delta.ToolCalls {
				names += call.Function.Name
				for len(args) <= call.Index {
					args = append(args, "")
				}
				args[call.Index] += call.Function.Arguments
			}
		}
	}
	return text, args, names
}

func TestStreamedAndWhole(t *testing.T) {
	h := handlerOf(t, strings.Replace(speaker, "{FAULT}", "{delay: 1ns}", 1))
	cs, done := chunks(t, post(t, h, `"stream":true,"stream_options":{"include_usage":true},`, hello).Body)
	if !done || len(cs) < 8 {
		t.Fatalf("%d chunks, done %v", len(cs), done)
	}
	text, args, names := join(cs)
	if text != "I look, 我看看 🔍." || names != "ab" || !slices.Equal(args, []string{`{"x":"one < two"}`, "{}"}) {
		t.Errorf("stream gives %q, %s, %q", text, names, args)
	}
	if u := cs[len(cs)-1].Usage; u == nil || u.Prompt == 0 || u.Completion == 0 || u.Total != u.Prompt+u.Completion || len(cs[len(cs)-1].Choices) != 0 {
		t.Errorf("the last chunk's usage is %+v", u)
	}
	if f := cs[len(cs)-2].Choices[0].FinishReason; f == nil || *f != "tool_calls" {
		t.Errorf("finish reason %v, want tool_calls", f)
	}
	for _, c := range cs[:len(cs)-2] {
		if c.Usage != nil || c.Choices[0].FinishReason != nil {
			t.Errorf("usage or finish reason in the middle: %+v", c)
		}
	}
	if cs, done = chunks(t, post(t, h, `"stream":true,`, hello).Body); !done || cs[len(cs)-1].Usage != nil {
		t.Error("usage though it was not asked for, or no end")
	}

	var doc struct {
		Choices []struct {
			Message struct {
				Content   string
				ToolCalls []toolCall `json:"tool_calls"`
			}
			FinishReason string `json:"finish_reason"`
		}
		Usage usage
	}
	if err := json.Unmarshal(post(t, h, "", hello).Body.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	m := doc.Choices[0]
	if m.Message.Content != text || len(m.Message.ToolCalls) != 2 || m.Message.ToolCalls[0].Function.Arguments != args[0] || m.FinishReason != "tool_calls" || doc.Usage.Total == 0 {
		t.Errorf("not streamed: %+v", doc)
	}
}

func TestFaults(t *testing.T) {
	stream := `"stream":true,`
	t.Run("status", func(t *testing.T) {
		h := handlerOf(t, strings.Replace(speaker, "{FAULT}", "{status: 429, retry_after: 1500ms, times: 2}", 1))
		for range 2 {
			w := post(t, h, stream, hello)
			if w.Code != 429 || w.Header().Get("Retry-After") != "2" || !strings.Contains(w.Body.String(), "rate_limit_error") {
				t.Fatalf("answer %d %v %s", w.Code, w.Header(), w.Body)
			}
		}
		if w := post(t, h, stream, hello); w.Code != 200 {
			t.Errorf("third answer %d, want 200", w.Code)
		}
		// Another agent meets the fault anew.
		other := strings.Replace(system, "coder-1", "coder-2", 1)
		if w := postRaw(t, h, `{"model":"m","messages":[`+other+`,`+hello+`]}`); w.Code != 429 {
			t.Errorf("the other agent's answer %d, want 429", w.Code)
		}
	})
	t.Run("cut", func(t *testing.T) {
		h := handlerOf(t, strings.Replace(speaker, "{FAULT}", "{cut: true, times: 2}", 1))
		cs, done := chunks(t, post(t, h, stream, hello).Body)
		text, _, _ := join(cs)
		if done || text == "" || slices.ContainsFunc(cs, func(c chunk) bool { return c.Choices[0].FinishReason != nil }) {
			t.Errorf("the stream is not cut: %q, done %v", text, done)
		}
		srv := httptest.NewServer(h)
		defer srv.Close()
		resp, err := http.Post(srv.URL+"/v1/chat/completions", "application/json", strings.NewReader(`{"model":"m","messages":[`+system+`,`+hello+`]}`))
		if err == nil {
			defer resp.Body.Close()
			_, err = io.ReadAll(resp.Body)
		}
		if err == nil {
			t.Error("the document came whole")
		}
	})
	for fault, want := range map[string]string{ // text, calls and finish reason
		"empty":     `"" "" [] stop`,
		"length":    `"I look, 我" "" [] length`,
		"no_object": `"I look, 我看看 🔍." "a" [["a"]] tool_calls`,
		"odd_ids":   `"I look, 我看看 🔍." "ab" [{"x":"one < two"} {}] tool_calls`,
	} {
		t.Run(fault, func(t *testing.T) {
			h := handlerOf(t, strings.Replace(speaker, "{FAULT}", "{"+fault+": true}", 1))
			cs, done := chunks(t, post(t, h, stream, hello).Body)
			text, args, names := join(cs)
			got := fmt.Sprintf("%q %q %s %s", text, names, args, *cs[len(cs)-1].Choices[0].FinishReason)
			if !done || got != want {
				t.Errorf("%s, done %v, want %s", got, done, want)
			}
		})
	}
	t.Run("page", func(t *testing.T) {
		h := handlerOf(t, strings.Replace(speaker, "{FAULT}", "{page: true}", 1))
		if w := post(t, h, stream, hello); w.Code != 200 || !strings.Contains(w.Header().Get("Content-Type"), "text/html") || !strings.HasPrefix(w.Body.String(), "<!doctype html>") {
			t.Errorf("answer %d %v %s", w.Code, w.Header(), w.Body)
		}
	})
	t.Run("malformed", func(t *testing.T) {
		h := handlerOf(t, strings.Replace(speaker, "{FAULT}", "{malformed: true}", 1))
		cs, done := chunks(t, post(t, h, stream, hello).Body)
		_, args, names := join(cs)
		if !done || names != "a" || json.Valid([]byte(args[0])) {
			t.Errorf("calls %s %q, done %v", names, args, done)
		}
		// The agent answers the bad call and asks again: now the step is played.
		id := cs[slices.IndexFunc(cs, func(c chunk) bool { return len(c.Choices[0].Delta.ToolCalls) > 0 })].Choices[0].Delta.ToolCalls[0].ID
		cs, _ = chunks(t, post(t, h, stream, hello+`,{"role":"assistant","content":"","tool_calls":[{"id":"`+id+`","type":"function","function":{"name":"a","arguments":"{}"}}]},{"role":"tool","tool_call_id":"`+id+`","content":"invalid_argument"}`).Body)
		if _, args, names = join(cs); names != "ab" || !json.Valid([]byte(args[0])) {
			t.Errorf("afterwards calls %s %q", names, args)
		}
	})
	t.Run("delay", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			h := handlerOf(t, strings.Replace(speaker, "{FAULT}", "{delay: 2s, times: 2}", 1))
			began := time.Now()
			if w := post(t, h, stream, hello); w.Code != 200 || time.Since(began) != 2*time.Second {
				t.Errorf("answer %d after %v, want 200 after 2s", w.Code, time.Since(began))
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, "POST", "/v1/chat/completions", strings.NewReader(`{"model":"m","messages":[`+system+`,`+hello+`]}`)))
			if w.Body.Len() != 0 || time.Since(began) != 3*time.Second {
				t.Errorf("a client that left got %q after %v", w.Body, time.Since(began))
			}
		})
	})
}

func TestScriptErrorIs500(t *testing.T) {
	h := handlerOf(t, `agents: [{rules: [{name: bad, say: '{{result "x" 0}}'}]}]`)
	if w := post(t, h, "", hello); w.Code != 500 || !strings.Contains(w.Body.String(), "rule bad, step 0: ") {
		t.Errorf("answer %d %s", w.Code, w.Body)
	}
}

// What the script has no answer to is told once for each thing that a person asks for.
func TestScriptIsToldOfOnce(t *testing.T) {
	for name, rules := range map[string]string{
		"nothing in the script fits": `[{name: never, newest: nowhere, say: x}]`,
		"the script cannot go on":    `[{name: bad, say: '{{result "x" 0}}'}]`,
	} {
		s, err := Parse("test", []byte("agents: [{rules: "+rules+"}]"))
		if err != nil {
			t.Fatal(err)
		}
		var log strings.Builder
		h := NewHandler(s, slog.New(slog.NewTextHandler(&log, nil)))
		for _, goal := range []string{"paint it", "paint it", "sell it"} {
			post(t, h, "", `{"role":"user","content":"<mail from=\"user\" id=\"1\">\n`+goal+`\n</mail>"}`)
		}
		if strings.Count(log.String(), name) != 2 || !strings.Contains(log.String(), `asked="paint it"`) || !strings.Contains(log.String(), "hint=") {
			t.Errorf("%s: the log is\n%s", name, log.String())
		}
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	s, err := Parse("test", []byte(`agents: [{rules: [{name: a, steps: [{say: x, fault: {delay: 1h}}]}]}]`))
	if err != nil {
		t.Fatal(err)
	}
	srv, err := Listen("127.0.0.1:0", s, nil)
	if err != nil {
		t.Fatal(err)
	}
	inside, plays := make(chan struct{}), srv.handler
	var left atomic.Bool
	srv.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			close(inside)
			defer left.Store(true)
		}
		plays.ServeHTTP(w, r)
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- srv.Run(ctx) }()

	resp, err := http.Get(srv.URL() + "/models")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if _, err := Listen(strings.TrimSuffix(strings.TrimPrefix(srv.URL(), "http://"), "/v1"), s, nil); !errors.Is(err, team.InvalidState) {
		t.Errorf("a second server on the port: %v, want invalid_state", err)
	}
	if _, err := Listen("nowhere", s, nil); !errors.Is(err, team.InvalidArgument) {
		t.Errorf("a bad address: %v, want invalid_argument", err)
	}

	// One request is in its hour of delay.
	broken := make(chan error, 1)
	go func() {
		resp, err := http.Post(srv.URL()+"/chat/completions", "application/json", strings.NewReader(`{"model":"m","messages":[`+system+`,`+hello+`]}`))
		if err == nil {
			_, err = io.ReadAll(resp.Body)
			resp.Body.Close()
		}
		broken <- err
	}()
	<-inside
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("Run = %v", err)
	}
	if !left.Load() {
		t.Error("Run returned before its handlers did")
	}
	<-broken // its delay ended with the server
	if _, err := http.Get(srv.URL() + "/models"); err == nil {
		t.Error("it still answers")
	}
}
