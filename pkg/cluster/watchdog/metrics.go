package watchdog

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"agentteam/pkg/store/board/index"
	"agentteam/pkg/store/roster"
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
		members: telemetry.Gauges(reg, "agentteam_members", "Members of the team by state.", "team", "state"),
		age: telemetry.Gauges(reg, "agentteam_heartbeat_age_seconds",
			"Time since the last heartbeat of a member.", "team", "agent_id"),
		lost:    telemetry.Counters(reg, "agentteam_members_lost_total", "Members that were lost and were to be brought back.", "team"),
		expired: telemetry.Counters(reg, "agentteam_leases_expired_total", "Tasks taken from silent holders.", "team"),
		stalled: telemetry.Counters(reg, "agentteam_members_stalled_total", "Times that a working member made no progress for stall_after.", "team"),
		allIdle: telemetry.Counters(reg, "agentteam_all_idle_total", "Notices to the leader that all members are idle.", "team"),
	}
}

var states = []team.MemberState{team.Created, team.Joined, team.Running, team.Stalled, team.Idle, team.WaitingAnswer, team.WaitingUser, team.WaitingApproval, team.WaitingModel, team.WaitingBudget, team.WaitingRepair, team.Lost, team.Stopped, team.Unreadable}

func (m *metrics) show(l index.Snapshot, heard map[team.AgentID]roster.Heard, now time.Time) {
	m.team = l.Team.ID
	m.lost.WithLabelValues(string(m.team)) // at 0, so that the first loss shows as an increase
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

// count counts one more of c, for the team that was shown last.
func (m *metrics) count(c *prometheus.CounterVec) { c.WithLabelValues(string(m.team)).Inc() }

// clear removes the team's gauges once this process no longer leads it. The counters stay.
func (m *metrics) clear() {
	m.members.DeletePartialMatch(prometheus.Labels{"team": string(m.team)})
	m.age.DeletePartialMatch(prometheus.Labels{"team": string(m.team)})
}
