package usage

import (
	"math"

	"agentteam/pkg/model"
)

// Sum is the total use of a number of calls. The zero value is the sum of no calls.
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

// Tokens returns input and output tokens together, without wasted ones.
func (s Sum) Tokens() int { return s.PromptTokens + s.CompletionTokens }

// Wasted returns the tokens of discarded tries, input and output.
func (s Sum) Wasted() int { return s.WastedPrompt + s.WastedCompletion }

// Known returns the known part of the cost, to a billionth; nil, which does not mean 0, if no price is known.
func (s Sum) Known() *float64 {
	if s.priced == 0 && s.Unpriced > 0 {
		return nil
	}
	cost := math.Round(s.Cost*1e9) / 1e9 // a sum of floats ends in noise
	return &cost
}
