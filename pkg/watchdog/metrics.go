package watchdog

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"agentteam/pkg/board/index"
	"agentteam/pkg/roster"
	"agentteam/pkg/team"
	"agentteam/pkg/telemetry"
)

type metrics struct {
	members *prometheus.GaugeVec
	age     *prometheus.GaugeVec
	lost    prometheus.Counter
	allIdle prometheus.Counter
	team    team.TeamID
}

func newMetrics(reg prometheus.Registerer) metrics {
	return metrics{
		members: telemetry.Register(reg, prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "agentteam_members", Help: "Members of the team by state, as seen by the process that leads it."}, []string{"team", "state"})),
		age: telemetry.Register(reg, prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "agentteam_heartbeat_age_seconds", Help: "Time since the last heartbeat of a member, as seen by the process that leads the team."}, []string{"team", "agent_id"})),
		lost: telemetry.Register(reg, prometheus.NewCounter(prometheus.CounterOpts{
			Name: "agentteam_members_lost_total", Help: "Members that were judged lost."})),
		allIdle: telemetry.Register(reg, prometheus.NewCounter(prometheus.CounterOpts{
			Name: "agentteam_all_idle_total", Help: "Notices to the leader that nobody has anything left to do."})),
	}
}

var states = []team.MemberState{team.Created, team.Joined, team.Running, team.Idle, team.WaitingAnswer, team.WaitingModel, team.Lost, team.Stopped}

func (m *metrics) show(l index.Look, heard map[team.AgentID]roster.Heard, lease time.Duration, now time.Time) {
	m.team = l.Team.ID
	count := map[team.MemberState]int{}
	for _, o := range l.Members {
		h := heard[o.AgentID]
		count[h.State(o, lease, now)]++
		labels := prometheus.Labels{"team": string(m.team), "agent_id": string(o.AgentID)}
		if o.HasProcess() && !h.At.IsZero() {
			m.age.With(labels).Set(now.Sub(h.At).Seconds())
		} else {
			m.age.Delete(labels)
		}
	}
	for _, s := range states {
		m.members.WithLabelValues(string(m.team), string(s)).Set(float64(count[s]))
	}
}

// clear forgets the team once this process no longer leads it.
func (m *metrics) clear() {
	m.members.DeletePartialMatch(prometheus.Labels{"team": string(m.team)})
	m.age.DeletePartialMatch(prometheus.Labels{"team": string(m.team)})
}
