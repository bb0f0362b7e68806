package model

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"agentteam/pkg/team"
	"agentteam/pkg/telemetry"
)

// Outcomes of a call, as told by its metrics.
const (
	ok          = "ok"
	cut         = "cut"         // the answer met the limit of tokens
	refused     = "refused"     // for good: another try would not help
	unavailable = "unavailable" // in every try
	canceled    = "canceled"    // the caller gave up
)

// Directions of tokens.
const (
	prompt     = "prompt"
	completion = "completion"
)

type metrics struct {
	calls    *prometheus.CounterVec
	duration *prometheus.HistogramVec
	tokens   *prometheus.CounterVec
	retries  *prometheus.CounterVec
}

// newMetrics registers the model's metrics. All clients of a process share them.
func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		calls: telemetry.Register(reg, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "agentteam_model_calls_total",
			Help: "Model calls by outcome: ok, cut, refused, unavailable or canceled.",
		}, []string{"outcome"})),
		duration: telemetry.Register(reg, prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "agentteam_model_call_duration_seconds",
			Help:    "How long a model call took, its retries included.",
			Buckets: prometheus.ExponentialBuckets(0.1, 2, 12), // to 205 s
		}, []string{"outcome"})),
		tokens: telemetry.Register(reg, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "agentteam_model_tokens_total",
			Help: "Tokens of finished model calls by direction: prompt or completion.",
		}, []string{"direction"})),
		retries: telemetry.Register(reg, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "agentteam_model_retries_total",
			Help: "Attempts of model calls that were repeated, by reason: rate_limited, server_error, connection, incomplete or silent.",
		}, []string{"reason"})),
	}
	// At 0, so that the first of a kind is seen as an increase.
	for _, o := range []string{ok, cut, refused, unavailable, canceled} {
		m.calls.WithLabelValues(o)
		m.duration.WithLabelValues(o)
	}
	for _, d := range []string{prompt, completion} {
		m.tokens.WithLabelValues(d)
	}
	for _, r := range []string{rateLimited, serverError, connection, incomplete, silent} {
		m.retries.WithLabelValues(r)
	}
	return m
}

func (m *metrics) call(r Reply, err error, took time.Duration) {
	outcome := ok
	switch {
	case errors.Is(err, team.InvalidArgument):
		outcome = refused
	case errors.Is(err, team.Unavailable):
		outcome = unavailable
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		outcome = canceled
	case r.FinishReason == "length":
		outcome = cut
	}
	m.calls.WithLabelValues(outcome).Inc()
	m.duration.WithLabelValues(outcome).Observe(took.Seconds())
	m.tokens.WithLabelValues(prompt).Add(float64(r.Usage.PromptTokens))
	m.tokens.WithLabelValues(completion).Add(float64(r.Usage.CompletionTokens))
}
