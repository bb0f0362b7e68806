package model

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// The messages are those of the public reports that profiles.go names.
func TestLearned(t *testing.T) {
	start := func(name string) profile {
		i := slices.IndexFunc(profiles, func(p profile) bool { return p.Name == name })
		return profiles[i].with(map[string]json.RawMessage{"reasoning_effort": json.RawMessage(`"high"`), "parallel_tool_calls": json.RawMessage("true")})
	}
	for name, tt := range map[string]struct {
		profile, message string
		check            func(p profile) bool // of what is learned; nil: nothing is
	}{
		"what is advised":          {"anthropic", `"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.`, nil},
		"limit renamed":            {unknownEndpoint, "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.", func(p profile) bool { return p.LimitField == "max_completion_tokens" }},
		"limit unnamed":            {unknownEndpoint, "Unrecognized request argument supplied: max_tokens", func(p profile) bool { return p.LimitField == "max_completion_tokens" }},
		"limit back":               {"openai", `[{"type":"extra_forbidden","loc":["body","max_completion_tokens"],"msg":"Extra inputs are not permitted"}]`, func(p profile) bool { return p.LimitField == "max_tokens" }},
		"limit of a model":         {unknownEndpoint, "unknown field max_completion_tokens", func(p profile) bool { return p.limitFieldFor("gpt-5") == "max_tokens" }},
		"highest limit, OpenAI":    {"openai", "max_tokens is too large: 32000. This model supports at most 16384 completion tokens, whereas you provided 32000.", func(p profile) bool { return p.MostOutput == 16384 }},
		"highest limit, DeepSeek":  {"deepseek", "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]", func(p profile) bool { return p.MostOutput == 8192 }},
		"highest limit, Anthropic": {"anthropic-compat", "max_tokens: 32000 > 8192, which is the maximum allowed number of output tokens for claude-x", func(p profile) bool { return p.MostOutput == 8192 }},
		"highest limit, Groq":      {"groq", "`max_completion_tokens` must be less than or equal to `4096`, the maximum value for `max_completion_tokens` is less than the `context_window` for this model", func(p profile) bool { return p.MostOutput == 4096 }},
		"usage":                    {unknownEndpoint, `[{"type":"extra_forbidden","loc":["body","stream_options","include_usage"],"msg":"Extra inputs are not permitted"}]`, func(p profile) bool { return slices.Equal(p.Drop, []string{"stream_options"}) }},
		"usage, flattened":         {unknownEndpoint, "body.stream_options: Extra inputs are not permitted", func(p profile) bool { return slices.Equal(p.Drop, []string{"stream_options"}) }},
		"reasoning_content": {unknownEndpoint, "'messages.2' : for 'role:assistant' the following must be satisfied[('messages.2' : property 'reasoning_content' is unsupported)]",
			func(p profile) bool { return !p.echoes("reasoning_content") && p.echoes("reasoning") }},
		"reasoning, a plain word":    {unknownEndpoint, "property 'reasoning' is unsupported", func(p profile) bool { return !p.echoes("reasoning") && p.echoes("reasoning_content") }},
		"reasoning in a path":        {"openrouter", "messages.2.assistant.reasoning: property 'messages.2.assistant.reasoning' is unsupported", func(p profile) bool { return !p.echoes("reasoning") }},
		"reasoning is not to be had": {"openai", "this model is not for reasoning and does not support it", nil},
		"what must be there is not taken": {"deepseek", "messages[2].reasoning_content: Extra inputs are not permitted",
			func(p profile) bool { return p.Always == "" && !p.echoes("reasoning_content") }},
		"reasoning must be there": {"openrouter", "The `reasoning_content` in the thinking mode must be passed back to the API.", func(p profile) bool { return p.Always == "reasoning_content" && p.echoes("reasoning_content") }},
		"reasoning is missing":    {"openai", "Missing `reasoning_content` field in the assistant message at message index 2.", func(p profile) bool { return p.Always == "reasoning_content" }},
		"an extra field":          {"openai", "Unrecognized request argument supplied: reasoning_effort", func(p profile) bool { return slices.Equal(p.Drop, []string{"reasoning_effort"}) }},
		"its value":               {"openai", "Unsupported value: 'reasoning_effort' does not support 'minimal' with this model.", func(p profile) bool { return slices.Contains(p.Drop, "reasoning_effort") }},
		"parallel calls":          {"openai", "parallel_tool_calls is not supported", func(p profile) bool { return slices.Equal(p.Drop, []string{"parallel_tool_calls"}) }},
		"cache marks":             {"litellm", "messages.0.content.0.cache_control: Extra inputs are not permitted", func(p profile) bool { return p.CacheMarks == noMarks }},
		"the other wire": {"unknown", "Function tools with reasoning_effort are not supported for gpt-5.6 in /v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort to 'none'.",
			func(p profile) bool { return p.Wire == responses && len(p.Drop) == 0 }},
		"ids":                 {unknownEndpoint, "Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9.", func(p profile) bool { return p.CallIDs == nineID }},
		"order of roles":      {unknownEndpoint, "Unexpected role 'user' after role 'tool'", func(p profile) bool { return p.AfterTool != "" }},
		"alternating roles":   {"vllm", "Conversation roles must alternate user/assistant/user/assistant/...", func(p profile) bool { return p.MergeUsers && p.AfterTool != "" && p.BeforeTurn != "" }},
		"no system role":      {unknownEndpoint, "System role not supported", func(p profile) bool { return p.SystemRole == "user" && p.MergeUsers }},
		"no empty content":    {unknownEndpoint, "messages: text content blocks must be non-empty", func(p profile) bool { return p.WithCalls == absent }},
		"content must be":     {"anthropic-compat", "messages[2]: missing field `content`", func(p profile) bool { return p.WithCalls == emptyText }},
		"content is text":     {"openai", "messages[1]: invalid type: sequence, expected a string", func(p profile) bool { return !p.Images }},
		"no images at Claude": {"anthropic", "This model does not support image input.", func(p profile) bool { return !p.Images && p.CacheMarks == onBlocks }},
		"no images":           {"openai", "This model does not support image input.", func(p profile) bool { return !p.Images }},
		"keywords of schemas": {unknownEndpoint, `Invalid JSON payload received. Unknown name "additionalProperties" at 'tools[0].function_declarations[0].parameters': Cannot find field. Unknown name "$schema" at 'tools[0]'`, func(p profile) bool { return slices.Equal(p.SchemaDrop, []string{"additionalProperties", "$schema"}) }},
		"bare objects":        {unknownEndpoint, "parameters.properties[metadata].properties: should be non-empty for OBJECT type", func(p profile) bool { return p.SchemaFull }},
		"lists of types":      {unknownEndpoint, `Unknown name "type" at 'tools[0].function_declarations[0].parameters': Proto field is not repeating, cannot start list.`, func(p profile) bool { return p.SchemaOneType }},

		"a prompt that is too long": {unknownEndpoint, "'max_tokens' or 'max_completion_tokens' is too large: 8000. This model's maximum context length is 8192 tokens and your request has 4000 input tokens", nil},
		"a filter":                  {unknownEndpoint, "The response was filtered due to the prompt triggering content management policy.", nil},
		"something else":            {unknownEndpoint, "Invalid value for temperature", nil},
		"known already":             {"mistral", "Unexpected role 'user' after role 'tool'", nil},
	} {
		t.Run(name, func(t *testing.T) {
			before := start(tt.profile)
			got, ok := adapted(before, apiError{status: http.StatusBadRequest, message: tt.message})
			if ok != (tt.check != nil) {
				t.Fatalf("learned something: %v; %+v", ok, got)
			}
			if !ok {
				if !reflect.DeepEqual(got, before) {
					t.Errorf("nothing learned, but %+v", got)
				}
				return
			}
			if !tt.check(got) {
				t.Errorf("learned %+v", got)
			}
			if again, ok := adapted(got, apiError{message: tt.message}); ok {
				t.Errorf("learned again: %+v", again)
			}
			if !reflect.DeepEqual(before, start(tt.profile)) {
				t.Error("the table has changed")
			}
		})
	}
}

// What real services say, whole, is put before all lessons: the one that is meant comes first
// and teaches something, and of what is about nothing that can be learned there is none.
func TestLessonsOfRealServices(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("testdata", "refusals.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	unused := map[string]bool{}
	for _, l := range adaptations {
		unused[l.name] = true
	}
	i := slices.IndexFunc(profiles, func(p profile) bool { return p.Name == unknownEndpoint })
	for line := range strings.Lines(string(data)) {
		var row struct {
			Service, Lesson string
			Status          int
			Body            json.RawMessage
		}
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		e := parseError(row.Body)
		var about []string
		for _, l := range adaptations {
			if l.about.MatchString(strings.ToLower(e.message + " " + e.code)) {
				about = append(about, l.name)
			}
		}
		before := profiles[i].with(map[string]json.RawMessage{"thinking": json.RawMessage(`{}`), "reasoning_effort": json.RawMessage(`"low"`), "temperature": json.RawMessage("1")})
		switch row.Lesson { // what is learned must be otherwise before
		case "limit back":
			before.LimitField = "max_completion_tokens"
		case "plain content":
			before.Images = true
		case "content beside calls":
			before.WithCalls = absent
		case "empty turn", "empty content":
			before.EmptyTurn = ""
		}
		_, taught := adapted(before, e)
		if first := append(about, "")[0]; first != row.Lesson || taught != (row.Lesson != "") {
			t.Errorf("%s, %s: lessons %q are about it, and something was learned: %v; want %q\n%s", row.Service, e.message, about, taught, row.Lesson, row.Body)
		}
		delete(unused, row.Lesson)
	}
	if len(unused) > 0 {
		t.Errorf("no service teaches %v", unused)
	}
}

// Many calls may be refused at once for one and the same thing.
func TestLearnAtOnce(t *testing.T) {
	d := dialectOf(t, unknownEndpoint, "m", Options{})
	learnt := make(chan bool)
	for range 8 {
		go func() {
			_, err := d.encode(nasty("m"))
			learnt <- d.learn(apiError{status: 400, message: "Unexpected role 'user' after role 'tool'"}) && err == nil
		}()
	}
	n := 0
	for range 8 {
		if <-learnt {
			n++
		}
	}
	if n != 1 {
		t.Errorf("learned %d times, want once", n)
	}
}
