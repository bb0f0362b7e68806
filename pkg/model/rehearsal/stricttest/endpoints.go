package stricttest

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// strictness is the refusals of one kind of endpoint, beyond those of all.
type strictness struct {
	demands []demand
	body    func(*refusal) any // its errors, as JSON

	noContent bool // content may be null or absent beside calls
	noSchema  bool // a tool may have no parameters
	nine      bool // the ids of its calls are nine letters and digits
}

// demand is a reason to refuse a request.
type demand struct {
	broken func(*request) (where string, bad bool)
	refusal
}

// refusal is an error of an endpoint, in its words; {} in the message is the place of the fault.
type refusal struct {
	status     int
	kind, code string
	message    string
	where      string
}

func (r *refusal) Error() string { return strings.ReplaceAll(r.message, "{}", r.where) }

// refusedBy returns the first demand that r breaks, or nil.
func (s *strictness) refusedBy(r *request) *refusal {
	for _, d := range s.demands {
		if where, bad := d.broken(r); bad {
			broken := d.refusal
			broken.where = where
			return &broken
		}
	}
	return nil
}

// strictest is the table: the refusals of each kind in public reports, with the words of its errors. A common refusal,
// such as that of an empty turn, is repeated where an endpoint has its own words for it.
var strictest = map[string]*strictness{
	"openai":        openAI,
	"azure":         openAI,
	"azure-classic": {body: openAIError, noContent: true, demands: openAIDemands}, // has no Responses
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
	"anthropic-compat": {body: openAIError, noContent: true, demands: []demand{
		{emptyTurn, refusal{http.StatusBadRequest, "invalid_request_error", "invalid_request_error", "{}: text content blocks must be non-empty", ""}},
		{emptyBeside, refusal{http.StatusBadRequest, "invalid_request_error", "invalid_request_error", "{}: text content blocks must be non-empty", ""}},
		{badCallID(`^[a-zA-Z0-9_-]+$`), refusal{http.StatusBadRequest, "invalid_request_error", "invalid_request_error", "{}: tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'", ""}},
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

var openAI = &strictness{body: openAIError, noContent: true, demands: append([]demand{
	{responsesOnly, refusal{http.StatusBadRequest, "invalid_request_error", "", "Function tools with reasoning_effort are not supported for {} in /v1/chat/completions. Please use /v1/responses instead.", ""}},
}, openAIDemands...)}

var openAIDemands = []demand{
	{renamedLimit, refusal{http.StatusBadRequest, "invalid_request_error", "unsupported_parameter", "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.", ""}},
	{otherFields(openAIFields...), refusal{http.StatusBadRequest, "invalid_request_error", "unknown_parameter", "Unrecognized request argument supplied: {}", ""}},
	{badCallID(`^.{1,40}$`), refusal{http.StatusBadRequest, "invalid_request_error", "string_above_max_length", "Invalid '{}': string too long. Expected a string with maximum length 40, but got a longer one instead.", ""}},
	{badName(regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)), refusal{http.StatusBadRequest, "invalid_request_error", "invalid_value", "Invalid '{}.function.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.", ""}},
}

// templates are servers that run the model's own template; some templates require alternating roles.
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
