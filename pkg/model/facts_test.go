package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"

	"agentteam/pkg/team"
)

// endpoint is a raw HTTP server that gives the answers one after the other, the
// last for ever, and counts the requests.
func endpoint(t *testing.T, answers ...http.HandlerFunc) (baseURL string, requests *atomic.Int64) {
	t.Helper()
	requests = new(atomic.Int64)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := int(requests.Add(1))
		answers[min(n, len(answers))-1](w, r)
	}))
	t.Cleanup(srv.Close)
	return srv.URL + "/v1", requests
}

func client(t *testing.T, opt Options) *Client {
	t.Helper()
	if opt.Model == "" {
		opt.Model = "m"
	}
	c, err := New(opt)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// streamed answers with a stream of exactly this text.
func streamed(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, text)
	}
}

// events answers with a stream of these chunks and the end mark.
func events(chunks ...string) http.HandlerFunc {
	return streamed("data: " + strings.Join(chunks, "\n\ndata: ") + "\n\ndata: [DONE]\n\n")
}

func status(code int, header, value, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set(header, value)
		w.WriteHeader(code)
		fmt.Fprint(w, body)
	}
}

func hangUp(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

func delta(d string) string  { return `{"choices":[{"index":0,"delta":` + d + `}]}` }
func text(s string) string   { return delta(`{"content":"` + s + `"}`) }
func calls(cs string) string { return delta(`{"tool_calls":[` + cs + `]}`) }
func finish(r string) string {
	return `{"choices":[{"index":0,"delta":{},"finish_reason":"` + r + `"}]}`
}

const count = `{"choices":[],"usage":{"prompt_tokens":11,"completion_tokens":7}}`

var (
	good  = events(delta(`{"role":"assistant","content":""}`), text("fi"), text("ne"), finish("stop"), count)
	asked = Request{
		Messages: []*Message{{Role: "system", Content: "be good"}, {Role: "user", Content: "hello"}},
		Tools:    []ToolSpec{{Name: "bash"}, {Name: "list_tasks"}},
	}
)

// An answer that did not come to its end is thrown away, with text and calls, and
// asked for again.
func TestOnlyCompleteTurnsCount(t *testing.T) {
	half := text("lost") + "\n\ndata: " + calls(`{"index":0,"id":"c1","function":{"name":"bash","arguments":"{}"}}`) + "\n\n"
	for name, broken := range map[string]http.HandlerFunc{
		"cut stream":                     streamed("data: " + half),
		"end mark without finish reason": streamed("data: " + strings.Replace(half, "{}", `{\"a\":`, 1) + "data: [DONE]\n\n"),
		"cut last line":                  streamed("data: " + half + "data: " + finish("stop")[:50]),
		"error object":                   streamed("data: " + half + `data: {"error":{"message":"overloaded"}}` + "\n\n"),
		"error object after a comment":   streamed(": wait\n\ndata: " + half + `data: {"error":{"message":"overloaded"}}` + "\n\n"),
		"error object is not the first":  streamed("data: " + half + `data: {"id":"x","error":{"message":"overloaded"},"choices":[]}` + "\n\n"),
		"error object after a space":     streamed("data: " + half + `data: { "error":{"message":"overloaded"}}` + "\n\n"),
		"error object beside a finish":   streamed("data: " + half + `data: {"id":"x","error":"overloaded","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n"),
		"event: error":                   streamed("data: " + half + "event: error\ndata: {\"message\":\"overloaded\"}\n\n"),
		"finish reason error":            events(text("lost"), finish("error")),
		"not JSON in the middle":         events(text("lost"), `{"choices":`),
		"JSON body with status 200":      status(200, "Content-Type", "application/json", `{"error":{"message":"overloaded"}}`),
		"JSON body with a text error":    status(200, "Content-Type", "application/json", `{"error":"overloaded"}`),
		"no words with status 200":       status(200, "Content-Type", "text/plain", ""),
		"empty body":                     streamed(""),
		"connection closed in the middle": func(w http.ResponseWriter, r *http.Request) {
			streamed("data: "+half)(w, r)
			w.(http.Flusher).Flush()
			hangUp(w, r)
		},
		"connection closed at once": hangUp,
		"408":                       status(408, "X", "", ""),
		"409":                       status(409, "X", "", ""),
		"429":                       status(429, "Retry-After", "0", `{"error":{"message":"slow down"}}`),
		"500":                       status(500, "X", "", "<html>"),
		"503":                       status(503, "X", "", `{"error":{"message":"overloaded"}}`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, requests := endpoint(t, broken, good)
			var shown strings.Builder
			got, err := client(t, Options{BaseURL: url}).Complete(t.Context(), asked, func(s string) { shown.WriteString(s) })
			if got.Usage.Estimated != (got.Usage.WastedPrompt > 0) {
				t.Errorf("usage %+v, want what was thrown away to be an estimate", got.Usage)
			}
			got.Usage.Estimated, got.Usage.WastedPrompt, got.Usage.WastedCompletion, got.Message.Origin = false, 0, 0, ""
			want := Reply{Message: Message{Role: "assistant", Content: "fine"}, FinishReason: "stop", Usage: Usage{PromptTokens: 11, CompletionTokens: 7}, Model: "m"}
			if err != nil || !reflect.DeepEqual(got, want) || requests.Load() != 2 {
				t.Errorf("Complete = %+v, %v after %d requests; want %+v after 2", got, err, requests.Load(), want)
			}
			if !strings.HasSuffix(shown.String(), "fine") {
				t.Errorf("shown %q, want it to end in fine", shown.String())
			}
		})
	}
}

// What stands between a complete turn and its reader does not hurt it.
func TestCompleteTurns(t *testing.T) {
	call := func(id, name, args string) ToolCall { return ToolCall{ID: id, Name: name, Arguments: args} }
	bash, list := call("a", "bash", `{"x":1}`), call("b", "list_tasks", "{}")
	for name, tt := range map[string]struct {
		answer http.HandlerFunc
		calls  []ToolCall // an empty ID: any
		finish string
	}{
		"a thousand keep-alive comments": {streamed(strings.Repeat(": keep-alive\n\n", 1000) + "data: " + finish("stop") + "\n\n"), nil, "stop"},
		"empty lines before all else":    {streamed("\n\r\n \n" + "data: " + finish("stop") + "\n\n"), nil, "stop"},
		"a byte order mark":              {streamed("\ufeffdata: " + finish("stop") + "\n\n"), nil, "stop"},
		"CR LF":                          {streamed("data: " + finish("stop") + "\r\n\r\n"), nil, "stop"},
		"CR only":                        {streamed("data: " + finish("stop") + "\r\rdata: [DONE]\r\r"), nil, "stop"},
		"no space after the colon":       {streamed("data:" + finish("stop") + "\n\n"), nil, "stop"},
		"other fields, several lines":    {streamed("id: 1\nretry: 5\nx: y\ndata: {\"choices\":\ndata: [{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"), nil, "stop"},
		"a last event without its end":   {streamed("data: " + finish("stop") + "\n"), nil, "stop"},
		"a last line without its end":    {streamed("data: " + finish("stop")), nil, "stop"},
		"a last line with only a CR":     {streamed("data: " + finish("stop") + "\r"), nil, "stop"},
		"an event of 20 MB":              {streamed("data: {\"x\":\"" + strings.Repeat("x", 20<<20) + "\"," + finish("stop")[1:] + "\n\n"), nil, "stop"},
		"the wrong content type":         {status(200, "Content-Type", "application/json", "data: "+finish("stop")+"\n\n"), nil, "stop"},
		"no stream, a whole turn":        {status(200, "Content-Type", "application/json", ` {"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"bash","arguments":"{\"x\":1}"}}]},"finish_reason":"tool_calls"}]}`), []ToolCall{bash}, "tool_calls"},
		"no end mark":                    {streamed("data: " + finish("stop") + "\n\n"), nil, "stop"},
		"hang-up after the finish": {func(w http.ResponseWriter, r *http.Request) {
			streamed("data: "+finish("stop")+"\n\n")(w, r)
			w.(http.Flusher).Flush()
			hangUp(w, r)
		}, nil, "stop"},
		"another choice":                        {events(`{"choices":[{"index":1,"delta":{"content":"other"},"finish_reason":"stop"}]}`, finish("stop")), nil, "stop"},
		"null everywhere":                       {events(`{"choices":[{"index":0,"delta":{"content":null,"tool_calls":null,"refusal":null},"finish_reason":null}],"usage":null,"error":null}`, finish("stop")), nil, "stop"},
		"call in pieces":                        {events(calls(`{"index":0,"id":"a","type":"function","function":{"name":"bash","arguments":""}}`), calls(`{"index":0,"function":{"arguments":"{\"x\""}}`), calls(`{"index":0,"function":{"arguments":":1}"}}`), finish("tool_calls")), []ToolCall{bash}, "tool_calls"},
		"two calls at once":                     {events(calls(`{"index":0,"id":"a","function":{"name":"bash"}}`), calls(`{"index":1,"id":"b","function":{"name":"list_tasks"}}`), calls(`{"index":1,"function":{"arguments":"{}"}},{"index":0,"function":{"arguments":"{\"x\":1}"}}`), finish("tool_calls")), []ToolCall{bash, list}, "tool_calls"},
		"name in pieces":                        {events(calls(`{"index":0,"id":"b","function":{"name":"list_"}}`), calls(`{"index":0,"function":{"name":"tasks","arguments":"{}"}}`), finish("tool_calls")), []ToolCall{list}, "tool_calls"},
		"name in pieces, no index, no id":       {events(calls(`{"function":{"name":"list_"}}`), calls(`{"function":{"name":"tasks"}}`), calls(`{"function":{"arguments":"{}"}}`), finish("tool_calls")), []ToolCall{call("", "list_tasks", "{}")}, "tool_calls"},
		"name repeated in every piece":          {events(calls(`{"index":0,"id":"a","function":{"name":"bash","arguments":"{\"x\""}}`), calls(`{"index":0,"id":"a","function":{"name":"bash","arguments":":1}"}}`), finish("tool_calls")), []ToolCall{bash}, "tool_calls"},
		"no index":                              {events(calls(`{"id":"a","function":{"name":"bash","arguments":"{\"x\""}}`), calls(`{"id":"a","function":{"arguments":":1}"}}`), calls(`{"id":"b","function":{"name":"list_tasks","arguments":"{}"}}`), finish("tool_calls")), []ToolCall{bash, list}, "tool_calls"},
		"no index, no id, one chunk":            {events(calls(`{"function":{"name":"bash","arguments":"{\"x\":1}"}},{"function":{"name":"list_tasks","arguments":""}}`), finish("tool_calls")), []ToolCall{call("", "bash", `{"x":1}`), call("", "list_tasks", "{}")}, "tool_calls"},
		"no index, no id, no args, two chunks":  {events(calls(`{"function":{"name":"list_tasks"}}`), calls(`{"function":{"name":"list_tasks"}}`), finish("tool_calls")), []ToolCall{call("", "list_tasks", "{}"), call("", "list_tasks", "{}")}, "tool_calls"},
		"every call has index 0":                {events(calls(`{"index":0,"id":"a","function":{"name":"bash","arguments":"{\"x\":1}"}}`), calls(`{"index":0,"id":"b","function":{"name":"list_tasks","arguments":"{}"}}`), finish("tool_calls")), []ToolCall{bash, list}, "tool_calls"},
		"one id for two calls":                  {events(calls(`{"index":0,"id":"a","function":{"name":"bash","arguments":"{\"x\":1}"}}`), calls(`{"index":1,"id":"a","function":{"name":"list_tasks"}}`), finish("tool_calls")), []ToolCall{bash, call("", "list_tasks", "{}")}, "tool_calls"},
		"an id of an earlier turn":              {events(calls(`{"index":0,"id":"old","function":{"name":"bash","arguments":"{}"}}`), finish("tool_calls")), []ToolCall{call("", "bash", "{}")}, "tool_calls"},
		"arguments empty":                       {events(calls(`{"index":0,"id":"b","function":{"name":"list_tasks","arguments":""}}`), finish("tool_calls")), []ToolCall{list}, "tool_calls"},
		"arguments an object":                   {events(calls(`{"index":0,"id":"a","function":{"name":"bash","arguments":{"x":1}}}`), finish("tool_calls")), []ToolCall{bash}, "tool_calls"},
		"arguments malformed":                   {events(calls(`{"index":0,"id":"a","function":{"name":"bash","arguments":"{\"x\":"}}`), finish("tool_calls")), []ToolCall{call("a", "bash", `{"x":`)}, "tool_calls"},
		"stop although there are calls":         {events(calls(`{"index":0,"id":"b","function":{"name":"list_tasks","arguments":"{}"}}`), finish("stop")), []ToolCall{list}, "tool_calls"},
		"length, the arguments cut":             {events(calls(`{"index":0,"id":"b","function":{"name":"list_tasks","arguments":"{}"}},{"index":1,"id":"a","function":{"name":"bash","arguments":"{\"x"}}`), finish("length")), nil, "length"},
		"content filter in the middle":          {events(calls(`{"index":0,"id":"a","function":{"name":"bash","arguments":"{\"x"}}`), finish("content_filter")), nil, "content_filter"},
		"finish reason beside the last content": {events(`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"b","function":{"name":"list_tasks","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`), []ToolCall{list}, "tool_calls"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, requests := endpoint(t, tt.answer)
			req := asked
			req.Messages = append(req.Messages[:2:2],
				&Message{Role: "assistant", ToolCalls: []ToolCall{call("old", "bash", "{}")}}, &Message{Role: "tool", ToolCallID: "old", Content: "ok"})
			got, err := client(t, Options{BaseURL: url}).Complete(t.Context(), req, nil)
			if err != nil || requests.Load() != 1 {
				t.Fatalf("Complete = %v after %d requests", err, requests.Load())
			}
			ids := map[string]bool{"": true, "old": true}
			for i, c := range got.Message.ToolCalls {
				if ids[c.ID] {
					t.Errorf("call %d has the id %q", i, c.ID)
				}
				ids[c.ID] = true
				if i < len(tt.calls) && tt.calls[i].ID == "" {
					got.Message.ToolCalls[i].ID = ""
				}
			}
			if !reflect.DeepEqual(got.Message.ToolCalls, tt.calls) || got.FinishReason != tt.finish || got.Message.Content != "" {
				t.Errorf("Complete = %+v, want the calls %+v and %s", got, tt.calls, tt.finish)
			}
			if !got.Usage.Estimated || got.Usage.PromptTokens < 50 {
				t.Errorf("usage %+v, want an estimate", got.Usage)
			}
		})
	}
}

// Some failures no repetition mends; their errors tell what to do.
func TestRefusals(t *testing.T) {
	const key = "sk-secret"
	for name, tt := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"400":                     {status(400, "X", "", `{"error":{"message":"too long,\n really"}}`), "refuses the request (400): too long, really"},
		"400 that quotes the key": {status(400, "X", "", "bad "+key), "refuses the request (400): bad ***"},
		"401":                     {status(401, "X", "", `{"error":{"message":"Incorrect API key: sk-se*ret"}}`), "refuses the key (401)"},
		"403":                     {status(403, "X", "", `{"error":{"message":"not in your country"}}`), "refuses the key (403): not in your country"},
		"404":                     {status(404, "X", "", "404 page not found"), "knows no such address or model (404): 404 page not found"},
		"501":                     {status(501, "X", "", "<html><title>Error response</title></html>"), "is no model endpoint: it answered 501: an HTML page: Error response"},
		"404, a page":             {status(404, "X", "", "<html><title>Not found</title></html>"), "is no model endpoint: it answered 404: an HTML page: Not found"},
		"422, an endless text":    {status(422, "X", "", strings.Repeat("长", 5000)), "(422): " + strings.Repeat("长", 300) + "..."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, requests := endpoint(t, tt.answer)
			_, err := client(t, Options{BaseURL: url, APIKey: key}).Complete(t.Context(), asked, nil)
			most := int64(1)
			if strings.HasPrefix(name, "400") || strings.HasPrefix(name, "422") { // words that say nothing
				most = mostOnceMore
			}
			if !errors.Is(err, team.InvalidArgument) || !strings.HasSuffix(err.Error(), tt.want) || requests.Load() != most {
				t.Errorf("Complete = %v (%s) after %d requests, want …%s after %d", err, team.CodeOf(err), requests.Load(), tt.want, most)
			}
		})
	}
}

// A hint names what a person has set: the plain settings, or an alias of team.yaml.
func TestHints(t *testing.T) {
	plain := Options{}
	keyed := Options{Alias: "strong", KeyEnv: "STRONG_KEY"}
	bare := Options{Alias: "strong"}
	for name, tt := range map[string]struct {
		opt    Options
		status int
		want   string
	}{
		"key":                     {plain, 401, "check OPENAI_API_KEY"},
		"of an alias":             {keyed, 401, "check STRONG_KEY (alias strong)"},
		"of an alias, none set":   {bare, 401, "check key_env of alias strong in team.yaml"},
		"rights":                  {plain, 403, "check OPENAI_API_KEY and what it may use"},
		"rights of an alias":      {keyed, 403, "check STRONG_KEY (alias strong) and what it may use"},
		"credit":                  {plain, 402, "check the account that OPENAI_API_KEY belongs to, and its limits"},
		"credit of an alias":      {keyed, 402, "check the account that STRONG_KEY (alias strong) belongs to, and its limits"},
		"model":                   {plain, 404, "check OPENAI_BASE_URL, which usually ends in /v1, and OPENAI_MODEL"},
		"model of an alias":       {keyed, 404, "check base_url of alias strong in team.yaml, which usually ends in /v1, and its model"},
		"no endpoint":             {plain, 501, "check OPENAI_BASE_URL; it usually ends in /v1"},
		"no endpoint of an alias": {keyed, 501, "check base_url of alias strong in team.yaml; it usually ends in /v1"},
	} {
		t.Run(name, func(t *testing.T) {
			tt.opt.BaseURL, _ = endpoint(t, status(tt.status, "X", "", ""), status(tt.status, "X", "", ""))
			c := client(t, tt.opt)
			_, err := c.Complete(t.Context(), asked, nil)
			if checked := c.Check(t.Context()); team.HintOf(err) != tt.want || team.HintOf(checked) != tt.want {
				t.Errorf("the hints are %q, of Check %q; want %q", team.HintOf(err), team.HintOf(checked), tt.want)
			}
		})
	}
	away := client(t, Options{BaseURL: "http://127.0.0.1:1/v1", Alias: "strong"}).Check(t.Context())
	if got, want := team.HintOf(away), "check base_url of alias strong in team.yaml and that the endpoint is running"; got != want {
		t.Errorf("the hint is %q, want %q", got, want)
	}
}

// What goes out, byte by meaning.
func TestRequestBody(t *testing.T) {
	raw := func(s string) map[string]json.RawMessage {
		return map[string]json.RawMessage{"extra_content": json.RawMessage(s)}
	}
	var body string
	url, _ := endpoint(t, func(w http.ResponseWriter, r *http.Request) {
		var doc map[string]any
		if err := json.NewDecoder(r.Body).Decode(&doc); err != nil {
			t.Error(err)
		}
		text, _ := json.Marshal(doc) // sorted
		body = string(text)
		if got := r.Header.Get("Authorization"); got != "Bearer key" {
			t.Errorf("Authorization %q", got)
		}
		good(w, r)
	})
	c := client(t, Options{BaseURL: url + "/", APIKey: "key", MaxTokens: 5})
	_, err := c.Complete(t.Context(), Request{
		Messages: []*Message{
			{Role: "system", Content: "s"},
			{Role: "user", Content: "u"},
			{Role: "assistant", ToolCalls: []ToolCall{
				{ID: "a", Name: "bash", Arguments: `{"x":1}`, Extra: raw(`{"sig":"x"}`)},
				{ID: "b", Name: "bash", Arguments: `{"x`},
				{ID: "c", Name: "list_tasks"},
			}, Extra: raw(`["y"]`)},
			{Role: "tool", ToolCallID: "a"},
		},
		Tools: []ToolSpec{{Name: "bash", Description: "runs", Schema: json.RawMessage(`{"type":"object","title":"T"}`)}, {Name: "list_tasks"}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"max_tokens":5,"messages":[` +
		`{"content":"s","role":"system"},{"content":"u","role":"user"},` +
		`{"content":"","extra_content":["y"],"role":"assistant","tool_calls":[` +
		`{"extra_content":{"sig":"x"},"function":{"arguments":"{\"x\":1}","name":"bash"},"id":"a","type":"function"},` +
		`{"function":{"arguments":"{\"malformed_arguments\":\"{\\\"x\"}","name":"bash"},"id":"b","type":"function"},` +
		`{"function":{"arguments":"{}","name":"list_tasks"},"id":"c","type":"function"}]},` +
		`{"content":"(no output)","role":"tool","tool_call_id":"a"}],` +
		`"model":"m","stream":true,"stream_options":{"include_usage":true},"tools":[` +
		`{"function":{"description":"runs","name":"bash","parameters":{"title":"T","type":"object"}},"type":"function"},` +
		`{"function":{"name":"list_tasks","parameters":{"properties":{},"type":"object"}},"type":"function"}]}`
	if body != want {
		t.Errorf("body\n%s\nwant\n%s", body, want)
	}

	// OpenAI's reasoning models renamed the limit.
	if _, err := c.Complete(t.Context(), Request{Model: "gpt-5-mini", Messages: asked.Messages, MaxTokens: 9}, nil); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(body, `{"max_completion_tokens":9,"messages"`) {
		t.Errorf("body %s, want max_completion_tokens", body)
	}

	_, err = c.Complete(t.Context(), Request{Messages: []*Message{{Role: "system"}, {Role: "user"}, {Role: "system"}}}, nil)
	if !errors.Is(err, team.InvalidArgument) || !strings.Contains(err.Error(), "message 2") {
		t.Errorf("a second system message: %v", err)
	}
}

// Fields that the SDK drops come back with the reply and go out with the next
// request, through the journal's JSON.
func TestProviderFieldsComeAndGo(t *testing.T) {
	var second struct{ Messages []map[string]json.RawMessage }
	url, _ := endpoint(t,
		events(delta(`{"reasoning":"I th","details":[{"n":1}],"sig":{"a":1},"refusal":null}`), delta(`{"reasoning":"ink 想","details":[{"n":2}],"sig":{"b":2}}`),
			calls(`{"index":0,"id":"a","function":{"name":"bash","arguments":"{}"},"extra_content":{"google":{"thought_signature":"x"}}}`), finish("tool_calls"), count),
		func(w http.ResponseWriter, r *http.Request) {
			if err := json.NewDecoder(r.Body).Decode(&second); err != nil {
				t.Error(err)
			}
			good(w, r)
		})
	c := client(t, Options{BaseURL: url})
	first, err := c.Complete(t.Context(), asked, nil)
	if err != nil {
		t.Fatal(err)
	}
	stored, err := json.Marshal(first.Message)
	if err != nil {
		t.Fatal(err)
	}
	var restored Message
	if err := json.Unmarshal(stored, &restored); err != nil {
		t.Fatal(err)
	}
	next := asked
	next.Messages = append(next.Messages[:2:2], &restored, &Message{Role: "tool", ToolCallID: "a", Content: "ok"})
	if _, err := c.Complete(t.Context(), next, nil); err != nil {
		t.Fatal(err)
	}
	sent := second.Messages[2]
	for key, want := range map[string]string{
		"reasoning": `"I think 想"`, "details": `[{"n":1},{"n":2}]`, "sig": `{"b":2}`, "refusal": "",
		"tool_calls": `[{"id":"a","type":"function","function":{"name":"bash","arguments":"{}"},"extra_content":{"google":{"thought_signature":"x"}}}]`,
	} {
		var got, held any // the order of fields is go-openai's
		if _ = json.Unmarshal(sent[key], &got); want != "" && json.Unmarshal([]byte(want), &held) != nil || !reflect.DeepEqual(got, held) {
			t.Errorf("%s = %s, want %s", key, sent[key], want)
		}
	}
}
