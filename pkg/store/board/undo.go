package board

import (
	"context"
	"errors"

	"agentteam/pkg/team"
)

// Undo stores the commit of the integration branch that undoes the work of a completed task; see [team.Task.Undo]. A task
// that has such a commit is not written. Errors: NotFound; InvalidState; Unavailable, and then it can be repeated.
func (b *Board) Undo(ctx context.Context, id team.TaskID, by team.AgentID, commit string) (team.Task, error) {
	for {
		t, err := b.Get(ctx, id)
		if err != nil {
			return t, err
		}
		next, err := t.Undo(by, commit, now())
		if err != nil || t.Undone != "" {
			return t, err
		}
		if next, err = b.Rewrite(ctx, next); !errors.Is(err, team.Conflict) { // not put: that would count it as completed again
			return next, err
		}
	}
}
