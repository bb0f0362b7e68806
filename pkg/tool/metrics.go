package tool

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// unknownTool is the label of calls to tools that do not exist. The name in such
// a call comes from a model and may be anything.
const unknownTool = "unknown"

type metrics struct {
	calls    *prometheus.CounterVec
	duration *prometheus.HistogramVec
}

func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "agentteam_tool_calls_total",
			Help: "Tool calls by tool and outcome: ok or the error code.",
		}, []string{"tool", "outcome"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "agentteam_tool_call_duration_seconds",
			Help:    "Time from a tool call to its result.",
			Buckets: []float64{0.001, 0.01, 0.1, 1, 10, 60, 120, 600}, // a file is read in 1 ms, a command may take 10 min
		}, []string{"tool"}),
	}
	if reg == nil {
		return m, nil
	}
	var err error
	if m.calls, err = register(reg, m.calls); err != nil {
		return nil, err
	}
	m.duration, err = register(reg, m.duration)
	return m, err
}

// register returns c, or the collector that is there already: a process makes a
// set for each membership and keeps its registry.
func register[C prometheus.Collector](reg prometheus.Registerer, c C) (C, error) {
	err := reg.Register(c)
	var already prometheus.AlreadyRegisteredError
	if errors.As(err, &already) {
		if there, same := already.ExistingCollector.(C); same {
			return there, nil
		}
	}
	return c, err
}

func (m *metrics) observe(tool string, r Result, took time.Duration) {
	outcome := "ok"
	if r.IsError {
		outcome = string(r.Code)
	}
	m.calls.WithLabelValues(tool, outcome).Inc()
	m.duration.WithLabelValues(tool).Observe(took.Seconds())
}
