package mergequeue

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"agentteam/pkg/telemetry"
)

// isMerged is the outcome of merged work. The others are the kinds of outcomes.
const isMerged = "merged"

// outcomes are the counted outcomes; a later program may know other kinds.
var outcomes = []string{isMerged, string(Conflicting), string(CheckFailed), string(Refused)}

// metrics are the metrics of a queue.
type metrics struct {
	outcomes        *prometheus.CounterVec
	waited, merging prometheus.Observer
	waiting         prometheus.Gauge
}

func newMetrics(reg prometheus.Registerer) metrics {
	buckets := prometheus.ExponentialBuckets(0.05, 3, 10)
	m := metrics{
		outcomes: telemetry.Counters(reg, "agentteam_merges_total", "Submitted work by outcome: merged, conflict, check or refused.", "outcome"),
		waited:   telemetry.Histograms(reg, "agentteam_merge_wait_seconds", "Time from submission to merge.", buckets).WithLabelValues(),
		merging:  telemetry.Histograms(reg, "agentteam_merge_duration_seconds", "Time to merge or return work, with the checks.", buckets).WithLabelValues(),
		waiting:  telemetry.Gauges(reg, "agentteam_merges_waiting", "Submitted work that waits to be merged.").WithLabelValues(),
	}
	for _, outcome := range outcomes {
		m.outcomes.WithLabelValues(outcome)
	}
	return m
}

// done counts finished work.
func (m metrics) done(outcome string) {
	if slices.Contains(outcomes, outcome) {
		m.outcomes.WithLabelValues(outcome).Inc()
	}
}

// took records the waiting and merging times of work. Its holder's clock may be ahead.
func (m metrics) took(submitted, began time.Time) {
	m.waited.Observe(max(0, began.Sub(submitted).Seconds()))
	m.merging.Observe(time.Since(began).Seconds())
}
