package router

import "agentteam/pkg/model"

// Prices are the prices of a million tokens, in Currency.
type Prices struct {
	Input    float64 `yaml:"input" required:"the price of a million tokens" minimum:"0"`
	Cached   float64 `yaml:"cached" minimum:"0"`  // of the input that the endpoint had cached
	Written  float64 `yaml:"written" minimum:"0"` // of the input that it has put into its cache
	Output   float64 `yaml:"output" required:"the price of a million tokens" minimum:"0"`
	Currency string  `yaml:"currency"` // for people; may be empty
}

// price returns u with its cost and currency. Without prices, u is one call of unknown price. Wasted input is charged
// in full: how much of it was cached is unknown. more and moreOut multiply the prices of input and output.
func (p *Prices) price(u model.Usage, more, moreOut float64) model.Usage {
	if u == (model.Usage{}) {
		return u
	}
	if p == nil {
		u.Unpriced = 1
		return u
	}
	const million = 1e6
	input := float64(u.Plain()+u.WastedPrompt)*p.Input + float64(u.CachedTokens)*p.Cached + float64(u.WrittenTokens)*p.Written
	output := float64(u.CompletionTokens+u.WastedCompletion) * p.Output
	u.Cost = (input*more + output*moreOut) / million
	u.Currency = p.Currency
	return u
}
