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
	lost    *prometheus.CounterVec
	expired *prometheus.CounterVec
	stalled *prometheus.CounterVec
	allIdle *prometheus.CounterVec
	team    team.TeamID
}

func newMetrics(reg prometheus.Registerer) metrics {
	return metrics{
		members: telemetry.Register(reg, prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "agentteam_members", Help: "Members of the team by state, as seen by the process that leads it."}, []string{"team", "state"})),
		age: telemetry.Register(reg, prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "agentteam_heartbeat_age_seconds", Help: "Time since the last heartbeat of a member, as seen by the process that leads the team."}, []string{"team", "agent_id"})),
		lost: telemetry.Register(reg, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "agentteam_members_lost_total", Help: "Members that were judged lost, or whose process went away, and that were to be brought back."}, []string{"team"})),
		expired: telemetry.Register(reg, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "agentteam_leases_expired_total", Help: "Tasks taken from a holder that was not heard for the lease."}, []string{"team"})),
		stalled: telemetry.Register(reg, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "agentteam_members_stalled_total", Help: "Times that a member at work has made no progress for as long as the team allows."}, []string{"team"})),
		allIdle: telemetry.Register(reg, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "agentteam_all_idle_total", Help: "Notices to the leader that nobody has anything left to do."}, []string{"team"})),
	}
}

var states = []team.MemberState{team.Created, team.Joined, team.Running, team.Stalled, team.Idle, team.WaitingAnswer, team.WaitingUser, team.WaitingApproval, team.WaitingModel, team.WaitingRepair, team.Lost, team.Stopped, team.Unreadable}

func (m *metrics) show(l index.Look, heard map[team.AgentID]roster.Heard, now time.Time) {
	m.team = l.Team.ID
	m.lost.WithLabelValues(string(m.team)) // at 0, so that the first one is seen as an increase
	m.expired.WithLabelValues(string(m.team))
	m.stalled.WithLabelValues(string(m.team))
	m.allIdle.WithLabelValues(string(m.team))
	count := map[team.MemberState]int{}
	for _, o := range l.Members {
		h := heard[o.AgentID]
		count[h.State(o, l.Team, now)]++
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

// countExpired counts a task that was freed when its holder's lease ran out.
func (m *metrics) countExpired() { m.expired.WithLabelValues(string(m.team)).Inc() }

// countLost counts a member that was lost.
func (m *metrics) countLost() { m.lost.WithLabelValues(string(m.team)).Inc() }

// countStalled counts a spell without progress.
func (m *metrics) countStalled() { m.stalled.WithLabelValues(string(m.team)).Inc() }

// countAllIdle counts a notice to the leader that all is quiet.
func (m *metrics) countAllIdle() { m.allIdle.WithLabelValues(string(m.team)).Inc() }

// clear forgets how the team stands once this process no longer leads it. What was
// counted until then stays true.
func (m *metrics) clear() {
	m.members.DeletePartialMatch(prometheus.Labels{"team": string(m.team)})
	m.age.DeletePartialMatch(prometheus.Labels{"team": string(m.team)})
}
