package board

import (
	"github.com/prometheus/client_golang/prometheus"

	"agentteam/pkg/team"
	"agentteam/pkg/telemetry"
)

type metrics struct {
	claims      *prometheus.CounterVec
	transitions *prometheus.CounterVec
	reaped      prometheus.Counter
	late        prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) metrics {
	return metrics{
		claims: telemetry.Register(reg, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "agentteam_claims_total", Help: "Claims of tasks by this process, by result: ok or an error code."}, []string{"result"})),
		transitions: telemetry.Register(reg, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "agentteam_task_transitions_total", Help: "Writes of tasks by this process, by the status that they led to."}, []string{"status"})),
		reaped: telemetry.Register(reg, prometheus.NewCounter(prometheus.CounterOpts{
			Name: "agentteam_tasks_reaped_total", Help: "Tasks taken from a holder that was judged gone."})),
		late: telemetry.Register(reg, prometheus.NewCounter(prometheus.CounterOpts{
			Name: "agentteam_late_writes_total", Help: "Writes of former holders that were refused."})),
	}
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
