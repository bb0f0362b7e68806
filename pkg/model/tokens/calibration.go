package tokens

// Calibration learns from an endpoint's reports how its tokens compare with our estimates, for one conversation or model. The
// zero value trusts the estimates. It is not safe for concurrent use.
type Calibration struct {
	factor float64 // tokens of the endpoint for each that we estimate; 0: not known
}

const (
	leastFactor, mostFactor = 0.5, 2.0 // no vocabulary is further off: beyond that the report counts something else
	newest                  = 0.25     // weight of a report behind the first
	leastSent               = 500      // below that it is the chat template's tokens that count
)

// Counted records that an endpoint has counted prompt tokens in a request with the estimate sent, the sum of [Estimate]
// or [Count] without the gauge. It ignores reports of 0, of very short requests and of cut prompts.
func (g *Calibration) Counted(prompt, sent int) {
	if prompt <= 0 || sent < leastSent || Cut(sent, prompt) {
		return
	}
	factor := min(max(float64(prompt)/float64(sent), leastFactor), mostFactor)
	if g.factor != 0 {
		factor = g.factor + newest*(factor-g.factor)
	}
	g.factor = factor
}

// Tokens returns the endpoint's tokens for an estimate.
func (g *Calibration) Tokens(estimate int) int {
	if g.factor == 0 {
		return estimate
	}
	return int(float64(estimate)*g.factor + 0.5)
}

// Cut reports whether an endpoint that reported so many tokens for a prompt estimated at estimated must have cut it: no
// vocabulary needs so few. It returns false for short prompts, which no window cuts, and for a report of 0.
func Cut(estimated, reported int) bool {
	return reported > 0 && estimated >= leastCut && reported < estimated*6/10
}

// leastCut is about the smallest window in use.
const leastCut = 2000
