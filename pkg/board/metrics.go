package board

import (
	"github.com/prometheus/client_golang/prometheus"

	"agentteam/pkg/team"
	"agentteam/pkg/telemetry"
)

type metrics struct {
	claims      *prometheus.CounterVec
	transitions *prometheus.CounterVec
	late        prometheus.Counter
}

// claimCodes are the codes of a claim that was not won.
var claimCodes = []team.Code{team.Conflict, team.Blocked, team.Busy, team.NotFound, team.InvalidState, team.PermissionDenied, team.Unavailable}

func newMetrics(reg prometheus.Registerer) metrics {
	m := metrics{
		claims: telemetry.Register(reg, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "agentteam_claims_total", Help: "Claims of tasks by this process, by result: ok or an error code."}, []string{"result"})),
		transitions: telemetry.Register(reg, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "agentteam_task_transitions_total", Help: "Writes of tasks by this process, by the status that they led to."}, []string{"status"})),
		late: telemetry.Register(reg, prometheus.NewCounter(prometheus.CounterOpts{
			Name: "agentteam_late_writes_total", Help: "Writes of former holders that were refused."})),
	}
	// From zero on, so that the first of each shows as an increase.
	m.claims.WithLabelValues("ok")
	for _, c := range claimCodes {
		m.claims.WithLabelValues(string(c))
	}
	for _, s := range team.TaskStatuses() {
		m.transitions.WithLabelValues(string(s))
	}
	return m
}

func (m metrics) claim(err error) {
	result := "ok"
	if err != nil {
		if result = string(team.CodeOf(err)); result == "" {
			result = "error"
		}
	}
	m.claims.WithLabelValues(result).Inc()
}
