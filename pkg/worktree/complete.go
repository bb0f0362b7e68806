package worktree

import (
	"context"
	"errors"
	"time"

	"agentteam/pkg/line"
	"agentteam/pkg/merge"
	"agentteam/pkg/team"
	"agentteam/pkg/tool/workspace"
)

// Complete brings the files of a task, which the member holds and which is done as in d, into
// the line, and completes it. It waits until the queue has merged them, however long others go
// first. If ctx ends before, the work stays in the queue: the same call again waits for the same
// outcome. A task that has changed no file is completed without it.
//
// Errors: Busy for a leader whose work waits long, as if ctx had ended; InvalidState if the work was not merged, with all that the next holder needs to know,
// and then the task is put back; those of [board.Hand.Complete]; those of [line.Tree.Commit], and InvalidArgument
// or BudgetExceeded for what no task may bring in: then the member still holds the task.
func (l *Line) Complete(ctx context.Context, t team.Task, d team.Done) (team.Task, error) {
	p, ws, err := l.placeOf(t)
	if err != nil {
		return t, err
	}
	now := time.Now().UTC()
	bundle, err := p.tree.Commit(ctx, ws.Commands(), line.Message{Subject: t.Title, Body: d.Summary, Agent: l.o.Member.AgentID, Task: t.ID, Time: now})
	if err != nil {
		return t, err
	}
	if bundle == nil {
		return l.o.Hand.Complete(ctx, t.ID, d)
	}
	if err := l.refused(ctx, bundle, p.tree.Base); err != nil {
		return t, err
	}
	e := merge.Entry{Task: t.ID, Epoch: t.Epoch, Incarnation: t.Incarnation, Agent: l.o.Member.AgentID, Base: p.tree.Base, Check: t.Check, Title: t.Title,
		Summary: d.Summary, Deliverable: d.Digest, Returned: t.ReturnedEpochs()}
	if l.o.Level != nil {
		e.Sandbox = l.o.Level(ctx, l.o.Record(), l.o.Member.Role)
	}
	if t.Check != "" {
		_, e.Links, _ = l.links(ctx, l.o.Member.Role)
	}
	p.submitted.Store(true) // before it is: without an answer it may be
	if _, err := l.records.Submit(ctx, e, bundle); err != nil {
		if code := team.CodeOf(err); code == team.InvalidArgument || code == team.Conflict {
			p.submitted.Store(false)
		}
		return t, err
	}
	wait := l.records.Over
	if l.o.Member.AgentID == team.Leader {
		wait = l.over
	}
	if err := wait(ctx, t.ID, t.Epoch); err != nil {
		return t, err
	}
	return l.outcome(ctx, t)
}

// refused returns why the queue would refuse work, such as a repository within the tree: refused here, its holder still has the task and
// the files. What this host cannot judge now the queue judges.
func (l *Line) refused(ctx context.Context, bundle []byte, base line.Hash) error {
	site, _, err := l.at(ctx)
	if err == nil {
		_, err = site.Repo.Import(ctx, bundle, base)
	}
	if code := team.CodeOf(err); code == team.InvalidArgument || code == team.BudgetExceeded {
		return err
	}
	return nil
}

// placeOf returns the open tree of a task that the member holds, and the workspace there.
func (l *Line) placeOf(t team.Task) (*place, *workspace.Workspace, error) {
	if p, ws := l.opened(workspace.Work{Member: l.o.Member, Task: t}); ws != nil {
		return p, ws, nil
	}
	return nil, nil, team.Errorf(team.InvalidState, "%s has no tree here", t.ID).WithHint("try again")
}

// outcome returns what came of a task that was submitted.
func (l *Line) outcome(ctx context.Context, was team.Task) (team.Task, error) {
	// The hand learns it too.
	if t, err := l.o.Hand.Confirm(ctx, was.ID); err == nil {
		return t, nil // it was taken again meanwhile
	}
	t, err := l.tasks.board.Get(ctx, was.ID)
	if err != nil {
		return was, err
	}
	if t.Status == team.Completed && t.Epoch == was.Epoch {
		return t, nil
	}
	o, err := l.records.Outcome(ctx, was.ID, was.Epoch)
	switch {
	case errors.Is(err, team.NotFound) && t.Epoch != was.Epoch: // if there was one, it was removed with the task's end
		return t, team.Errorf(team.Conflict, "%s was not merged, and you do not hold it any more: it is %s under epoch %d", was.ID, t.Status, t.Epoch)
	case errors.Is(err, team.NotFound):
		return t, team.Errorf(team.Conflict, "%s was taken from you while it waited to be merged: %s", was.ID, t.Reason)
	case err != nil:
		return t, err
	}
	err = team.Errorf(team.InvalidState, "%s was not merged: %s", was.ID, report(was.ID, was.Epoch, o))
	if t.Status == team.Failed {
		return t, team.Errorf(team.InvalidState, "%w", err).WithModelHint("that was the last attempt: %s has failed", was.ID)
	}
	return t, team.Errorf(team.InvalidState, "%w", err).WithModelHint("%s is no longer yours: it is free for whoever takes it", was.ID)
}

// Merging reports whether the work of a task waits to be merged, under the epoch of its present
// hold. Then the queue completes it or puts it back, whatever becomes of its holder. Errors:
// Unavailable.
func (l *Line) Merging(ctx context.Context, t team.Task) (bool, error) {
	return Merging(ctx, l.records, l.o.Record(), t)
}

// Merging is [Line.Merging] for who is no member. A team whose members share the workspace by
// now has no queue.
func Merging(ctx context.Context, r *merge.Records, in team.Team, t team.Task) (bool, error) {
	if !in.OnLine() {
		return false, nil
	}
	e, err := r.Get(ctx, t.ID)
	if errors.Is(err, team.NotFound) || errors.Is(err, team.ErrUnreadable) {
		return false, nil
	}
	return err == nil && e.Epoch == t.Epoch && e.State != merge.Withdrawn, err
}
