package client

import (
	"context"

	"agentteam/pkg/store/usage"
	"agentteam/pkg/team"
)

// Usage is the token usage of model calls.
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

// UsageOf returns a sum as it is printed.
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

// Usage returns the goal's token usage so far, from the members' journals.
func (g *Goal) Usage(ctx context.Context) (Usage, error) {
	t, err := usage.Read(ctx, g.team.team, g.log, 0)
	return UsageOf(t.Total), err
}

// Cost sums up the team's model calls from the members' journals, for as long as those are kept.
// Those of a goal, by its number, are the calls from when it was set until the next one was; 0 is
// all since the team was made, -1 the newest goal. The table has a row for each name by the first
// of by, with parts by the next. Errors: InvalidArgument for a goal below -1; those of
// [Goals.Timeline].
func (t *Team) Cost(ctx context.Context, goal int, by ...usage.By) (usage.Table, error) {
	from, until, err := t.calls(ctx, goal)
	if err != nil {
		return usage.Table{}, err
	}
	return usage.Read(ctx, t.team, from, until, by...)
}

// calls returns the journal sequences that bound the calls of a goal; until is 0 if no goal was set
// after it.
func (t *core) calls(ctx context.Context, goal int) (from, until uint64, err error) {
	switch {
	case goal == 0:
		return 1, 0, nil
	case goal < -1:
		return 0, 0, team.Errorf(team.InvalidArgument, "goal %d: goals are numbered from 1", goal).WithHint("-1 is the newest, 0 all of them")
	}
	record, err := t.record(ctx)
	if err != nil {
		return 0, 0, err
	}
	goal = max(goal, 0) // span takes 0 for the newest
	began, _, err := span(record, &goal)
	if err != nil {
		return 0, 0, err
	}
	if from, err = t.team.Logs.FirstSince(ctx, began); err != nil || goal == record.GoalNumber {
		return from, 0, err
	}
	next := goal + 1
	ended, _, err := span(record, &next)
	if err != nil {
		return 0, 0, err
	}
	until, err = t.team.Logs.FirstSince(ctx, ended)
	return from, until, err
}
