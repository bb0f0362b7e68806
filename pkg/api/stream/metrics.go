package stream

import (
	"github.com/prometheus/client_golang/prometheus"

	"agentteam/pkg/telemetry"
)

// metrics are the metrics of a hub.
type metrics struct {
	open, kept            prometheus.Gauge
	entries, deltas, slow prometheus.Counter
	lag                   prometheus.Histogram
}

func newMetrics(reg prometheus.Registerer) metrics {
	gauge := func(o prometheus.GaugeOpts) prometheus.Gauge { return telemetry.Register(reg, prometheus.NewGauge(o)) }
	sent := telemetry.Counters(reg, "agentteam_stream_sent_total", "Entries and deltas sent to readers.", "what")
	return metrics{
		open:    gauge(prometheus.GaugeOpts{Name: "agentteam_streams_open", Help: "Streams that are being read."}),
		kept:    gauge(prometheus.GaugeOpts{Name: "agentteam_stream_kept_items", Help: "Entries and deltas kept for readers."}),
		entries: sent.WithLabelValues("entry"),
		deltas:  sent.WithLabelValues("delta"),
		slow: telemetry.Register(reg, prometheus.NewCounter(prometheus.CounterOpts{
			Name: "agentteam_stream_slow_readers_total", Help: "Readers cut off as too slow."})),
		lag: telemetry.Register(reg, prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "agentteam_stream_lag_seconds", Help: "Age of an entry when a reader gets it.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10, 60}})),
	}
}
