package model

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"agentteam/pkg/team"
)

type metrics struct {
	calls    *prometheus.CounterVec
	duration *prometheus.HistogramVec
	tokens   *prometheus.CounterVec
	retries  *prometheus.CounterVec
}

// newMetrics registers the model's metrics. All clients of a process share them.
func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "agentteam_model_calls_total",
			Help: "Model calls by outcome: ok, cut, refused, unavailable or canceled.",
		}, []string{"outcome"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "agentteam_model_call_duration_seconds",
			Help:    "How long a model call took, its retries included.",
			Buckets: prometheus.ExponentialBuckets(0.1, 2, 12), // to 205 s
		}, []string{"outcome"}),
		tokens: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "agentteam_model_tokens_total",
			Help: "Tokens of finished model calls by direction: prompt or completion.",
		}, []string{"direction"}),
		retries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "agentteam_model_retries_total",
			Help: "Attempts of model calls that were repeated, by reason: rate_limited, server_error, connection, incomplete or silent.",
		}, []string{"reason"}),
	}
	if reg == nil {
		return m, nil
	}
	return m, errors.Join(register(reg, &m.calls), register(reg, &m.duration), register(reg, &m.tokens), register(reg, &m.retries))
}

// register publishes *c, or replaces it by the one that an earlier client did.
func register[C prometheus.Collector](reg prometheus.Registerer, c *C) error {
	err := reg.Register(*c)
	if there, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		*c = there.ExistingCollector.(C)
		return nil
	}
	return err
}

func (m *metrics) call(r Reply, err error, took time.Duration) {
	outcome := "ok"
	switch {
	case errors.Is(err, team.InvalidArgument):
		outcome = "refused"
	case errors.Is(err, team.Unavailable):
		outcome = "unavailable"
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		outcome = "canceled"
	case r.FinishReason == "length":
		outcome = "cut"
	}
	m.calls.WithLabelValues(outcome).Inc()
	m.duration.WithLabelValues(outcome).Observe(took.Seconds())
	m.tokens.WithLabelValues("prompt").Add(float64(r.Usage.PromptTokens))
	m.tokens.WithLabelValues("completion").Add(float64(r.Usage.CompletionTokens))
}
