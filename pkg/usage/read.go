package usage

import (
	"context"

	"agentteam/pkg/broker"
	"agentteam/pkg/journal"
	"agentteam/pkg/roster"
	"agentteam/pkg/team"
)

// Read sums up the model calls in all journals of a team, from sequence from of
// their stream up to its present end. It holds one record at a time, however many
// there are. Errors: Unavailable.
func Read(ctx context.Context, t *broker.Storage, from uint64, by By) (Table, error) {
	var roles map[team.AgentID]string
	if by == ByRole {
		members, err := roster.New(t).List(ctx)
		if err != nil {
			return Table{}, err
		}
		roles = make(map[team.AgentID]string, len(members))
		for _, m := range members {
			roles[m.AgentID] = m.Role
		}
	}
	tally := NewTally(by, roles)
	err := journal.Each(ctx, t, from, func(r journal.Record) {
		if c, ok := callOf(r); ok {
			tally.Add(c)
		}
	})
	return tally.Table(), err
}
