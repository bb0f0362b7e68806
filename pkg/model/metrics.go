package model

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"agentteam/pkg/telemetry"
)

// Outcomes of a call in its metrics.
const (
	ok          = "ok"
	cut         = "cut"         // the answer met the limit of tokens
	tooLong     = "too_long"    // the conversation is larger than the window
	refused     = "refused"     // for another reason that another try would not help
	unavailable = "unavailable" // in every try
	canceled    = "canceled"    // the caller gave up
)

// Directions of tokens. Cached tokens are part of the prompt, reasoning of the completion; wasted is in neither.
const (
	tokensPrompt     = "prompt"
	tokensCached     = "cached"
	tokensCompletion = "completion"
	tokensReasoning  = "reasoning"
	tokensWasted     = "wasted"
)

// otherForm is the reason of a try that encodes the same request differently, in addition to the values of [Reason].
const otherForm = "other_form"

// retried are the reasons for which a call is tried again.
var retried = []Reason{RateLimited, ServerError, Connection, Incomplete, Silent, NoEndpoint, BadKey, UnknownModel, FailedCall, InvalidRequest}

type metrics struct {
	calls    *prometheus.CounterVec
	refusals *prometheus.CounterVec
	duration *prometheus.HistogramVec
	tokens   *prometheus.CounterVec
	retries  *prometheus.CounterVec
}

// newMetrics registers the model's metrics. All clients of a process share them.
func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		calls:    telemetry.Counters(reg, "agentteam_model_calls_total", "Model calls: ok, cut, too_long, refused, unavailable or canceled.", "outcome"),
		refusals: telemetry.Counters(reg, "agentteam_model_refusals_total", "Model calls that gave no turn, by reason.", "reason"),
		duration: telemetry.Histograms(reg, "agentteam_model_call_duration_seconds",
			"Time of a model call with its retries.", prometheus.ExponentialBuckets(0.1, 2, 15), "outcome"), // to 27 minutes
		tokens: telemetry.Counters(reg, "agentteam_model_tokens_total",
			"Tokens: prompt and completion, their parts cached and reasoning, and wasted of discarded tries.", "direction"),
		retries: telemetry.Counters(reg, "agentteam_model_retries_total", "Repeated attempts, by reason: as of refusals, or other_form.", "reason"),
	}
	// At 0, so that the first of a kind is seen as an increase.
	for _, o := range []string{ok, cut, tooLong, refused, unavailable, canceled} {
		m.calls.WithLabelValues(o)
		m.duration.WithLabelValues(o)
	}
	for r := range advices {
		m.refusals.WithLabelValues(string(r))
	}
	for _, d := range []string{tokensPrompt, tokensCached, tokensCompletion, tokensReasoning, tokensWasted} {
		m.tokens.WithLabelValues(d)
	}
	m.retries.WithLabelValues(otherForm)
	for _, r := range retried {
		m.retries.WithLabelValues(string(r))
	}
	return m
}

// call counts a call that has ended; what it wasted was counted try by try.
func (m *metrics) call(r Reply, err error, took time.Duration) {
	outcome := ok
	refusal := (*Refusal)(nil)
	switch {
	case errors.As(err, &refusal):
		m.refusals.WithLabelValues(string(refusal.Reason)).Inc()
		switch refusal.Advice {
		case TryAgain:
			outcome = unavailable
		case Compact:
			outcome = tooLong
		default:
			outcome = refused
		}
	case err != nil:
		outcome = canceled
	case r.FinishReason == "length":
		outcome = cut
	}
	m.calls.WithLabelValues(outcome).Inc()
	m.duration.WithLabelValues(outcome).Observe(took.Seconds())
	m.tokens.WithLabelValues(tokensPrompt).Add(float64(r.Usage.PromptTokens))
	m.tokens.WithLabelValues(tokensCached).Add(float64(r.Usage.CachedTokens))
	m.tokens.WithLabelValues(tokensCompletion).Add(float64(r.Usage.CompletionTokens))
	m.tokens.WithLabelValues(tokensReasoning).Add(float64(r.Usage.ReasoningTokens))
}

// wasted counts the cost of a try without a turn, also of a call that the caller cancels.
func (m *metrics) wasted(u Usage) {
	m.tokens.WithLabelValues(tokensWasted).Add(float64(u.WastedPrompt + u.WastedCompletion))
}
