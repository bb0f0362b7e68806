package usage

import (
	"context"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/team"
)

// Past sums up a member's work so far, as far as its journal holds it.
type Past struct {
	Turns        uint64
	Alias, Model string // that gave its last turn
	Sum
}

// Members returns the pasts of these members (no members: of all) that ever had a turn or a refusal, as far as the
// journals still hold them. Errors: Unavailable.
func Members(ctx context.Context, t *broker.Storage, members ...team.AgentID) (map[team.AgentID]Past, error) {
	pasts := map[team.AgentID]Past{}
	err := journal.Each(ctx, t, 1, func(r journal.Record) error {
		c, ok := callOf(r)
		if !ok {
			return nil
		}
		p := pasts[c.Agent]
		p.add(c)
		if r.Kind == journal.Turn && r.Agent == c.Agent { // a turn of its subagents is not its own
			p.Turns++
			p.Alias, p.Model = c.Alias, c.Model
		}
		pasts[c.Agent] = p
		return nil
	}, members...)
	return pasts, err
}
