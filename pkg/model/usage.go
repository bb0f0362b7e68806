package model

import (
	"encoding/json"
	"strconv"
	"strings"
)

// number is a count as endpoints write it: 12, 12.0, "12" or null. Anything else, or a negative number, counts as 0.
type number int

// UnmarshalJSON never fails: an unreadable count is no reason to lose a turn.
func (n *number) UnmarshalJSON(raw []byte) error {
	const most = 1 << 40 // a float beyond the range of int converts to anything
	if i, err := strconv.Atoi(string(raw)); err == nil && i >= 0 && i < most {
		*n = number(i)
		return nil
	}
	f, err := strconv.ParseFloat(strings.Trim(string(raw), `"`), 64)
	if err != nil || !(f > 0) {
		f = 0
	}
	*n = number(min(f, most))
	return nil
}

// readUsage decodes a usage object of chat completions, Responses or Anthropic's Messages.
func readUsage(raw json.RawMessage) Usage {
	type details struct {
		Cached    number `json:"cached_tokens"`
		Written   number `json:"cache_write_tokens"`
		Reasoning number `json:"reasoning_tokens"`
		Thinking  number `json:"thinking_tokens"` // Anthropic
	}
	var w struct {
		PromptTokens     number `json:"prompt_tokens"`
		CompletionTokens number `json:"completion_tokens"`
		TotalTokens      number `json:"total_tokens"`

		InputTokens  number `json:"input_tokens"`
		OutputTokens number `json:"output_tokens"`

		PromptDetails     details `json:"prompt_tokens_details"`
		CompletionDetails details `json:"completion_tokens_details"`
		InputDetails      details `json:"input_tokens_details"`
		OutputDetails     details `json:"output_tokens_details"`

		CacheHit      number `json:"prompt_cache_hit_tokens"` // DeepSeek
		CacheRead     number `json:"cache_read_input_tokens"` // Anthropic, and proxies before it
		CacheCreation number `json:"cache_creation_input_tokens"`
	}
	if json.Unmarshal(raw, &w) != nil {
		return Usage{}
	}
	first := func(ns ...number) int {
		for _, n := range ns {
			if n > 0 {
				return int(n)
			}
		}
		return 0
	}
	u := Usage{
		PromptTokens:     first(w.PromptTokens, w.InputTokens),
		CompletionTokens: first(w.CompletionTokens, w.OutputTokens),
		CachedTokens:     first(w.PromptDetails.Cached, w.InputDetails.Cached, w.CacheHit, w.CacheRead),
		WrittenTokens:    first(w.PromptDetails.Written, w.InputDetails.Written, w.CacheCreation),
		ReasoningTokens:  first(w.CompletionDetails.Reasoning, w.OutputDetails.Reasoning, w.OutputDetails.Thinking),
	}
	if w.PromptTokens == 0 { // Anthropic's own form counts what is cached beside the input
		u.PromptTokens += int(w.CacheRead + w.CacheCreation)
	}
	// Gemini and xAI leave reasoning out of the completion, but not out of the total.
	if over := int(w.TotalTokens) - u.PromptTokens - u.CompletionTokens; over > 0 && u.PromptTokens > 0 {
		u.CompletionTokens += over
		u.ReasoningTokens = max(u.ReasoningTokens, over)
	}
	u.CachedTokens = min(u.CachedTokens, u.PromptTokens)
	u.WrittenTokens = min(u.WrittenTokens, u.PromptTokens-u.CachedTokens)
	u.ReasoningTokens = min(u.ReasoningTokens, u.CompletionTokens)
	return u
}

// estimate returns the cost of a try without a turn: a request and the received part of an answer, in bytes.
func estimate(request, answer int) Usage {
	return Usage{WastedPrompt: tokensIn(request), WastedCompletion: tokensIn(answer), Estimated: true}
}

// thrownAway returns the cost of a try with the usage u when it broke off. A count of the answer that was reported
// before its text is too low.
func thrownAway(u Usage, request, answer int) Usage {
	guess := estimate(request, answer)
	u = completed(u, request, answer)
	return Usage{
		WastedPrompt: u.PromptTokens, WastedCompletion: max(u.CompletionTokens, guess.WastedCompletion),
		Estimated: u.Estimated || u.CompletionTokens < guess.WastedCompletion,
	}
}

// completed returns u with estimates in place of missing counts.
func completed(u Usage, request, answer int) Usage {
	guess := estimate(request, answer)
	if u.PromptTokens == 0 {
		u.PromptTokens, u.Estimated = guess.WastedPrompt, true
	}
	if u.CompletionTokens == 0 && answer > 0 {
		u.CompletionTokens, u.Estimated = guess.WastedCompletion, true
	}
	return u
}
