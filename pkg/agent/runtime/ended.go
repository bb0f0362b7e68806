package runtime

import (
	"context"
	"slices"
	"time"

	"agentteam/pkg/shutdown"
	"agentteam/pkg/store/audit"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/team"
)

// endedEvery is how often expired journals of subagents are removed.
const endedEvery = time.Hour

// forget removes expired journals of subagents until ctx ends. A journal is trimmed when it is
// written, and no process writes that of a subagent that has ended.
func (m *member) forget(ctx context.Context) error {
	if m.KeepTranscripts > 0 {
		m.removeEnded(ctx)
		shutdown.Every(ctx, endedEvery, m.removeEnded)
	}
	<-ctx.Done()
	return nil
}

// removeEnded removes the journals of the member's subagents that have ended and, if it leads, of
// those of members that have left. The audit keeps their records.
func (m *member) removeEnded(ctx context.Context) {
	left := map[team.AgentID]bool{}
	if m.Member.AgentID == team.Leader {
		members, err := m.roster.List(ctx)
		if err != nil {
			m.Logger.DebugContext(ctx, "it is not known which members have left", "err", err)
		}
		for _, other := range members {
			left[other.AgentID] = other.State == team.Stopped
		}
	}
	err := journal.RemoveEnded(ctx, m.Team, m.KeepTranscripts, func(a team.AgentID) bool {
		works := slices.ContainsFunc(m.jobs.List(), func(j team.Job) bool { return team.Subagent(m.Member.AgentID, j.ID) == a })
		return left[a.Owner()] || a.Owner() == m.Member.AgentID && !works
	}, func(ctx context.Context, a team.AgentID, before uint64) error {
		return audit.Keep(ctx, m.Team, a, before)
	})
	if err != nil && ctx.Err() == nil {
		m.Logger.WarnContext(ctx, "journals of subagents were not removed", "agent", m.Member.AgentID, "err", err)
	}
}
