package client

import (
	"context"

	"agentteam/pkg/store/audit"
)

// Audit returns what agents of the team have done with tools, also those that have left, in the
// order in which it was recorded. Errors: Unavailable.
func (t *Team) Audit(ctx context.Context, q audit.Query) ([]audit.Entry, error) {
	return audit.Read(ctx, t.team, q)
}
