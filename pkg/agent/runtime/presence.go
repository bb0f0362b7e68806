package runtime

import (
	"context"
	"sync"
	"time"

	"agentteam/pkg/agent/control"
	"agentteam/pkg/store/registry"
	"agentteam/pkg/store/roster"
	"agentteam/pkg/team"
	"agentteam/pkg/team/explain"
)

// askWait bounds the wait for a member's heartbeat.
const askWait = 500 * time.Millisecond

// heard returns the members' heartbeats: a leader has heard them, a teammate asks.
func (m *member) heard(ctx context.Context, members []team.Member) map[team.AgentID]roster.Heard {
	if m.Heard != nil {
		return m.Heard()
	}
	var mu sync.Mutex
	heard := map[team.AgentID]roster.Heard{}
	var wg sync.WaitGroup
	for _, o := range members {
		if !o.HasProcess() {
			continue
		}
		wg.Go(func() {
			b, err := control.Ping(ctx, m.Team, o.AgentID, askWait)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				heard[o.AgentID] = roster.Heard{Heartbeat: b, At: time.Now()}
			}
		})
	}
	wg.Wait()
	return heard
}

// others reports whether another member could take t; true if the members cannot be read.
func (m *member) others(ctx context.Context, t team.Task) bool {
	s, err := m.peers(ctx)
	return err != nil || s.Others(t, m.Member.AgentID)
}

// peers returns the state of the team's members.
func (m *member) peers(ctx context.Context) (explain.Situation, error) {
	record, err := registry.Record(ctx, m.Team)
	if err != nil {
		return explain.Situation{}, err
	}
	members, err := m.roster.List(ctx)
	if err != nil {
		return explain.Situation{}, err
	}
	s, heard := explain.Situation{Status: record.Status, Roles: record.Roles}, m.heard(ctx, members)
	for _, o := range members {
		h := heard[o.AgentID]
		s.Members = append(s.Members, explain.Standing{Member: o, State: h.State(o, record, time.Now()), Task: h.Task, Window: h.Window})
	}
	return s, nil
}

func (m *member) parkAs(ctx context.Context, state team.MemberState, cause string) {
	m.parked.Store(cause != "")
	if err := m.roster.Park(ctx, m.Member.AgentID, m.Member.Incarnation, state, cause); err != nil {
		m.Logger.WarnContext(ctx, "the member's record does not say whether it can work", "agent", m.Member.AgentID, "err", err)
	}
}
