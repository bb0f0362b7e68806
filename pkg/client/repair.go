package client

import (
	"context"

	"agentteam/pkg/client/repair"
	"agentteam/pkg/store/journal"
)

// Damaged returns the unreadable records of the team, by key; takes reports whether a conversation
// can take a record. Errors: Unavailable.
func (t *Team) Damaged(ctx context.Context, takes journal.Takes) ([]repair.Damage, error) {
	return t.repairer(takes).Find(ctx)
}

// Repair repairs one of them and returns what was done: nothing for a readable record. Errors:
// NotFound; InvalidState if no copy of it can be read; Unavailable.
func (t *Team) Repair(ctx context.Context, key string, takes journal.Takes) ([]repair.Damage, error) {
	return t.repairer(takes).Repair(ctx, key)
}

// Inboxes returns the members whose read position is beyond the end of the team's mail. Errors:
// Unavailable.
func (t *Team) Inboxes(ctx context.Context) ([]repair.Damage, error) {
	return t.repairer(nil).Inboxes(ctx)
}

func (t *core) repairer(takes journal.Takes) *repair.Repairer {
	return repair.New(repair.Options{Team: t.team, Publish: t.client.registry.Publish, Takes: takes})
}
