package rehearsal

import (
	"maps"
	"net/http"
	"slices"
)

// played are the refusals that a script can play, in OpenAI's words.
var played = map[string]*refusal{
	"bad_key":        {http.StatusUnauthorized, "invalid_request_error", "invalid_api_key", "Incorrect API key provided."},
	"no_credit":      {http.StatusPaymentRequired, "unknown_error", "invalid_request_error", "Insufficient Balance"},
	"quota":          {http.StatusTooManyRequests, "insufficient_quota", "insufficient_quota", "You exceeded your current quota, please check your plan and billing details."},
	"rate_limit":     {http.StatusTooManyRequests, "requests", "rate_limit_exceeded", "Rate limit reached for requests."},
	"unknown_model":  {http.StatusNotFound, "invalid_request_error", "model_not_found", "The model does not exist or you do not have access to it."},
	"context_length": {http.StatusBadRequest, "invalid_request_error", "context_length_exceeded", "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens. Please reduce the length of the messages."},
	"content_filter": {http.StatusBadRequest, "invalid_request_error", "content_filter", "The response was filtered due to the prompt triggering the content management policy."},
	// Groq: the model's output could not be parsed as a call.
	"tool_use_failed": {http.StatusBadRequest, "invalid_request_error", "tool_use_failed", "Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details."},
	"invalid_request": {http.StatusBadRequest, "invalid_request_error", "invalid_value", "Invalid 'messages[3].content'."},
	"unprocessable":   {http.StatusUnprocessableEntity, "invalid_request_error", "unprocessable_entity", "Input should be a valid string"},
	"overloaded":      {529, "overloaded_error", "overloaded_error", "Overloaded"},
	"server_error":    {http.StatusInternalServerError, "server_error", "server_error", "The server had an error while processing your request."},
}

func playedNames() []string { return slices.Sorted(maps.Keys(played)) }

// refusal is an error of an endpoint, in OpenAI's words.
type refusal struct {
	status     int
	kind, code string
	message    string
}

func (r *refusal) Error() string { return r.message }

func (r *refusal) body() any {
	var code any
	if r.code != "" {
		code = r.code
	}
	return map[string]any{"error": map[string]any{"message": r.message, "type": r.kind, "param": nil, "code": code}}
}
