package tool

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"agentteam/pkg/telemetry"
)

// unknownTool is the label of calls to unknown tools. The name in such a call comes from a model and may be anything.
const unknownTool = "unknown"

// ok is the outcome of a call that succeeded; the others are error codes.
const ok = "ok"

type metrics struct {
	calls    *prometheus.CounterVec
	duration *prometheus.HistogramVec
}

func newMetrics(reg prometheus.Registerer, tools []Tool) *metrics {
	m := &metrics{
		calls: telemetry.Counters(reg, "agentteam_tool_calls_total", "Tool calls: ok or an error code; the tool unknown does not exist.", "tool", "outcome"),
		duration: telemetry.Histograms(reg, "agentteam_tool_call_duration_seconds",
			"Time from a tool call to its result.", []float64{0.001, 0.01, 0.1, 1, 10, 60, 120, 600}, "tool"), // a file is read in 1 ms, a command may take 10 min
	}
	// At 0, so that the first call is seen as an increase. Not for every error code:
	// that would be ten times the series, in every process.
	for _, t := range tools {
		m.calls.WithLabelValues(t.Name, ok)
	}
	return m
}

func (m *metrics) observe(tool string, r Result, took time.Duration) {
	outcome := ok
	if r.IsError {
		outcome = string(r.Code)
	}
	m.calls.WithLabelValues(tool, outcome).Inc()
	m.duration.WithLabelValues(tool).Observe(took.Seconds())
}
