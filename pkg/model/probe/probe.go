// Package probe tests properties of a model that its endpoint does not report: whether it reads prompts of a given size
// to the end, and whether it calls tools.
package probe

import (
	"crypto/rand"
	"fmt"
	"strings"

	"agentteam/pkg/model"
	"agentteam/pkg/model/tokens"
)

// Prompt is a prompt of a known size with a question about its beginning. It shows whether an endpoint silently cuts
// prompts of that size. It is plain English, for which all vocabularies need about as many tokens, and new each time:
// an endpoint may report only the uncached part of a prompt.
type Prompt struct {
	Tokens int // of all of it, about

	system, text, word string
}

// probeAnswer is the smallest limit of an answer that every endpoint accepts.
const probeAnswer = 16

// New returns a probe of about size tokens, whose system message names the agent.
func New(name string, size int) Prompt {
	p := Prompt{system: fmt.Sprintf("You are %[1]s, role %[1]s, in team %[1]s.", name), word: strings.ToLower(rand.Text()[:10])}
	var b strings.Builder
	fmt.Fprintf(&b, "The word of the day is %s.\n", p.word)
	const question = "What is the word of the day, which was named at the beginning? Answer with this word alone."
	p.Tokens = tokens.Estimate(p.system) + tokens.Estimate(b.String()) + tokens.Estimate(question)
	for room := 1; p.Tokens < size; room++ {
		line := fmt.Sprintf("All is well in room %d of the house, and nobody there has asked for anything.\n", room)
		p.Tokens += tokens.Estimate(line)
		b.WriteString(line)
	}
	p.text = b.String() + question
	return p
}

// Request returns the probe as a request to a model.
func (p Prompt) Request(alias string) model.Request {
	return model.Request{Model: alias, MaxTokens: probeAnswer, Messages: []*model.Message{{Role: "system", Content: p.system}, {Role: "user", Content: p.text}}}
}

// Reading states how an endpoint has read a [Prompt].
type Reading int

// The readings.
const (
	Whole     Reading = iota
	Cut               // it counts far fewer tokens than it was sent, and does not know the beginning
	Beginning         // it does not report usage, and knows the beginning
	Unknown           // it does not report usage, and does not know the beginning
)

// Read judges an answer to the probe.
func (p Prompt) Read(r model.Reply) Reading {
	knows := strings.Contains(strings.ToLower(r.Message.Content), p.word)
	switch {
	case r.Usage.Estimated && knows:
		return Beginning
	case r.Usage.Estimated:
		return Unknown
	case knows, r.Usage.PromptTokens >= p.Tokens*7/10: // vocabularies differ by less on plain English
		return Whole
	}
	return Cut
}
