package router

import (
	"context"

	"agentteam/pkg/model"
)

type meter = func(ctx context.Context, alias string, most model.Usage) (used func(model.Usage), err error)

// metered returns the meter of a request for the tries of one alias: with its name, and with the costs.
func (to *route) metered(by meter) meter {
	if by == nil {
		return nil
	}
	return func(ctx context.Context, _ string, most model.Usage) (func(model.Usage), error) {
		if to.Prices != nil && to.Prices.Written > to.Prices.Input { // all of the prompt may be put into the cache
			most.WrittenTokens = most.PromptTokens
		}
		used, err := by(ctx, to.Name, to.priced(most))
		if err != nil {
			return nil, err
		}
		return func(u model.Usage) { used(to.priced(u)) }, nil
	}
}

// priced returns u, the usage of one try, with its cost.
func (to *route) priced(u model.Usage) model.Usage {
	more, moreOut := model.Surcharge(to.Options.Model, u.PromptTokens+u.WastedPrompt)
	return to.Prices.price(u, more, moreOut)
}
