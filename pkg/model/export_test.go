package model

import "testing"

// NewAnthropic starts the strict fake of Anthropic's Messages for tests outside of the package.
func NewAnthropic(t *testing.T, answer func(n int) []map[string]any) *Anthropic {
	a, url := newAnthropic(t, answer)
	return &Anthropic{a, url}
}

// Anthropic is the fake, as other packages see it.
type Anthropic struct {
	*anthropic
	URL string
}

// AnthropicCount is what the fake has counted.
type AnthropicCount struct {
	Asked, Read, All, Rewrites, Thoughts int
	Refused                              []string
}

// Count is what it has counted so far.
func (a *Anthropic) Count() AnthropicCount {
	a.mu.Lock()
	defer a.mu.Unlock()
	return AnthropicCount{a.asked, a.read, a.read + a.written + a.plain, a.rewrites, a.thoughts, a.refused}
}
