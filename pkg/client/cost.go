package client

import (
	"context"

	"agentteam/pkg/usage"
)

// Usage is what model calls have used, in tokens.
type Usage struct {
	ModelCalls       int      `json:"model_calls"`       // those that gave no turn included
	PromptTokens     int      `json:"prompt_tokens"`     // all input
	CachedTokens     int      `json:"cached_tokens"`     // the part of it that the endpoint had cached
	CompletionTokens int      `json:"completion_tokens"` // all output
	ReasoningTokens  int      `json:"reasoning_tokens"`  // the part of it that was reasoning
	TotalTokens      int      `json:"total_tokens"`      // prompt and completion
	WastedTokens     int      `json:"wasted_tokens"`     // of tries that were thrown away; not in the total
	Cost             *float64 `json:"cost"`              // the part that is known, in the currency of the prices; null: nothing is
	Currency         string   `json:"currency"`          // of Cost; "" if the prices name none
	UnpricedCalls    int      `json:"unpriced_calls"`    // whose price is not known
	Estimated        bool     `json:"estimated"`         // at least in part a guess, of an endpoint that did not tell
}

// UsageOf is a sum as it is printed.
func UsageOf(s usage.Sum) Usage {
	return Usage{
		ModelCalls:       s.Calls,
		PromptTokens:     s.PromptTokens,
		CachedTokens:     s.CachedTokens,
		CompletionTokens: s.CompletionTokens,
		ReasoningTokens:  s.ReasoningTokens,
		TotalTokens:      s.Tokens(),
		WastedTokens:     s.Wasted(),
		Cost:             s.Known(),
		Currency:         s.Currency,
		UnpricedCalls:    s.Unpriced,
		Estimated:        s.Estimated,
	}
}

// Usage sums up what the goal has used so far, from the members' journals.
func (g *Goal) Usage(ctx context.Context) (Usage, error) {
	t, err := usage.Read(ctx, g.team.team, g.log, usage.ByAgent)
	return UsageOf(t.Total), err
}

// Cost sums up what the team's model calls have used since it was made, from the
// members' journals: as long as those are.
func (t *Team) Cost(ctx context.Context, by usage.By) (usage.Table, error) {
	return usage.Read(ctx, t.team, 1, by)
}
