package client

import (
	"context"

	"agentteam/pkg/store/audit"
)

// Audit returns the recorded tool calls of the team's agents, also of those that have left, in
// order. Errors: Unavailable.
func (t *Team) Audit(ctx context.Context, q audit.Query) ([]audit.Entry, error) {
	return audit.Read(ctx, t.team, q)
}
