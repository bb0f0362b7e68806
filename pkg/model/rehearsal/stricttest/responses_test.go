package stricttest

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"agentteam/pkg/model/rehearsal"
)

func handlerOf(t *testing.T, src string) http.Handler {
	t.Helper()
	s, err := rehearsal.Parse("test", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	return NewHandler("openai", s, nil)
}

// respond asks over Responses, with these items after the instructions.
func respond(t *testing.T, h http.Handler, keys, items string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	body := `{"model":"gpt-5.6","store":false,"instructions":"You are coder-1, role coder, in team red.",` + keys + `"input":[` + items + `]}`
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "POST", "/v1/responses", strings.NewReader(body)))
	return w
}

// What OpenAI refuses of a request of Responses is refused, in its words.
func TestResponsesStrictness(t *testing.T) {
	const (
		question = `{"type":"message","role":"user","content":"go"}`
		thought  = `{"type":"reasoning","summary":[],"encrypted_content":"gAAAx"}`
		called   = `{"type":"function_call","call_id":"c1","name":"bash","arguments":"{}"}`
		result   = `{"type":"function_call_output","call_id":"c1","output":"ok"}`
		turn     = `{"type":"message","role":"assistant","content":"hm"}`
	)
	h := handlerOf(t, "agents: [{rules: [{name: a, say: fine}]}]")
	for name, tt := range map[string]struct{ keys, items, want string }{
		"fine":                        {``, question, ""},
		"a whole turn":                {``, question + "," + thought + "," + turn + "," + called + "," + result, ""},
		"input between":               {``, question + "," + called + "," + question + "," + result, ""},
		"parts":                       {``, `{"role":"user","content":[{"type":"input_text","text":"x"},{"type":"input_image","image_url":"data:x"}]}`, ""},
		"field of the other protocol": {`"max_tokens":5,`, question, "Unknown parameter: 'max_tokens'."},
		"tool of the other protocol":  {`"tools":[{"type":"function","function":{"name":"bash"}}],`, question, "Missing required parameter: 'tools[0].name'."},
		"tiny limit":                  {`"max_output_tokens":5,`, question, "but got 5 instead."},
		"no input":                    {``, ``, "One of 'input' or"},
		"an item's id":                {``, question + "," + strings.Replace(called, `"call_id"`, `"id":"fc_1","call_id"`, 1) + "," + result, ""},
		"thinking by its id":          {``, question + `,{"type":"reasoning","id":"rs_1","summary":[]},` + turn + "," + question, "Item with id 'rs_1' not found."},
		"thinking without summary":    {``, question + "," + strings.Replace(thought, `"summary":[],`, "", 1) + "," + turn + "," + question, "Missing required parameter: 'input[1].summary'."},
		"thinking alone":              {``, question + "," + thought + "," + question, "without its required following item"},
		"another's thinking":          {``, question + "," + strings.Replace(thought, "gAAAx", "EqQB", 1) + "," + turn + "," + question, "could not be verified"},
		"made-up name":                {``, question + "," + strings.Replace(called, "bash", "a.b", 1) + "," + result, "Invalid 'input[1].name'"},
		"cut arguments":               {``, question + "," + strings.Replace(called, "{}", "{", 1) + "," + result, "input[1]: the arguments are no JSON object"},
		"call without an answer":      {``, question + "," + called + "," + question, "No tool output found for function call c1."},
		"answer to nothing":           {``, question + "," + result, "No tool call found for function call output with call_id c1."},
		"the same call twice":         {``, question + "," + called + "," + result + "," + called + "," + result, "the call id c1 comes twice"},
		"empty output":                {``, question + "," + called + "," + strings.Replace(result, "ok", "", 1), "input[2]: the output"},
		"empty text":                  {``, strings.Replace(question, "go", "", 1), "input[0]: the content of the user message is empty"},
		"system message":              {``, strings.Replace(question, `"user"`, `"system"`, 1), "belong into the instructions"},
		"parts of the other protocol": {``, `{"role":"user","content":[{"type":"text","text":"x"}]}`, "Invalid value: 'text'."},
		"unknown item":                {``, `{"type":"web_search_call"}`, "Invalid value: 'web_search_call'."},
		"nothing to reply to":         {``, question + "," + turn, "nothing to reply to"},
	} {
		t.Run(name, func(t *testing.T) {
			w := respond(t, h, tt.keys, tt.items)
			if body := w.Body.String(); tt.want == "" && w.Code != 200 || tt.want != "" && (w.Code/100 != 4 || !strings.Contains(body, tt.want)) {
				t.Errorf("%d %s, want %s", w.Code, body, tt.want)
			}
		})
	}
}

// A stream brings each item in pieces, and the whole at its end; faults break it off.
func TestResponsesStream(t *testing.T) {
	script := func(fault string) http.Handler {
		return handlerOf(t, `agents: [{rules: [{name: a, steps: [{say: fine and dandy, calls: [{tool: bash, args: {command: ls}}]`+fault+`}]}]}]`)
	}
	const hi = `{"role":"user","content":"hello"}`
	body := respond(t, script(""), `"stream":true,"include":["reasoning.encrypted_content"],`, hi).Body.String()
	at := 0
	for _, want := range []string{
		"event: response.created\n", `"encrypted_content":"gAAA`, "event: response.output_text.delta\n", `"text":"fine and dandy"`,
		"event: response.function_call_arguments.delta\n", `"arguments":"{\"command\":\"ls\"}"`, "event: response.completed\n", `"output_tokens":`,
	} {
		i := strings.Index(body[at:], want)
		if i < 0 {
			t.Fatalf("%s is missing after byte %d of\n%s", want, at, body)
		}
		at += i
	}
	if n := strings.Count(body, "response.output_text.delta\n"); n < 2 {
		t.Errorf("the text came in %d pieces", n)
	}
	for fault, want := range map[string]string{
		", fault: {cut: true}":                              "",
		", fault: {error: context_length, in_stream: true}": `"error":{"code":"context_length_exceeded"`,
		", fault: {error: content_filter, in_stream: true}": "event: response.failed\n",
		", fault: {error: server_error, in_stream: true}":   `"code":"server_error"`,
		", fault: {malformed: true}":                        "event: response.completed\n",
		", fault: {length: true}":                           `"incomplete_details":{"reason":"max_output_tokens"}`,
		", fault: {error: rate_limit, retry_after: 2s}":     `"code":"rate_limit_exceeded"`,
		", fault: {status: 503}":                            "this is a fault of the script",
		", fault: {delay: 1ms}":                             "event: response.completed\n",
	} {
		body := respond(t, script(fault), `"stream":true,`, hi).Body.String()
		if !strings.Contains(body, want) {
			t.Errorf("%s: %s, want %s", fault, body, want)
		}
		if broken := strings.Contains(fault, "cut") || strings.Contains(fault, "in_stream"); broken && strings.Contains(body, "response.completed") {
			t.Errorf("%s: the stream came to an end: %s", fault, body)
		}
	}
	if w := respond(t, script(""), "", hi); !strings.Contains(w.Body.String(), `"object":"response"`) || !strings.Contains(w.Body.String(), `"call_id":"call_a_0_`) {
		t.Errorf("not streamed: %s", w.Body)
	}
}
