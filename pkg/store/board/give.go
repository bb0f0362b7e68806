package board

import (
	"context"
	"errors"

	"agentteam/pkg/team"
)

// Give gives a task to m on behalf of a.By, which has the leader's rights. It reads Task, By and Revision of a; hand gets
// the Revision unless the task was reserved at it. hand asks the member to take the task, even from another holder.
//
// A pending task is reserved for m first, so that no other member gets it. If m cannot take it now, since it is busy or
// does not answer, or since the task is blocked, it stays reserved, and Give returns the reserved task: m takes it as soon
// as it is free. A held task changes its holder immediately or not at all, and so does a task for the leader, which takes
// no task automatically.
//
// Errors: Unavailable if m will not come, in a team with these policies; NotFound; those of hand.
func (b *Board) Give(ctx context.Context, m team.Member, p team.Policies, a team.Assignment, hand func(context.Context, team.Assignment) (team.Task, error)) (team.Task, error) {
	t, err := b.Get(ctx, a.Task)
	if err != nil {
		return team.Task{}, err
	}
	waits := t.Status == team.Pending && m.AgentID != team.Leader
	if waits {
		if why := m.Absent(p); why != "" {
			return team.Task{}, team.Errorf(team.Unavailable, "%s %s", m.AgentID, why).WithHint("choose another member")
		}
		t, err = b.Reserve(ctx, a.Task, m.AgentID, team.Actor{Holder: team.Holder{Agent: a.By}, Leads: true})
		if errors.Is(err, team.Conflict) && !errors.Is(err, team.ErrRevision) { // another agent has just claimed it
			return b.Give(ctx, m, p, a, hand)
		}
		if err != nil {
			return team.Task{}, err
		}
		a.Revision = 0 // no other member gets it now, whatever is written
	}
	a.Take, a.Epoch = true, t.Epoch
	taken, err := hand(ctx, a)
	if err == nil || !waits || ctx.Err() != nil {
		return taken, err
	}
	switch team.CodeOf(err) {
	case team.Busy, team.Blocked, team.Unavailable:
		return t, nil
	case team.Conflict: // it was offered to m as well
		if now, gerr := b.Get(ctx, a.Task); gerr == nil && now.Assignee == m.AgentID && now.Epoch > t.Epoch {
			return now, nil
		}
	}
	return taken, err
}
