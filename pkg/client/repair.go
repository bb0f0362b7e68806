package client

import (
	"context"

	"agentteam/pkg/client/repair"
	"agentteam/pkg/store/journal"
)

// Damaged returns the records of the team that cannot be read, by key; takes is what a
// conversation takes. Errors: Unavailable.
func (t *Team) Damaged(ctx context.Context, takes journal.Takes) ([]repair.Damage, error) {
	return t.repairer(takes).Find(ctx)
}

// Repair mends one of them and returns what was done: nothing for a record that can be read.
// Errors: NotFound; InvalidState if no copy of it can be read; Unavailable.
func (t *Team) Repair(ctx context.Context, key string, takes journal.Takes) ([]repair.Damage, error) {
	return t.repairer(takes).Mend(ctx, key)
}

// Inboxes returns the members that have read further in the team's mail than it reaches. Errors:
// Unavailable.
func (t *Team) Inboxes(ctx context.Context) ([]repair.Damage, error) {
	return t.repairer(nil).Inboxes(ctx)
}

func (t *core) repairer(takes journal.Takes) *repair.Repairer {
	return repair.New(repair.Options{Team: t.team, Publish: t.client.registry.Publish, Takes: takes})
}
