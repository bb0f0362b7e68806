package membership

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"agentteam/pkg/board"
	"agentteam/pkg/board/index"
	"agentteam/pkg/control"
	"agentteam/pkg/registry"
	"agentteam/pkg/roster"
	"agentteam/pkg/team"
)

// askWait is for a member's process to answer how it is.
const askWait = 500 * time.Millisecond

// heard is how the members are: who leads has heard it, a teammate asks.
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
				heard[o.AgentID] = roster.Heard{Beat: b, At: time.Now()}
			}
		})
	}
	wg.Wait()
	return heard
}

// leaderHeard is when the leader was last heard, or since when it could be if that is
// later: from begun on, and while NATS is there.
func (m *member) leaderHeard(begun time.Time) time.Time {
	if m.Team.Conn.Ready(m.ctx) != nil {
		return time.Now()
	}
	heard := begun
	if h, ok := m.pulse.Of(team.Leader); ok {
		heard = h.At
	}
	if back := m.Team.Conn.Restored(); back.After(heard) {
		return back
	}
	return heard
}

// look returns what finds a task for an agent to which nobody makes offers.
func (m *member) look() func(context.Context) (team.TaskID, bool) {
	role := m.Role
	role.Name = m.Member.Role
	scout := board.NewScout(m.board, m.Member.AgentID, role, m.others)
	return func(ctx context.Context) (team.TaskID, bool) {
		id, ok, err := scout.Find(ctx)
		if err != nil {
			m.Logger.DebugContext(ctx, "look for work failed", "err", err)
		}
		return id, ok && err == nil
	}
}

// others reports whether another member could take t; one that cannot be asked counts.
func (m *member) others(ctx context.Context, t team.Task) bool {
	s, err := m.peers(ctx)
	return err != nil || s.Others(t, m.Member.AgentID)
}

// peers is how the team's members stand.
func (m *member) peers(ctx context.Context) (team.Situation, error) {
	record, err := registry.Record(ctx, m.Team)
	if err != nil {
		return team.Situation{}, err
	}
	members, err := m.roster.List(ctx)
	if err != nil {
		return team.Situation{}, err
	}
	s, heard := team.Situation{Status: record.Status, Roles: record.Roles}, m.heard(ctx, members)
	for _, o := range members {
		h := heard[o.AgentID]
		s.Members = append(s.Members, team.Standing{Member: o, State: h.State(o, record, time.Now()), Task: h.Task, Window: h.Window})
	}
	return s, nil
}

// reserved finds the first task in order of work that is reserved for the member and could be
// claimed now.
func (m *member) reserved(ctx context.Context) (team.TaskID, bool) {
	p, err := index.List(ctx, m.Team, m.board, team.Query{ReservedFor: m.Member.AgentID, Status: []team.TaskStatus{team.Pending}, Blocked: new(bool), Sort: team.ByWork, Limit: 1})
	if err != nil { // it is offered, too
		m.Logger.DebugContext(ctx, "look for a reserved task failed", "err", err)
	}
	if err != nil || len(p.Tasks) == 0 {
		return "", false
	}
	return p.Tasks[0].ID, true
}

// park tells in the member's record that its model's endpoint refuses it, and with an
// empty cause that it answers again.
func (m *member) park(ctx context.Context, cause string) {
	m.parkAs(ctx, team.WaitingModel, cause)
}

func (m *member) parkAs(ctx context.Context, state team.MemberState, cause string) {
	m.parked.Store(cause != "")
	if err := m.roster.Park(ctx, m.Member.AgentID, m.Member.Incarnation, state, cause); err != nil {
		m.Logger.WarnContext(ctx, "the member's record does not say whether it can work", "agent", m.Member.AgentID, "err", err)
	}
}

// decided blocks until a plan is decided on, or ctx ends; see [agent.Options].
func (m *member) decided(ctx context.Context, plan string) (string, error) {
	for {
		if a, err := m.plans.Decided(ctx, plan); err == nil {
			return a.Verdict(), nil
		}
		select { // NATS may be in trouble
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(roster.Interval):
		}
	}
}

// rests ends what the gate has let pass, as the agent goes idle.
func (m *member) rests(ctx context.Context) {
	if err := m.gate.Rest(ctx); err != nil && ctx.Err() == nil {
		m.Logger.WarnContext(ctx, "a plan is not marked as ended", "agent", m.Member.AgentID, "err", err)
	}
}

// asking are the last beats of the members that wait for an answer of one of them, or for
// its decision on a plan, by name.
func asking(heard map[team.AgentID]roster.Heard, of team.AgentID) (beats []team.Beat) {
	for _, h := range heard {
		if h.Beat.State.Waits() && h.Awaits == of {
			beats = append(beats, h.Beat)
		}
	}
	slices.SortFunc(beats, func(a, b team.Beat) int { return cmp.Compare(a.AgentID, b.AgentID) })
	return beats
}
