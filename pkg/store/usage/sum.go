package usage

import (
	"math"

	"agentteam/pkg/model"
)

// Sum is what a number of calls have used together. The zero value is that of none.
type Sum struct {
	Calls int // those that gave no turn included
	model.Usage

	priced int // calls of which some price is known
}

func (s *Sum) add(c Call) {
	s.Calls++
	s.Usage = s.Usage.Add(c.Usage)
	if c.Cost > 0 || c.Unpriced == 0 && c.tokens() > 0 {
		s.priced++
	}
}

// Tokens are input and output together, without what was wasted.
func (s Sum) Tokens() int { return s.PromptTokens + s.CompletionTokens }

// Wasted are the tokens of tries that were thrown away, input and output.
func (s Sum) Wasted() int { return s.WastedPrompt + s.WastedCompletion }

// Known is the part of the cost that is known, to a billionth; nil if nothing of it
// is, which is not to be taken for 0.
func (s Sum) Known() *float64 {
	if s.priced == 0 && s.Unpriced > 0 {
		return nil
	}
	cost := math.Round(s.Cost*1e9) / 1e9 // a sum of floats ends in noise
	return &cost
}
