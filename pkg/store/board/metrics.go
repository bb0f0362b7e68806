package board

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"agentteam/pkg/team"
	"agentteam/pkg/telemetry"
)

// metrics are the counters of one board.
type metrics struct {
	claims, transitions *prometheus.CounterVec
	late                prometheus.Counter
}

// Results of a claim that are not an error code: success, and an error whose code is not among the results.
const claimed, otherwise = "ok", "error"

// results are the results of a claim.
var results = []string{claimed, otherwise, string(team.Conflict), string(team.Blocked), string(team.Busy), string(team.NotFound),
	string(team.InvalidState), string(team.PermissionDenied), string(team.Unavailable)}

func newMetrics(reg prometheus.Registerer) metrics {
	m := metrics{
		claims:      telemetry.Counters(reg, "agentteam_claims_total", "Claims: ok, an error code, or error.", "result"),
		transitions: telemetry.Counters(reg, "agentteam_task_transitions_total", "Writes of tasks, by new status.", "status"),
		late:        telemetry.Counters(reg, "agentteam_late_writes_total", "Writes of former holders that were refused.").WithLabelValues(),
	}
	for _, r := range results { // shown at 0
		m.claims.WithLabelValues(r)
	}
	for _, s := range team.TaskStatuses() {
		m.transitions.WithLabelValues(string(s))
	}
	return m
}

func (m metrics) claim(err error) {
	result := claimed
	if err != nil {
		result = string(team.CodeOf(err))
	}
	if !slices.Contains(results, result) {
		result = otherwise
	}
	m.claims.WithLabelValues(result).Inc()
}
