package model

import (
	"net/http"
	"strconv"
	"strings"
)

// advices maps each reason to its advice.
var advices = map[Reason]Advice{
	RateLimited: TryAgain, ServerError: TryAgain, Connection: TryAgain, Incomplete: TryAgain, Silent: TryAgain,
	BadKey: Park, NoCredit: Park, UnknownModel: Park, NoEndpoint: Park, NoTools: Park,
	ContextLength: Compact,
	ContentFilter: GiveUp, FailedCall: GiveUp, InvalidRequest: GiveUp,
}

// judge returns why a call was refused and the advice. status is the answer's; below 300 the error came inside the
// answer, and the status in the error counts.
func judge(status int, e apiError) (Reason, Advice) {
	if status < 300 {
		status = e.status
	}
	r := reasonOf(status, e)
	return r, advices[r]
}

// The words of endpoints for each reason, in the code, type or text of an error, in lower case.
var (
	// OpenAI, Azure, OpenRouter, DeepSeek ("Content Exists Risk"), DashScope.
	saysFilter = lazy(`content_filter|content_policy|content management policy|responsibleaipolicy|\bmoderation\b|was flagged|` +
		`invalid_prompt|content exists risk|data_?inspection_?failed|inappropriate content|safety_?(system|block|violation)`)

	// Groq: the model's output did not parse as a call, or called an unknown tool; a matter of luck
	// (pydantic/pydantic-ai#2774, #4354).
	saysFailedCall = lazy(`tool_use_failed|tool call validation failed|failed_generation|failed to parse tool call`)

	// OpenAI, Azure, vLLM, llama.cpp, Anthropic, Gemini, Mistral, SGLang, xAI, Bedrock,
	// TGI, DashScope, Moonshot, Z.AI, LM Studio, Copilot.
	saysTooLong = lazy(`context_length_exceeded|exceed_context_size|model_max_prompt_tokens_exceeded|request_too_large|` +
		`maximum context length|model'?s context length|exceeds? (the|this model'?s) (available |maximum )?context|context (window|length|limit|size)\b.{0,40}exceed|exceed.{0,40}\bcontext (window|length|limit|size)\b|greater than the context length|` +
		`(prompt|input) is too long|input is longer|prompt (exceeds|too long)|maximum (prompt|model) length|loaded with context length|(input|prompt) token count|exceeded model token limit|` +
		`range of input length|tokens. \+ .max_new_tokens. must be|reduce the length of (the|your)`)
	// A request that is larger than a whole minute's allowance; waiting does not help.
	saysTooLarge = lazy(`request too large`)
	// Not with 429, where Bedrock and Cerebras mean the tokens of a minute.
	saysManyTokens = lazy(`too many (input |prompt )?tokens`)

	saysNoCredit = lazy(`insufficient_quota|exceeded_current_quota|billing_(hard_limit|not_active)|insufficient[ _](balance|credits?|funds)|` +
		`credit balance is too low|out of credits|no credits|arrearage|free_?tier_?only|free tier of the model|payment required|spending limit`)
	// Gemini says this of each limit of a minute too, and then how long to wait.
	saysQuota     = lazy(`exceeded your current quota`)
	saysExhausted = lazy(`resource_exhausted`)

	saysBadKey = lazy(`invalid_api_key|invalid_authentication|authentication_error|\bpermission_(error|denied)|account_deactivated|\bunauthori[sz]ed\b|unauthenticated|` +
		`(incorrect|invalid|no|missing) api[ -]?key|api[ -]?key (is )?(not valid|invalid|expired|missing|not found)|api_key_invalid|invalid authentication`)

	saysNoModel = lazy(`model_not_(found|available)|not_found_error|deploymentnotfound|invalid_model|unknown_model|` +
		`\b(invalid|unknown|unsupported|no such) model\b|is not a valid model\b|\bmodel\b.{0,120}\b(not found|does not exist|not exist|is not available)`)

	// Ollama, vLLM, llama.cpp (with 500), OpenRouter (with 404).
	saysNoTools = lazy(`does not support (tools|tool use|tool calling|function calling)\b|requires --enable-auto-tool-choice|tools param requires --jinja|no endpoints found that support tool use`)

	saysRateLimit = lazy(`rate_?limit|rate limit|resource_exhausted|throttl|too many requests|token_quota_exceeded|limit_requests|\b429\b`)
	saysInvalid   = lazy(`invalid_?request|invalid_?argument|bad_?request`)
)

// reasonOf judges by the words before it judges by the status: proxies wrap one error into another, and a 400 may mean
// anything.
func reasonOf(status int, e apiError) Reason {
	// The rest may quote the conversation, which may contain any words.
	words := strings.ToLower(e.code + " " + e.kind + " " + e.message[:min(len(e.message), 2000)])
	says := func(what pattern) bool { return what.MatchString(words) }
	limited := status == http.StatusTooManyRequests
	refused := status < 500 && !limited // or no status at all

	switch {
	case status == http.StatusUnauthorized:
		return BadKey
	case status == http.StatusPaymentRequired, says(saysNoCredit), says(saysQuota) && e.retryAfter == 0 && !says(saysExhausted):
		return NoCredit
	case !limited && says(saysNoTools):
		return NoTools
	case refused && says(saysFilter):
		return ContentFilter
	case refused && says(saysFailedCall):
		return FailedCall
	case status == http.StatusRequestEntityTooLarge, says(saysTooLong), says(saysTooLarge), !limited && says(saysManyTokens):
		return ContextLength
	case status == http.StatusNotImplemented, status == http.StatusMethodNotAllowed, status == http.StatusNotFound && e.page:
		return NoEndpoint // what web servers answer that know nothing of models
	case status == http.StatusForbidden, refused && says(saysBadKey):
		return BadKey
	case status == http.StatusNotFound, status == http.StatusGone, refused && says(saysNoModel):
		return UnknownModel
	case limited:
		return RateLimited
	case status == http.StatusRequestTimeout, status == http.StatusConflict, status == http.StatusTooEarly, status >= 500:
		return ServerError
	case status >= 300 && status < 400:
		return NoEndpoint // not what stands at the address of one
	case status >= 400:
		return InvalidRequest
	case says(saysRateLimit): // from here on it is an error inside an answer that names no status
		return RateLimited
	case saysInvalid.MatchString(strings.ToLower(e.code + " " + e.kind)):
		return InvalidRequest
	}
	return ServerError
}

// windowWords match the model's window in an error.
var windowWords = []pattern{
	lazy(`(?i)maximum (?:context|prompt|input|model) length (?:is|of) (?:only )?([\d,_]+)`),
	lazy(`(?i)([\d,_]+)(?: tokens?)? maximum context length`),
	lazy(`(?i)> ?([\d,_]+) maximum`),
	lazy(`(?i)context limit: .{0,60}> ?([\d,_]+)`),
	lazy(`(?i)maximum number of (?:input )?tokens(?: allowed)? \(?([\d,_]+)`),
	lazy(`(?i)context (?:size|length|window)(?: limit)?(?: is| of|:)? ?(?:only )?\(?([\d,_]+)`),
	lazy(`(?i)token count .{0,60}limit of ([\d,_]+)`),
	lazy(`(?i)model token limit: ([\d,_]+)`),
	lazy(`(?i)range of input length should be \[\d+, ?([\d,_]+)`),
	lazy(`(?i)max_new_tokens.? must be <= ([\d,_]+)`),
}

// windowIn returns the window in tokens that a ContextLength error names, or 0.
func windowIn(message string) int {
	for _, w := range windowWords {
		if m := w.FindStringSubmatch(message); m != nil {
			n, err := strconv.Atoi(strings.NewReplacer(",", "", "_", "").Replace(m[1]))
			if err == nil && n >= 256 && n < 1<<30 {
				return n
			}
		}
	}
	return 0
}
