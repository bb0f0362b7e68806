package index

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"agentteam/pkg/team"
	"agentteam/pkg/telemetry"
)

// durations are the buckets for durations from milliseconds to hours.
var durations = []float64{0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 60, 180, 600, 1800, 3600, 4 * 3600, 12 * 3600}

// metrics are the metrics of one team's index.
type metrics struct {
	team        prometheus.Labels
	tasks       *prometheus.GaugeVec
	age         *prometheus.GaugeVec
	quarantined *prometheus.GaugeVec
	queue       prometheus.Observer
	execution   prometheus.Observer
	offers      prometheus.Counter
	unlawful    prometheus.Counter
	foreign     prometheus.Counter
}

func newMetrics(reg prometheus.Registerer, id team.TeamID) metrics {
	label := prometheus.Labels{"team": string(id)}
	return metrics{
		team:  label,
		tasks: telemetry.Gauges(reg, "agentteam_tasks", "Tasks on the board.", "team", "status"),
		age: telemetry.Gauges(reg, "agentteam_oldest_task_age_seconds",
			"Time that the oldest pending task is claimable, or the oldest in progress held.", "team", "status"),
		quarantined: telemetry.Gauges(reg, "agentteam_records_quarantined", "Unreadable records of the team's bucket.", "team"),
		queue:       telemetry.Histograms(reg, "agentteam_task_queue_duration_seconds", "Time until a claimable task was claimed.", durations, "team").With(label),
		execution:   telemetry.Histograms(reg, "agentteam_task_execution_duration_seconds", "Time from a task's last claim until its completion.", durations, "team").With(label),
		offers:      telemetry.Counters(reg, "agentteam_offers_total", "Tasks offered to idle agents.", "team").With(label),
		unlawful:    telemetry.Counters(reg, "agentteam_unlawful_writes_total", "Writes of tasks that no rule allows.", "team").With(label),
		foreign: telemetry.Counters(reg, "agentteam_foreign_beats_total",
			"Heartbeats of another incarnation than the member's record.", "team").With(label),
	}
}

// show publishes the state of the board. It sets every status, so that none keeps an old figure.
func (m metrics) show(s *state, now time.Time) {
	for _, status := range team.TaskStatuses() {
		m.tasks.WithLabelValues(m.team["team"], string(status)).Set(float64(s.count[status]))
	}
	pending, running := s.oldest(now)
	m.age.WithLabelValues(m.team["team"], string(team.Pending)).Set(pending.Seconds())
	m.age.WithLabelValues(m.team["team"], string(team.InProgress)).Set(running.Seconds())
	m.quarantined.With(m.team).Set(float64(len(s.bad)))
}

// observe counts the claims and completions that s has seen since the last call.
func (m metrics) observe(s *state) {
	for _, d := range s.queued {
		m.queue.Observe(d.Seconds())
	}
	for _, d := range s.executed {
		m.execution.Observe(d.Seconds())
	}
	s.queued, s.executed = s.queued[:0], s.executed[:0]
}

// clear removes the series that only the process that leads the team may publish.
func (m metrics) clear() {
	for _, g := range []*prometheus.GaugeVec{m.tasks, m.age, m.quarantined} {
		g.DeletePartialMatch(m.team)
	}
}
