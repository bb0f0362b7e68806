package proxy

import (
	"github.com/prometheus/client_golang/prometheus"

	"agentteam/pkg/telemetry"
)

// Outcomes of a request.
const (
	allowed = "allowed"
	refused = "refused"
	failed  = "failed" // allowed, but the host was not reached
)

// newMetrics registers the metric that all proxies of a process share.
func newMetrics(reg prometheus.Registerer) *prometheus.CounterVec {
	m := telemetry.Counters(reg, "agentteam_network_requests_total", "Requests of commands to the network: allowed, refused or failed.", "outcome")
	for _, outcome := range []string{allowed, refused, failed} {
		m.WithLabelValues(outcome)
	}
	return m
}
