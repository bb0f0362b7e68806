package merge

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"agentteam/pkg/telemetry"
)

// isMerged is the outcome of work that came into the line. The others are the kinds of outcomes.
const isMerged = "merged"

// metrics are what a queue counts.
type metrics struct {
	outcomes        map[string]prometheus.Counter
	waited, merging prometheus.Histogram
	waiting         prometheus.Gauge
}

func newMetrics(reg prometheus.Registerer) metrics {
	outcomes := telemetry.Register(reg, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "agentteam_merges_total", Help: "Submitted work with which this queue was done, by outcome: merged, or why not: conflict, check, refused."}, []string{"outcome"}))
	m := metrics{
		outcomes: map[string]prometheus.Counter{},
		waited: telemetry.Register(reg, prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "agentteam_merge_wait_seconds", Help: "From when work was submitted until this queue began to merge it.", Buckets: prometheus.ExponentialBuckets(0.05, 3, 10)})),
		merging: telemetry.Register(reg, prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "agentteam_merge_duration_seconds", Help: "How long this queue took to merge work or to return it, with the checks.", Buckets: prometheus.ExponentialBuckets(0.05, 3, 10)})),
		waiting: telemetry.Register(reg, prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "agentteam_merges_waiting", Help: "Submitted work that waits to be merged, as this queue has heard."})),
	}
	for _, outcome := range []string{isMerged, string(Conflicting), string(CheckFailed), string(Refused)} {
		m.outcomes[outcome] = outcomes.WithLabelValues(outcome)
	}
	return m
}

// done counts work with which the queue is done.
func (m metrics) done(outcome string) {
	if c := m.outcomes[outcome]; c != nil { // a later program may know other kinds
		c.Inc()
	}
}

// took notes how long work has waited and been merged. Its holder's clock may be ahead.
func (m metrics) took(submitted, began time.Time) {
	m.waited.Observe(max(0, began.Sub(submitted).Seconds()))
	m.merging.Observe(time.Since(began).Seconds())
}
