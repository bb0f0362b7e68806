package index

import (
	"github.com/prometheus/client_golang/prometheus"

	"agentteam/pkg/team"
	"agentteam/pkg/telemetry"
)

type metrics struct {
	tasks  *prometheus.GaugeVec
	offers prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) metrics {
	return metrics{
		tasks: telemetry.Register(reg, prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "agentteam_tasks", Help: "Tasks on the board, by team and status; only the process that leads the team tells."}, []string{"team", "status"})),
		offers: telemetry.Register(reg, prometheus.NewCounter(prometheus.CounterOpts{
			Name: "agentteam_offers_total", Help: "Tasks offered to idle agents."})),
	}
}

// show publishes the size of the board; every status is told, so that none stays
// at an old figure.
func (m metrics) show(id team.TeamID, n map[team.TaskStatus]int) {
	for _, s := range []team.TaskStatus{team.Pending, team.InProgress, team.Completed, team.Failed, team.Cancelled} {
		m.tasks.WithLabelValues(string(id), string(s)).Set(float64(n[s]))
	}
}
