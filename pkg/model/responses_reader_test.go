package model

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
)

// readResponses gives the reader these events, one a line, and returns what it says.
func readResponses(t *testing.T, req Request, events string) (r *responsesReader, shown string, err error) {
	t.Helper()
	var text strings.Builder
	r = newResponsesReader(req, func(s string) { text.WriteString(s) })
	for line := range strings.Lines(events) {
		if line = strings.TrimSpace(line); line == "" || err != nil {
			continue
		}
		if r.finished() {
			t.Errorf("finished before %s", line)
		}
		err = r.event("", []byte(line))
	}
	return r, text.String(), err
}

const turnOfResponses = `
	{"type":"response.created","response":{"id":"resp_1","model":"gpt-5.6-2026-07-01","status":"in_progress"}}
	{"type":"response.output_item.added","output_index":0,"item":{"type":"reasoning","id":"rs_1","summary":[]}}
	{"type":"response.reasoning_summary_text.delta","output_index":0,"delta":"thinking"}
	{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"thinking"}],"encrypted_content":"gAAA"}}
	{"type":"response.output_item.added","output_index":1,"item":{"type":"message","id":"msg_1","role":"assistant","phase":"commentary","content":[]}}
	{"type":"response.output_text.delta","output_index":1,"content_index":0,"delta":"I lo"}
	{"type":"response.output_text.delta","output_index":1,"content_index":0,"delta":"ok 看."}
	{"type":"response.output_text.done","output_index":1,"content_index":0,"text":"I look 看."}
	{"type":"response.output_item.done","output_index":1,"item":{"type":"message","id":"msg_1","role":"assistant","phase":"commentary","content":[{"type":"output_text","text":"I look 看."}]}}
	{"type":"response.output_item.added","output_index":2,"item":{"type":"function_call","id":"fc_1","call_id":"call_a","name":"bash","arguments":""}}
	{"type":"response.function_call_arguments.delta","output_index":2,"delta":"{\"command\":"}
	{"type":"response.output_item.added","output_index":3,"item":{"type":"function_call","id":"fc_2","call_id":"call_b","name":"list_tasks","arguments":""}}
	{"type":"response.function_call_arguments.delta","output_index":2,"delta":"\"ls\"}"}
	{"type":"response.function_call_arguments.done","output_index":2,"arguments":"{\"command\":\"ls\"}"}
	{"type":"response.output_item.done","output_index":2,"item":{"type":"function_call","id":"fc_1","call_id":"call_a","name":"bash","arguments":"{\"command\":\"ls\"}"}}
	{"type":"response.output_item.done","output_index":3,"item":{"type":"function_call","id":"fc_2","call_id":"call_b","name":"list_tasks","arguments":""}}
	{"type":"response.completed","response":{"status":"completed","usage":{"input_tokens":"100","input_tokens_details":{"cached_tokens":60},"output_tokens":40.0,"output_tokens_details":{"reasoning_tokens":25}}}}`

func TestResponsesTurn(t *testing.T) {
	r, shown, err := readResponses(t, Request{}, turnOfResponses)
	if err != nil || !r.finished() || shown != "I look 看." {
		t.Fatalf("%v, finished %v, shown %q", err, r.finished(), shown)
	}
	want := Reply{
		Message: Message{Role: "assistant", Content: "I look 看.",
			ToolCalls: []ToolCall{{ID: "call_a", Name: "bash", Arguments: `{"command":"ls"}`}, {ID: "call_b", Name: "list_tasks", Arguments: "{}"}},
			Extra: map[string]json.RawMessage{
				phaseField:     json.RawMessage(`"commentary"`),
				reasoningItems: json.RawMessage(`[{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"thinking"}],"encrypted_content":"gAAA"}]`),
			}},
		FinishReason: "tool_calls", Model: "gpt-5.6-2026-07-01",
		Usage: Usage{PromptTokens: 100, CachedTokens: 60, CompletionTokens: 40, ReasoningTokens: 25},
	}
	got := r.reply()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("reply\n%+v\nwant\n%+v", got, want)
	}
	if n := r.size(); n < len("I look 看.")+len(`bash{"command":"ls"}list_tasksthinking`) {
		t.Errorf("size %d", n)
	}

	// The next request sends back what was thought.
	d := dialectOf(t, "openai", "gpt-5.6", Options{})
	got.Message.Origin = d.origin("gpt-5.6")
	c, err := d.encode(Request{Messages: []*Message{{Role: "user", Content: "x"}, &got.Message}})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{
		`{"type":"reasoning","summary":[{"type":"summary_text","text":"thinking"}],"encrypted_content":"gAAA"}`,
		`"content":"I look 看.","phase":"commentary"}`, `{"type":"function_call","call_id":"call_a","name":"bash","arguments":"{\"command\":\"ls\"}"}`,
	} {
		if !strings.Contains(string(c.body), s) {
			t.Errorf("%s is missing in %s", s, c.body)
		}
	}
}

// Thinking alone is no turn, and what another model thought means nothing here.
func TestThinkingThatIsNotSentBack(t *testing.T) {
	d := dialectOf(t, "openai", "gpt-5.6", Options{})
	thought := map[string]json.RawMessage{reasoningItems: json.RawMessage(`[{"type":"reasoning","encrypted_content":"gAAA"}]`)}
	c, err := d.encode(Request{Messages: []*Message{
		{Role: "user", Content: "x"},
		{Role: "assistant", Origin: d.origin("gpt-5.6"), Extra: thought},
		{Role: "assistant", Content: "y", Origin: d.origin("gpt-5.5"), Extra: thought},
	}})
	if err != nil || strings.Contains(string(c.body), "gAAA") {
		t.Errorf("%v %s", err, c.body)
	}
	c, err = d.encode(Request{Messages: []*Message{{Role: "assistant", Content: "y", Origin: d.origin("gpt-5.6"), Extra: thought}}})
	if err != nil || !strings.Contains(string(c.body), `{"type":"reasoning","summary":[],"encrypted_content":"gAAA"},{"type":"message"`) {
		t.Errorf("%v %s", err, c.body)
	}
}

func TestResponsesEnds(t *testing.T) {
	const half = `
		{"type":"response.output_text.delta","output_index":0,"delta":"half"}
		{"type":"response.output_item.done","output_index":1,"item":{"type":"function_call","call_id":"c","name":"bash","arguments":"{\"a\":"}}
		`
	for name, tt := range map[string]struct {
		events string
		want   Reply // as far as it is said
		calls  int
	}{
		"length":           {half + `{"type":"response.incomplete","response":{"incomplete_details":{"reason":"max_output_tokens"}}}`, Reply{Message: Message{Content: "half"}, FinishReason: "length"}, 0},
		"filter":           {half + `{"type":"response.incomplete","response":{"incomplete_details":{"reason":"content_filter"}}}`, Reply{Message: Message{Content: "half"}, FinishReason: "content_filter"}, 0},
		"refusal":          {`{"type":"response.refusal.delta","output_index":0,"delta":"I won't."}` + "\n" + `{"type":"response.completed","response":{}}`, Reply{Message: Message{Content: "I won't."}, FinishReason: "stop"}, 0},
		"only the whole":   {`{"type":"response.completed","response":{"output":[{"type":"message","content":[{"type":"output_text","text":"all"}]},{"type":"function_call","call_id":"c","name":"bash","arguments":"{}"}]}}`, Reply{Message: Message{Content: "all"}, FinishReason: "tool_calls"}, 1},
		"no pieces":        {`{"type":"response.output_item.done","output_index":0,"item":{"type":"message","content":[{"type":"output_text","text":"all"}]}}` + "\n" + `{"type":"response.completed","response":{}}`, Reply{Message: Message{Content: "all"}, FinishReason: "stop"}, 0},
		"one number":       {`{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","call_id":"c","name":"bash"}}` + "\n" + `{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","call_id":"d","name":"bash"}}` + "\n" + `{"type":"response.completed","response":{}}`, Reply{FinishReason: "tool_calls"}, 2},
		"only the pieces":  {`{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","call_id":"c","name":"bash"}}` + "\n" + `{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{\"a\":1}"}` + "\n" + `{"type":"response.completed","response":{}}`, Reply{FinishReason: "tool_calls"}, 1},
		"events we ignore": {`{"type":"response.audio.delta","delta":{"x":1}}` + "\n" + `{"type":"response.completed","response":{"error":null,"usage":null}}`, Reply{FinishReason: "stop"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r, shown, err := readResponses(t, Request{}, tt.events)
			if err != nil || !r.finished() {
				t.Fatalf("%v, finished %v", err, r.finished())
			}
			got := r.reply()
			if got.Message.Content != tt.want.Message.Content || shown != got.Message.Content || got.FinishReason != tt.want.FinishReason || len(got.Message.ToolCalls) != tt.calls {
				t.Errorf("reply %+v, shown %q, want %+v and %d calls", got, shown, tt.want, tt.calls)
			}
		})
	}
}

func TestResponsesErrors(t *testing.T) {
	for name, tt := range map[string]struct {
		event string
		want  apiError
	}{
		"failed":        {`{"type":"response.failed","response":{"error":{"code":"server_error","message":"broke down"}}}`, apiError{code: "server_error", message: "broke down"}},
		"failed, mute":  {`{"type":"response.failed","response":{}}`, apiError{message: "the endpoint reports that the answer failed"}},
		"error":         {`{"type":"error","code":"context_length_exceeded","message":"too long"}`, apiError{code: "context_length_exceeded", kind: "error", message: "too long"}},
		"nested error":  {`{"type":"error","error":{"type":"invalid_request_error","code":400,"message":"bad"}}`, apiError{status: 400, code: "400", kind: "invalid_request_error", message: "bad"}},
		"only a text":   {`{"type":"response.failed","response":{"error":"busy"}}`, apiError{message: "busy"}},
		"error of null": {`{"type":"error","error":{"code":null,"message":""}}`, apiError{message: "the stream reports an error"}},
	} {
		r, _, err := readResponses(t, Request{}, tt.event)
		var got *apiError
		if !errors.As(err, &got) || *got != tt.want || r.finished() {
			t.Errorf("%s: %+v, want %+v", name, err, tt.want)
		}
	}
	for _, broken := range []string{`{`, `{"type":"response.output_item.done","item":"x"}`, `{"type":"response.output_item.done"}`} {
		_, _, err := readResponses(t, Request{}, broken)
		if told := (*apiError)(nil); err == nil || errors.As(err, &told) {
			t.Errorf("%s: %v", broken, err)
		}
	}
}

// The agent tells its calls apart by id.
func TestResponsesCallIDs(t *testing.T) {
	asked := Request{Messages: []*Message{{Role: "assistant", ToolCalls: []ToolCall{{ID: "call_a"}}}}}
	r, _, err := readResponses(t, asked, turnOfResponses)
	if err != nil {
		t.Fatal(err)
	}
	if got := r.reply().Message.ToolCalls; got[0].ID == "call_a" || !strings.HasPrefix(got[0].ID, "call_") || got[1].ID != "call_b" {
		t.Errorf("calls %+v", got)
	}
}

func FuzzResponsesReader(f *testing.F) {
	f.Add(turnOfResponses)
	f.Add(`{"type":"error","error":{"code":7}}`)
	f.Fuzz(func(t *testing.T, events string) {
		r := newResponsesReader(Request{}, func(string) {})
		for line := range strings.Lines(events) {
			if r.event("", []byte(line)) != nil {
				return
			}
		}
		reply := r.reply()
		if (reply.FinishReason == "tool_calls") != (len(reply.Message.ToolCalls) > 0) {
			t.Errorf("finish reason %q with %d calls", reply.FinishReason, len(reply.Message.ToolCalls))
		}
	})
}
