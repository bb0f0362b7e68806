package usage

import (
	"context"
	"slices"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/store/roster"
	"agentteam/pkg/team"
)

// Read sums up the model calls in all journals of a team, in sequences [from, until) of their stream; until 0 means the
// present end. by is as in [NewTally]. It holds one record in memory at a time. Errors: Unavailable.
func Read(ctx context.Context, t *broker.Storage, from, until uint64, by ...By) (Table, error) {
	var roles map[team.AgentID]string
	if slices.Contains(by, ByRole) {
		members, err := roster.New(t).List(ctx)
		if err != nil {
			return Table{}, err
		}
		roles = make(map[team.AgentID]string, len(members))
		for _, m := range members {
			roles[m.AgentID] = m.Role
		}
	}
	tally := NewTally(roles, by...)
	_, err := tally.Read(ctx, t, from, until)
	return tally.Table(), err
}

// Read counts the calls in all journals of a team in sequences [from, until); until 0 means the
// present end. It returns the sequence after the last record read, also with an error. Errors:
// Unavailable.
func (t *Tally) Read(ctx context.Context, s *broker.Storage, from, until uint64) (next uint64, err error) {
	next = from
	err = journal.Each(ctx, s, from, func(r journal.Record) error {
		if until > 0 && r.Seq >= until {
			return broker.ErrEnough
		}
		next = r.Seq + 1
		if c, ok := callOf(r); ok {
			t.Add(c)
		}
		return nil
	})
	return next, err
}
