package rehearsal

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"agentteam/pkg/team"
)

// Each kind of endpoint refuses what its own users report, in its own words, and
// takes what is right for it.
func TestStrictAsOneEndpoint(t *testing.T) {
	const (
		question = `{"role":"user","content":"go"}`
		called   = `{"role":"assistant","content":"","tool_calls":[{"id":"abcdefgh1","type":"function","function":{"name":"bash","arguments":"{}"}}]}`
		result   = `{"role":"tool","tool_call_id":"abcdefgh1","content":"ok"}`
		turn     = `{"role":"assistant","content":"hm"}`
		empty    = `{"role":"assistant","content":""}`
	)
	list := func(messages ...string) string {
		return `{"model":"m","messages":[` + system + `,` + strings.Join(messages, ",") + `]}`
	}
	fields := func(fs string) string { return `{"model":"m",` + fs + `,"messages":[` + system + `,` + question + `]}` }
	tool := func(schema string) string {
		return fields(`"tools":[{"type":"function","function":{"name":"bash","parameters":` + schema + `}}]`)
	}
	bare := strings.Replace(called, `"content":"",`, "", 1)
	withReasoning := func(field string) string {
		return list(question, strings.Replace(turn, `"content"`, `"`+field+`":"x","content"`, 1), question)
	}
	for name, tt := range map[string]struct {
		strict, body string
		status       int    // 200: taken
		want         string // in the answer
	}{
		"openai: renamed limit":         {"openai", fields(`"max_tokens":5`), 400, `"code":"unsupported_parameter"`},
		"openai: old model":             {"openai", strings.Replace(fields(`"max_tokens":5`), `"m"`, `"gpt-4.1"`, 1), 200, ""},
		"openai: unknown field":         {"azure", fields(`"top_k":5`), 400, "Unrecognized request argument supplied: top_k"},
		"openai: made-up name":          {"openai", list(question, strings.Replace(called, `"bash"`, `"a.b"`, 1), result), 400, "Invalid 'messages[2].tool_calls[0].function.name'"},
		"openai: no content":            {"openai", list(question, bare, result), 200, ""},
		"deepseek: empty turn":          {"deepseek", list(question, empty, question), 400, "content or tool_calls must be set"},
		"deepseek: no reasoning":        {"deepseek", list(question, turn, question), 400, "must be passed back"},
		"deepseek: reasoning":           {"deepseek", withReasoning("reasoning_content"), 200, ""},
		"deepseek: parts":               {"deepseek", list(`{"role":"user","content":[{"type":"text","text":"x"}]}`), 400, "expected a string"},
		"deepseek: no content":          {"deepseek", list(question, strings.Replace(bare, `"role"`, `"reasoning_content":"","role"`, 1), result), 400, "no content key"},
		"gemini: keyword":               {"gemini", tool(`{"type":"object","properties":{"a":{"type":"object","properties":{"b":{"type":"string"}},"additionalProperties":false}}}`), 400, `Unknown name \"additionalProperties\"`},
		"gemini: bare object":           {"gemini", tool(`{"type":"object","properties":{"meta":{"type":"object"}}}`), 400, "properties[meta].properties: should be non-empty"},
		"gemini: list of types":         {"gemini", tool(`{"type":"object","properties":{"a":{"type":["null","string"]}}}`), 400, "cannot start list"},
		"gemini: keyword in a list":     {"gemini", tool(`{"type":"object","properties":{"a":{"type":"array","items":{"type":"string","const":"x"}}}}`), 400, `Unknown name \"const\"`},
		"gemini: no parameters":         {"gemini", fields(`"tools":[{"type":"function","function":{"name":"bash"}}]`), 200, ""},
		"openai: no parameters":         {"openai", fields(`"tools":[{"type":"function","function":{"name":"bash"}}]`), 400, "parameters of bash"},
		"gemini: shape":                 {"gemini", list(question, empty, question), 400, `[{"error":{"code":400`},
		"gemini: good schema":           {"gemini", tool(`{"type":"object","properties":{"a":{"type":"string"}}}`), 200, ""},
		"mistral: usage asked for":      {"mistral", fields(`"stream_options":{"include_usage":true}`), 422, `"loc":["body","stream_options"]`},
		"mistral: reasoning":            {"mistral", withReasoning("reasoning_content"), 422, `"loc":["body","messages",2,"assistant","reasoning_content"]`},
		"mistral: user after tool":      {"mistral", list(question, called, result, question), 400, `"code":"3230"`},
		"mistral: id":                   {"mistral", strings.ReplaceAll(list(question, called, result), "abcdefgh1", "call_1"), 400, "Tool call id was call_1 but"},
		"mistral: empty turn":           {"mistral", list(question, empty, question), 400, "but not none"},
		"mistral: bridged":              {"mistral", list(question, called, result, turn, question), 200, ""},
		"anthropic: empty turn":         {"anthropic", list(question, empty, question), 400, "text content blocks must be non-empty"},
		"anthropic: empty beside calls": {"anthropic", list(question, called, result), 400, "messages.2: text content blocks"},
		"anthropic: absent":             {"anthropic", list(question, bare, result), 200, ""},
		"groq: reasoning":               {"groq", withReasoning("reasoning"), 400, "property is unsupported"},
		"cerebras: reasoning_content":   {"cerebras", withReasoning("reasoning_content"), 400, `"code":"wrong_api_format"`},
		"cerebras: reasoning":           {"cerebras", withReasoning("reasoning"), 200, ""},
		"llamacpp: users in a row":      {"llamacpp", list(question, question), 500, "must alternate"},
		"llamacpp: user after tool":     {"lmstudio", list(question, called, result, question), 500, "must alternate"},
		"llamacpp: turns in a row":      {"llamacpp", list(question, turn, turn, question), 500, "must alternate"},
		"llamacpp: empty turn":          {"llamacpp", list(question, empty, question), 400, "must contain either"},
		"vllm: users in a row":          {"vllm", list(question, question), 400, "must alternate"},
		"ollama: parts":                 {"ollama", list(`{"role":"user","content":[{"type":"text","text":"x"}]}`), 400, "expected a string"},
	} {
		t.Run(name, func(t *testing.T) {
			h := handlerOf(t, "strict: "+tt.strict+"\nagents: [{rules: [{name: a, say: fine}]}]")
			w := postRaw(t, h, tt.body)
			if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.want) {
				t.Errorf("answer %d %s, want %d %s", w.Code, w.Body, tt.status, tt.want)
			}
			if err := Check(tt.strict, []byte(tt.body)); (err == nil) != (tt.status == http.StatusOK) {
				t.Errorf("Check = %v", err)
			}
		})
	}
}

func TestUnknownStrictness(t *testing.T) {
	const known = "anthropic, azure, azure-classic, cerebras, deepseek, gemini, groq, litellm, llamacpp, lmstudio, mistral, ollama, openai, openrouter, qwen, vllm"
	_, err := Parse("x.yaml", []byte("model: m\nstrict: mystral\nagents: [{rules: [{name: a, say: fine}]}]"))
	if want := `x.yaml:2:9: strict: "mystral" is not known; did you mean mistral?`; err == nil || err.Error() != want {
		t.Errorf("Parse = %v\nwant    %s", err, want)
	}
	s, err := Parse("x", []byte("agents: [{rules: [{name: a, say: fine}]}]"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Strict("mystral"); !errors.Is(err, team.InvalidArgument) || team.HintOf(err) != "known are "+known {
		t.Errorf("Strict = %v, hint %q", err, team.HintOf(err))
	}
	if Check("mystral", []byte("{}")) == nil {
		t.Error("Check knows mystral")
	}
}

// With ids of nine letters and digits the script goes on from step to step too, and
// a malformed call does not count as played.
func TestNineCharacterIDs(t *testing.T) {
	s, err := Parse("test", []byte(`
strict: mistral
agents: [{rules: [{name: a, steps: [{calls: [{tool: one}], fault: {malformed: true}}, {calls: [{tool: two, args: {was: '{{result "a" 0}}'}}]}]}]}]`))
	if err != nil {
		t.Fatal(err)
	}
	a := &actor{script: s, who: asker{"x", "y", "z"}}
	a.hears("go")
	first := a.calls(t, "one {}")
	if id := first.calls[0].ID; !nineAlnum.MatchString(id) {
		t.Errorf("id %q", id)
	}
	cut := first.spoiled(fault{Malformed: true}).calls[0]
	if !nineAlnum.MatchString(cut.ID) || len((message{ToolCalls: []toolCall{cut}}).callsOf("a", 0)) > 0 {
		t.Errorf("the malformed call has the id %q", cut.ID)
	}
	a.answered("fine")
	a.calls(t, `two {"was":"fine"}`)
}

func TestStrictOverridesTheScript(t *testing.T) {
	s, err := Parse("test", []byte("agents: [{rules: [{name: a, say: fine}]}]"))
	if err != nil {
		t.Fatal(err)
	}
	strict, err := s.Strict("llamacpp")
	if err != nil {
		t.Fatal(err)
	}
	for script, want := range map[*Script]int{s: 200, strict: 500} {
		w := httptest.NewRecorder()
		NewHandler(script, nil).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "POST", "/v1/chat/completions",
			strings.NewReader(`{"model":"m","messages":[`+system+`,`+hello+`,`+hello+`]}`)))
		if w.Code != want {
			t.Errorf("status %d, want %d", w.Code, want)
		}
	}
}

// A refusal with a body is played before the step, or in the middle of its stream.
func TestPlayedRefusals(t *testing.T) {
	for name, told := range played {
		h := handlerOf(t, "agents: [{rules: [{name: a, steps: [{say: fine and dandy, fault: {error: "+name+"}}]}]}]")
		w := post(t, h, "", hello)
		if w.Code != told.status || !strings.Contains(w.Body.String(), `"message":"`+told.message) || !strings.Contains(w.Body.String(), `"code":"`+told.code+`"`) {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
		if w := post(t, h, "", hello); w.Code != 200 {
			t.Errorf("%s a second time: %d", name, w.Code)
		}
	}
	h := handlerOf(t, "agents: [{rules: [{name: a, steps: [{say: fine and dandy, fault: {error: context_length, in_stream: true}}]}]}]")
	w := post(t, h, `"stream":true,`, hello)
	body := w.Body.String()
	if w.Code != 200 || !strings.Contains(body, `"content":"`) || !strings.Contains(body, `data: {"error":{"code":"context_length_exceeded"`) ||
		strings.Contains(body, "d dandy") || strings.Contains(body, `"finish_reason":"stop"`) || strings.Contains(body, "[DONE]") {
		t.Errorf("in the stream: %d %s", w.Code, body)
	}
	for fault, want := range map[string]string{
		"{error: nope}":                                    `error: "nope" is not known; allowed: bad_key, content_filter,`,
		"{in_stream: true, delay: 1s}":                     "in_stream has no meaning without error",
		"{error: quota, status: 500}":                      "only one of status, error",
		"{error: quota, in_stream: true, retry_after: 1s}": "retry_after has no meaning",
	} {
		_, err := Parse("x", []byte("agents: [{rules: [{name: a, steps: [{say: x, fault: "+fault+"}]}]}]"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", fault, err, want)
		}
	}
}
