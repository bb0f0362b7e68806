package board

import (
	"github.com/prometheus/client_golang/prometheus"

	"agentteam/pkg/team"
	"agentteam/pkg/telemetry"
)

// metrics are the counters of one board. They are looked up once: each task is counted
// several times on its way.
type metrics struct {
	claims      map[string]prometheus.Counter
	transitions map[team.TaskStatus]prometheus.Counter
	late        prometheus.Counter
}

// Results of a claim that are no error code: it was won, or it failed with an error that
// is not among claimCodes.
const claimed, otherwise = "ok", "error"

// claimCodes are the codes of a claim that was not won.
var claimCodes = []team.Code{team.Conflict, team.Blocked, team.Busy, team.NotFound, team.InvalidState, team.PermissionDenied, team.Unavailable}

func newMetrics(reg prometheus.Registerer) metrics {
	claims := telemetry.Counters(reg, "agentteam_claims_total", "Claims of tasks by this process, by result: ok, an error code, or error.", "result")
	transitions := telemetry.Counters(reg, "agentteam_task_transitions_total", "Writes of tasks by this process, by the status that they led to.", "status")
	m := metrics{
		claims: map[string]prometheus.Counter{}, transitions: map[team.TaskStatus]prometheus.Counter{},
		late: telemetry.Register(reg, prometheus.NewCounter(prometheus.CounterOpts{
			Name: "agentteam_late_writes_total", Help: "Writes of former holders that were refused."})),
	}
	for _, result := range []string{claimed, otherwise} {
		m.claims[result] = claims.WithLabelValues(result)
	}
	for _, c := range claimCodes {
		m.claims[string(c)] = claims.WithLabelValues(string(c))
	}
	for _, s := range team.TaskStatuses() {
		m.transitions[s] = transitions.WithLabelValues(string(s))
	}
	return m
}

func (m metrics) claim(err error) {
	result := claimed
	if err != nil {
		result = string(team.CodeOf(err))
	}
	counter, ok := m.claims[result]
	if !ok {
		counter = m.claims[otherwise]
	}
	counter.Inc()
}
