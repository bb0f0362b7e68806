package client

import (
	"context"
	"slices"

	"agentteam/pkg/board/index"
	"agentteam/pkg/registry"
	"agentteam/pkg/team"
)

// List returns the part of the board that q names; see [index.List].
func (t Board) List(ctx context.Context, q team.Query) (team.Page, error) {
	if !q.Merging {
		return index.List(ctx, t.team, t.board, q)
	}
	// The index does not know the queue: it is asked for what the queue has.
	record, _, err := registry.Shown(ctx, t.team)
	if err != nil {
		return team.Page{}, err
	}
	wanted := q.IDs
	q.IDs, q.Merging = nil, false
	for id := range t.merging(ctx, record) {
		if len(wanted) == 0 || slices.Contains(wanted, id) {
			q.IDs = append(q.IDs, id)
		}
	}
	if len(q.IDs) == 0 {
		return team.Page{}, q.Validate()
	}
	p, err := index.List(ctx, t.team, t.board, q)
	if err == nil {
		err = t.Merging(ctx, p.Tasks)
	}
	p.Tasks = slices.DeleteFunc(p.Tasks, func(v team.TaskView) bool { return v.Merging == nil }) // it is another holder's now
	return p, err
}
