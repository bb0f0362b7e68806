package rehearsal

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"agentteam/pkg/team"
)

// strictness is what the endpoint of one kind refuses, beyond what all do.
type strictness struct {
	demands []demand
	body    func(*refusal) any // its errors, as JSON

	noContent bool // content may be null or absent beside calls
	noSchema  bool // a tool may have no parameters
	nine      bool // the ids of its calls are nine letters and digits
}

// demand is one thing that is refused.
type demand struct {
	broken func(*request) (where string, bad bool)
	refusal
}

// refusal is an error of an endpoint, in its words; {} in the message is where the
// request is wrong.
type refusal struct {
	status     int
	kind, code string
	message    string
	where      string
}

func (r *refusal) Error() string { return strings.ReplaceAll(r.message, "{}", r.where) }

// Strict returns s for an endpoint that is as strict as those of the named kind, and
// words its errors alike. Errors: [team.InvalidArgument], which names those known.
func (s *Script) Strict(name string) (*Script, error) {
	strict, ok := strictest[name]
	if !ok {
		return nil, team.Errorf(team.InvalidArgument, "no endpoint called %q is known to be strict in its own way", name).
			WithHint("known are %s", strings.Join(strictNames(), ", "))
	}
	copied := *s
	copied.strict = strict
	return &copied, nil
}

func strictNames() []string { return slices.Sorted(maps.Keys(strictest)) }

// Check returns why an endpoint of the named kind refuses body, a chat completion
// request, or nil if it takes it; name "" stands for no special kind.
func Check(name string, body []byte) error {
	strict, ok := strictest[name]
	if !ok && name != "" {
		return fmt.Errorf("no endpoint called %q is known to be strict in its own way", name)
	}
	_, err := parseRequest(body, strict)
	return err
}

// refusedBy returns the first demand that r breaks, or nil.
func (s *strictness) refusedBy(r *request) *refusal {
	if s == nil {
		return nil
	}
	for _, d := range s.demands {
		if where, bad := d.broken(r); bad {
			told := d.refusal
			told.where = where
			return &told
		}
	}
	return nil
}

// strictest is the table: what public reports tell of each, with the words of its
// errors. What all refuse, such as an empty turn, stands here again where an endpoint
// has words of its own for it.
var strictest = map[string]*strictness{
	"openai":        openAI,
	"azure":         openAI,
	"azure-classic": openAI,
	"vllm":          {body: openAIError, demands: []demand{alternation(http.StatusBadRequest, "BadRequestError", twoUsers)}},
	"ollama":        {body: openAIError, demands: []demand{textOnly}},
	"llamacpp":      templates,
	"lmstudio":      templates,
	"litellm":       {body: openAIError, noContent: true},
	"openrouter":    {body: openAIError, demands: []demand{alternation(http.StatusBadRequest, "", twoUsers)}},
	"qwen": {body: openAIError, demands: []demand{
		alternation(http.StatusBadRequest, "invalid_request_error", twoUsers), textOnly,
	}},
	"deepseek": {body: openAIError, demands: []demand{
		{emptyTurn, refusal{http.StatusBadRequest, "invalid_request_error", "invalid_request_error", "Invalid assistant message: content or tool_calls must be set", ""}},
		{missing("reasoning_content"), refusal{http.StatusBadRequest, "invalid_request_error", "invalid_request_error", "The `reasoning_content` in the thinking mode must be passed back to the API.", ""}},
		{otherMessageFields("reasoning_content", "prefix"), unsupported("invalid_request_error")},
		textOnly,
	}},
	"gemini": {body: googleError, noContent: true, noSchema: true, demands: []demand{
		{emptyTurn, refusal{http.StatusBadRequest, "", "INVALID_ARGUMENT", "Unable to submit request because it must include at least one parts field, which describes the prompt input.", ""}},
		{emptyBeside, refusal{http.StatusBadRequest, "", "INVALID_ARGUMENT", "{}: contents.parts must not be empty.", ""}},
		{badName(regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}$`)), refusal{http.StatusBadRequest, "", "INVALID_ARGUMENT", "Invalid function name. Must start with a letter or an underscore.", ""}},
		{schemaKeyword("$schema", "$defs", "additionalProperties", "propertyNames", "patternProperties", "const", "exclusiveMinimum", "exclusiveMaximum"),
			refusal{http.StatusBadRequest, "", "INVALID_ARGUMENT", `Invalid JSON payload received. Unknown name "{}" at 'tools[0].function_declarations[0].parameters': Cannot find field.`, ""}},
		{manyTypes, refusal{http.StatusBadRequest, "", "INVALID_ARGUMENT", `Invalid JSON payload received. Unknown name "type" at 'tools[0].function_declarations[0].parameters': Proto field is not repeating, cannot start list.`, ""}},
		{bareObject, refusal{http.StatusBadRequest, "", "INVALID_ARGUMENT", "* GenerateContentRequest.tools[0].function_declarations[0].parameters.properties[{}].properties: should be non-empty for OBJECT type", ""}},
		{otherMessageFields("extra_content"), refusal{http.StatusBadRequest, "", "INVALID_ARGUMENT", `Invalid JSON payload received. Unknown name "{}": Cannot find field.`, ""}},
	}},
	"mistral": {body: mistralError, nine: true, demands: []demand{
		{otherFields("model", "messages", "tools", "stream", "max_tokens", "temperature", "top_p", "tool_choice", "parallel_tool_calls",
			"random_seed", "safe_prompt", "response_format", "stop", "n", "presence_penalty", "frequency_penalty", "prompt_mode", "reasoning_effort", "metadata"), extraForbidden},
		{otherMessageFields("prefix"), extraForbidden},
		{emptyTurn, refusal{http.StatusBadRequest, "invalid_request_error", "3240", "Assistant message must have either content or tool_calls, but not none.", ""}},
		{badID, refusal{http.StatusBadRequest, "invalid_function_call", "3280", "Tool call id was {} but must be a-z, A-Z, 0-9, with a length of 9.", ""}},
		{userAfterTool, refusal{http.StatusBadRequest, "invalid_request_message_order", "3230", "Unexpected role 'user' after role 'tool'", ""}},
	}},
	"anthropic": {body: openAIError, noContent: true, demands: []demand{
		{emptyTurn, refusal{http.StatusBadRequest, "invalid_request_error", "invalid_request_error", "{}: text content blocks must be non-empty", ""}},
		{emptyBeside, refusal{http.StatusBadRequest, "invalid_request_error", "invalid_request_error", "{}: text content blocks must be non-empty", ""}},
	}},
	"groq": {body: openAIError, demands: []demand{
		{otherMessageFields(), unsupported("invalid_request_error")},
		{otherFields(slices.Concat(openAIFields, []string{"reasoning_format", "include_reasoning"})...), refusal{http.StatusBadRequest, "invalid_request_error", "", "property '{}' is unsupported", ""}},
	}},
	"cerebras": {body: flatError, demands: []demand{
		{otherMessageFields("reasoning"), refusal{http.StatusBadRequest, "invalid_request_error", "wrong_api_format", "{}: property '{}' is unsupported", ""}},
		{otherFields(slices.Concat(openAIFields, []string{"clear_thinking", "disable_reasoning"})...), refusal{http.StatusBadRequest, "invalid_request_error", "wrong_api_format", "{}: property '{}' is unsupported", ""}},
	}},
}

var openAIFields = []string{
	"model", "messages", "tools", "stream", "stream_options", "max_completion_tokens", "max_tokens", "temperature", "top_p", "tool_choice",
	"parallel_tool_calls", "reasoning_effort", "verbosity", "service_tier", "seed", "stop", "n", "user", "metadata", "store", "response_format",
	"presence_penalty", "frequency_penalty", "prompt_cache_key", "safety_identifier", "prompt_cache_retention",
}

var openAI = &strictness{body: openAIError, noContent: true, demands: []demand{
	{renamedLimit, refusal{http.StatusBadRequest, "invalid_request_error", "unsupported_parameter", "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.", ""}},
	{otherFields(openAIFields...), refusal{http.StatusBadRequest, "invalid_request_error", "unknown_parameter", "Unrecognized request argument supplied: {}", ""}},
	{badName(toolName), refusal{http.StatusBadRequest, "invalid_request_error", "invalid_value", "Invalid '{}.function.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.", ""}},
}}

// templates are servers that run the model's own template, some of which want roles
// to alternate.
var templates = &strictness{body: openAIError, demands: []demand{
	{emptyTurn, refusal{http.StatusBadRequest, "invalid_request_error", "", "Assistant message must contain either 'content' or 'tool_calls'!", ""}},
	alternation(http.StatusInternalServerError, "server_error", userAfterTool),
	alternation(http.StatusInternalServerError, "server_error", twoUsers),
	alternation(http.StatusInternalServerError, "server_error", twoTurns),
}}

var extraForbidden = refusal{http.StatusUnprocessableEntity, "invalid_request_error", "", "Extra inputs are not permitted", ""}

var textOnly = demand{partsContent, refusal{http.StatusBadRequest, "invalid_request_error", "", "Failed to deserialize the JSON body into the target type: {}: invalid type: sequence, expected a string", ""}}

func unsupported(kind string) refusal {
	return refusal{http.StatusBadRequest, kind, "", "'{}' : for 'role:assistant' the following must be satisfied[('{}' : property is unsupported)]", ""}
}

func alternation(status int, kind string, broken func(*request) (string, bool)) demand {
	return demand{broken, refusal{status, kind, "", "Jinja Exception: After the optional system message, conversation roles must alternate user and assistant roles except for tool calls and results.", ""}}
}

// The demands themselves.

// eachMessage returns a demand on single messages; the place is the message's.
func eachMessage(broken func(m message) bool) func(*request) (string, bool) {
	return func(r *request) (string, bool) {
		i := slices.IndexFunc(r.Messages, broken)
		return fmt.Sprintf("messages.%d", i), i >= 0
	}
}

var (
	emptyTurn = eachMessage(func(m message) bool {
		return m.Role == "assistant" && len(m.ToolCalls) == 0 && strings.TrimSpace(m.Content) == ""
	})
	emptyBeside = eachMessage(func(m message) bool {
		return m.Role == "assistant" && len(m.ToolCalls) > 0 && string(m.RawContent) == `""`
	})
	partsContent = eachMessage(func(m message) bool { return len(m.RawContent) > 0 && m.RawContent[0] == '[' })

	userAfterTool = follows("tool", "user")
	twoUsers      = follows("user", "user")
	twoTurns      = follows("assistant", "assistant")
)

// follows returns the demand that no message of the second role comes right after
// one of the first.
func follows(first, second string) func(*request) (string, bool) {
	return func(r *request) (string, bool) {
		for i := 1; i < len(r.Messages); i++ {
			if r.Messages[i-1].Role == first && r.Messages[i].Role == second {
				return fmt.Sprintf("messages.%d", i), true
			}
		}
		return "", false
	}
}

// missing returns the demand that every turn of the assistant has the field.
func missing(field string) func(*request) (string, bool) {
	return eachMessage(func(m message) bool {
		_, has := m.fields[field]
		return m.Role == "assistant" && !has
	})
}

// otherFields returns the demand that the body has no fields but these.
func otherFields(known ...string) func(*request) (string, bool) {
	return func(r *request) (string, bool) {
		for _, k := range slices.Sorted(maps.Keys(r.fields)) {
			if !slices.Contains(known, k) {
				return k, true
			}
		}
		return "", false
	}
}

// otherMessageFields returns the demand that messages have no fields but the usual
// and these.
func otherMessageFields(known ...string) func(*request) (string, bool) {
	known = append(known, "role", "content", "tool_calls", "tool_call_id", "name")
	return func(r *request) (string, bool) {
		for i, m := range r.Messages {
			for _, k := range slices.Sorted(maps.Keys(m.fields)) {
				if !slices.Contains(known, k) {
					return fmt.Sprintf("messages.%d.%s.%s", i, m.Role, k), true
				}
			}
		}
		return "", false
	}
}

// eachCall returns a demand on single calls; where says the place.
func eachCall(broken func(c toolCall) bool, where func(i, k int, c toolCall) string) func(*request) (string, bool) {
	return func(r *request) (string, bool) {
		for i, m := range r.Messages {
			for k, c := range m.ToolCalls {
				if broken(c) {
					return where(i, k, c), true
				}
			}
		}
		return "", false
	}
}

var nineAlnum = regexp.MustCompile(`^[a-zA-Z0-9]{9}$`)

var badID = eachCall(func(c toolCall) bool { return !nineAlnum.MatchString(c.ID) },
	func(_, _ int, c toolCall) string { return c.ID })

func badName(pattern *regexp.Regexp) func(*request) (string, bool) {
	return eachCall(func(c toolCall) bool { return !pattern.MatchString(c.Function.Name) },
		func(i, k int, _ toolCall) string { return fmt.Sprintf("messages[%d].tool_calls[%d]", i, k) })
}

// renamedLimit: OpenAI's models since o1 know max_tokens no more.
func renamedLimit(r *request) (string, bool) {
	_, has := r.fields["max_tokens"]
	return "max_tokens", has && !strings.HasPrefix(r.Model, "gpt-4") && !strings.HasPrefix(r.Model, "gpt-3")
}

// eachSchema returns a demand on the schemas of tools and all schemas in them, as
// properties or items; the place is the property's name.
func eachSchema(broken func(s map[string]any) (string, bool)) func(*request) (string, bool) {
	var look func(name string, v any) (string, bool)
	look = func(name string, v any) (string, bool) {
		s, ok := v.(map[string]any)
		if !ok {
			return "", false
		}
		if where, bad := broken(s); bad {
			return orElse(where, name), true
		}
		properties, _ := s["properties"].(map[string]any)
		for _, k := range slices.Sorted(maps.Keys(properties)) {
			if where, bad := look(k, properties[k]); bad {
				return where, true
			}
		}
		return look(name, s["items"])
	}
	return func(r *request) (string, bool) {
		for _, t := range r.Tools {
			var schema any
			if json.Unmarshal(t.Function.Parameters, &schema) != nil {
				continue
			}
			if where, bad := look("", schema); bad {
				return where, true
			}
		}
		return "", false
	}
}

func schemaKeyword(unknown ...string) func(*request) (string, bool) {
	return eachSchema(func(s map[string]any) (string, bool) {
		i := slices.IndexFunc(unknown, func(k string) bool { _, has := s[k]; return has })
		if i < 0 {
			return "", false
		}
		return unknown[i], true
	})
}

var (
	manyTypes = eachSchema(func(s map[string]any) (string, bool) {
		_, many := s["type"].([]any)
		return "", many
	})
	bareObject = eachSchema(func(s map[string]any) (string, bool) {
		properties, _ := s["properties"].(map[string]any)
		return "", s["type"] == "object" && len(properties) == 0
	})
)

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// The shapes of errors.

func openAIError(r *refusal) any {
	return map[string]any{"error": map[string]any{"message": r.Error(), "type": r.kind, "param": nil, "code": orNull(r.code)}}
}

func flatError(r *refusal) any {
	return map[string]any{"message": r.Error(), "type": r.kind, "param": "validation_error", "code": orNull(r.code)}
}

func googleError(r *refusal) any {
	return []any{map[string]any{"error": map[string]any{"code": r.status, "message": r.Error(), "status": r.code}}}
}

// mistralError has two shapes: its own, and that of the library which checks the
// body for it.
func mistralError(r *refusal) any {
	doc := map[string]any{"object": "error", "message": r.Error(), "type": r.kind, "param": nil, "code": orNull(r.code)}
	if r.status == http.StatusUnprocessableEntity {
		loc := []any{"body"}
		for _, step := range strings.Split(r.where, ".") {
			if n, err := strconv.Atoi(step); err == nil {
				loc = append(loc, n)
				continue
			}
			loc = append(loc, step)
		}
		doc["message"] = map[string]any{"detail": []any{map[string]any{"type": "extra_forbidden", "loc": loc, "msg": r.Error()}}}
	}
	return doc
}

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}
