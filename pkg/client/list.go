package client

import (
	"context"
	"slices"

	"agentteam/pkg/git/mergequeue"
	"agentteam/pkg/store/board/index"
	"agentteam/pkg/store/registry"
	"agentteam/pkg/team"
)

// List returns the part of the board that q selects; see [index.List].
func (t Board) List(ctx context.Context, q team.Query) (team.Page, error) {
	if !q.Merging {
		return index.List(ctx, t.team, t.board, q)
	}
	// The index does not know the queue: the query names the tasks in the queue.
	record, _, err := registry.Shown(ctx, t.team)
	if err != nil {
		return team.Page{}, err
	}
	wanted, merging := q.IDs, map[team.TaskID]mergequeue.Entry{}
	q.IDs, q.Merging = nil, false
	if record.HasBranch() {
		waiting, err := mergequeue.New(t.team).Waiting(ctx)
		if err != nil {
			return team.Page{}, err
		}
		for _, e := range waiting {
			if len(wanted) == 0 || slices.Contains(wanted, e.Task) {
				q.IDs, merging[e.Task] = append(q.IDs, e.Task), e
			}
		}
	}
	if len(q.IDs) == 0 {
		return team.Page{}, q.Validate()
	}
	p, err := index.List(ctx, t.team, t.board, q)
	markMerging(p.Tasks, merging)
	p.Tasks = slices.DeleteFunc(p.Tasks, func(v team.TaskView) bool { return v.Merging == nil }) // another member holds it now
	return p, err
}
