package board

import (
	"context"
	"errors"

	"agentteam/pkg/team"
)

// Edit changes the content of a task; see [team.Edit]. It needs the leader's rights, except that a holder may change its
// task's metadata. If the task has that content already, changed is false and nothing is written.
func (b *Board) Edit(ctx context.Context, id team.TaskID, a team.Actor, e team.Edit) (t team.Task, changed bool, err error) {
	apply := func(t team.Task) (team.Task, error) {
		if !a.Leads && (e.TouchesWork() || !t.HeldBy(a.Holder)) {
			return t, team.Errorf(team.PermissionDenied, "only the leader or a person may edit %s", id).WithHint("ask the leader")
		}
		next, err := e.Apply(t, a.Agent, now())
		if err == nil && next.Calls(t) {
			return t, errSame
		}
		return next, err
	}
	if e.TouchesGraph() {
		t, err = b.editGraph(ctx, id, e, apply)
	} else {
		t, err = b.change(ctx, id, apply)
	}
	if errors.Is(err, errSame) {
		return t, false, nil
	}
	return t, err == nil, err
}
