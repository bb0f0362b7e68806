package client

import (
	"context"

	"agentteam/pkg/store/tokenstream"
	"agentteam/pkg/team"
)

// Live calls f for each chunk of text that the models of these agents are writing, or of all agents
// if none is named, until ctx ends; then it returns nil. See [tokenstream.Listen].
func (t *Team) Live(ctx context.Context, agents []team.AgentID, f func(team.Delta)) error {
	return tokenstream.Listen(ctx, t.team, agents, f)
}
