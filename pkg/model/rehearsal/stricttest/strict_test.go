package stricttest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"agentteam/pkg/model/rehearsal"
)

const system = `{"role":"system","content":"You are coder-1, role coder, in team red."}`

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
		"openai: tools of the newest":   {"openai", strings.Replace(tool(`{"type":"object"}`), `"m"`, `"gpt-5.6"`, 1), 400, "Please use /v1/responses instead."},
		"openai: tools, no thinking":    {"openai", strings.Replace(tool(`{"type":"object"}`), `"m"`, `"gpt-5.6","reasoning_effort":"none"`, 1), 200, ""},
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
		"anthropic: empty turn":         {"anthropic-compat", list(question, empty, question), 400, "text content blocks must be non-empty"},
		"anthropic: empty beside calls": {"anthropic-compat", list(question, called, result), 400, "messages.2: text content blocks"},
		"anthropic: absent":             {"anthropic-compat", list(question, bare, result), 200, ""},
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
			w := httptest.NewRecorder()
			NewHandler(tt.strict, anything, nil).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "POST", "/v1/chat/completions", strings.NewReader(tt.body)))
			if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.want) {
				t.Errorf("answer %d %s, want %d %s", w.Code, w.Body, tt.status, tt.want)
			}
			if err := Check(tt.strict, []byte(tt.body)); (err == nil) != (tt.status == http.StatusOK) {
				t.Errorf("Check = %v", err)
			}
		})
	}
}

// With ids of nine letters and digits the script continues from step to step too.
func TestNineCharacterIDs(t *testing.T) {
	s, err := rehearsal.Parse("test", []byte(`
agents: [{rules: [{name: a, steps: [{calls: [{tool: one}]}, {calls: [{tool: two, args: {was: '{{result "a" 0}}'}}]}]}]}]`))
	if err != nil {
		t.Fatal(err)
	}
	h := NewHandler("mistral", s, nil)
	ask := func(more string) toolCall {
		w := httptest.NewRecorder()
		body := `{"model":"m","messages":[` + system + `,{"role":"user","content":"go"}` + more + `]}`
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "POST", "/v1/chat/completions", strings.NewReader(body)))
		var answer struct{ Choices []struct{ Message message } }
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || len(answer.Choices) == 0 || len(answer.Choices[0].Message.ToolCalls) != 1 {
			t.Fatalf("%d: %s", w.Code, w.Body)
		}
		return answer.Choices[0].Message.ToolCalls[0]
	}
	first := ask("")
	if !nineAlnum.MatchString(first.ID) {
		t.Errorf("id %q", first.ID)
	}
	second := ask(fmt.Sprintf(`,{"role":"assistant","content":"","tool_calls":[{"id":%q,"type":"function","function":{"name":"one","arguments":"{}"}}]},{"role":"tool","tool_call_id":%q,"content":"fine"}`, first.ID, first.ID))
	if second.Function.Name != "two" || second.ID == first.ID {
		t.Errorf("the second call is %+v after %+v", second, first)
	}
}
