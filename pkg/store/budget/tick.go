package budget

import (
	"context"
	"errors"
	"time"

	"agentteam/pkg/shutdown"
	"agentteam/pkg/team"
)

// Run adds the time in which the member works to the accounts that limit it, and keeps the slice of a long call open,
// until ctx ends; then it returns nil.
func (m *Meter) Run(ctx context.Context) error {
	for shutdown.Sleep(ctx, m.period()) {
		if err := m.tick(ctx); err != nil && ctx.Err() == nil {
			m.o.Logger.DebugContext(ctx, "working time not counted", "err", err)
		}
	}
	return nil
}

// period returns the time between two ticks: a slice of the shortest limit of working time, a third of the lease at most.
func (m *Meter) period() time.Duration {
	most := m.o.Record().Lease() / 3
	for _, l := range m.limits(m.o.Record()) {
		if l.WallTime > 0 {
			most = min(most, max(time.Duration(l.WallTime)*time.Millisecond/shares, time.Second))
		}
	}
	return most
}

func (m *Meter) tick(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.active > 0 && time.Since(m.stored) >= m.o.Record().Lease()/3 && !m.unsure {
		next := m.hold
		next.Spent, next.Calls = m.spent, m.calls
		switch next, err := next.put(ctx, m.b, m.o.Member.AgentID); {
		case errors.Is(err, team.Conflict):
			m.unsure = true
		case err == nil:
			m.hold, m.stored = next, time.Now()
		}
	}
	since := m.worked
	if m.worked = time.Now(); !m.o.Working() {
		m.worked = time.Time{}
	}
	limits := m.limits(m.o.Record())
	for account, l := range limits {
		if l.WallTime == 0 {
			delete(limits, account)
		}
	}
	if len(limits) == 0 || since.IsZero() {
		return nil
	}
	return m.addTime(ctx, limits, time.Since(since).Milliseconds())
}

// addTime adds working time to the accounts. Of members that work at the same time only one adds it.
func (m *Meter) addTime(ctx context.Context, limits map[string]team.Budget, worked int64) error {
	late := false
	_, err := update(ctx, m.b, func(l *ledger) (bool, error) {
		late = false
		l.begins(m.o.Record().GoalNumber)
		now, added := time.Now().UnixMilli(), false
		for account := range limits {
			// The clocks of two hosts may differ: no step is longer than the time that this process has measured.
			if add := min(worked, max(now-l.Ticked[account], 0)); add >= worked/2 {
				used := l.Used[account]
				used.WallTime += add
				l.Used[account], l.Ticked[account], added = used, now, true
			} else if now < l.Ticked[account] {
				l.Ticked[account], added = now, true
			}
		}
		over, _ := l.fits(m.o.Member.AgentID, limits, team.Budget{})
		late = over != nil
		return added, nil
	})
	m.late = m.late || late
	return err
}
