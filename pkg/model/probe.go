package model

import (
	"crypto/rand"
	"fmt"
	"strings"

	"agentteam/pkg/tokens"
)

// LeastWindow is the smallest window, in tokens, with which an agent can work: its system
// message and tools take some 3,000, and an answer needs room.
const LeastWindow = 8192

// WindowOf returns the window that a client with these options takes its model to have,
// before its endpoint has said anything; 0 if that is not known.
func WindowOf(o Options) int {
	o, err := o.withDefaults()
	if err != nil {
		return 0
	}
	d, err := newDialect(o)
	if err != nil {
		return 0
	}
	return d.limits().Window
}

// Probe is a prompt of a known size with a question about its beginning. It shows whether an
// endpoint cuts prompts of that size without a word. It is of plain English, of which all
// vocabularies make about as many tokens, and new each time: of a prompt whose beginning it
// has in a cache an endpoint may report the rest only.
type Probe struct {
	Tokens int // of all of it, about

	system, text, word string
}

// probeAnswer is the least that every endpoint allows an answer to have.
const probeAnswer = 16

// NewProbe returns a probe of about so many tokens, whose system message begins as this name's.
func NewProbe(name string, size int) Probe {
	p := Probe{system: fmt.Sprintf("You are %[1]s, role %[1]s, in team %[1]s.", name), word: strings.ToLower(rand.Text()[:10])}
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

// Request is the probe as a request to a model.
func (p Probe) Request(model string) Request {
	return Request{Model: model, MaxTokens: probeAnswer, Messages: []*Message{{Role: "system", Content: p.system}, {Role: "user", Content: p.text}}}
}

// Reading is how an endpoint has read a [Probe].
type Reading int

// The readings.
const (
	ReadWhole     Reading = iota
	ReadCut               // it counts far fewer tokens than it was sent, and does not know the beginning
	ReadBeginning         // it does not report usage, and knows the beginning
	ReadUnknown           // it does not report usage, and does not know the beginning
)

// Read judges an answer to the probe.
func (p Probe) Read(r Reply) Reading {
	knows := strings.Contains(strings.ToLower(r.Message.Content), p.word)
	switch {
	case r.Usage.Estimated && knows:
		return ReadBeginning
	case r.Usage.Estimated:
		return ReadUnknown
	case knows, r.Usage.PromptTokens >= p.Tokens*7/10: // vocabularies differ by less on plain English
		return ReadWhole
	}
	return ReadCut
}
