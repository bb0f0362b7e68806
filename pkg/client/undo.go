package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"agentteam/pkg/git/gitrepo"
	"agentteam/pkg/team"
)

// Undo reverts the changes of a completed task on the integration branch, by a separate commit, and
// notifies the leader by mail; by is a person's seat, "" the user. The task stays completed, and
// its record names that commit. A task that was undone before is returned, with undone false. The
// call can be repeated.
//
// Errors: NotFound; InvalidState, with the files and the tasks, if later work builds on it, for a
// task that has merged nothing, and for a team without an integration branch; PermissionDenied for
// an agent; Conflict if the team was saved; Unavailable, and then the outcome is unknown.
func (t Branch) Undo(ctx context.Context, id team.TaskID, by team.AgentID) (task team.Task, undone bool, err error) {
	if err := t.here(ctx); err != nil {
		return task, false, err
	}
	if by != "" {
		if err := t.requireSeat(ctx, by); err != nil {
			return task, false, err
		}
	}
	if task, err = t.board.Get(ctx, id); err != nil || task.Undone != "" {
		return task, false, err
	}
	if shared, err := t.shares(ctx, id); err != nil || shared && task.Status == team.Completed {
		if err == nil {
			task, err = t.undoInFolder(ctx, task, by)
		}
		return task, err == nil, err
	}
	if err := task.Undoable(); err != nil {
		return task, false, err
	}
	p, err := t.position(ctx)
	if err != nil {
		return task, false, err
	}
	commit, err := p.undo(ctx, task, cmp.Or(by, team.UserAgent))
	if err != nil {
		return task, false, fmt.Errorf("undo %s: %w", id, err)
	}
	task, err = t.noteUndone(ctx, task, by, string(commit), "commit "+commit.Short()+" of the line takes back what it had changed")
	return task, err == nil, err
}

// noteUndone notifies the leader that a task was undone, and how, and then writes that into its
// record: a caller that is killed in between repeats both, and the message's id keeps a second one
// out.
func (t Branch) noteUndone(ctx context.Context, task team.Task, by team.AgentID, commit, how string) (team.Task, error) {
	mail := NewMail{As: by, To: team.Leader, Text: fmt.Sprintf("I have undone %s (%s): %s. The task stays completed. "+
		"If that work is still to be done in another way, create a task for it.", task.ID, task.Title, how)}
	if _, _, err := t.mailbox.Send(ctx, mail.message("undo-"+string(task.ID)+"-"+commit)); err != nil {
		return task, fmt.Errorf("%s is undone, but its leader was not told: %w", task.ID, err)
	}
	return t.board.Undo(ctx, task.ID, cmp.Or(by, team.UserAgent), commit)
}

// undo moves the integration branch to a commit that reverts a task's, and returns it; the existing
// one if an earlier call has made it.
func (p position) undo(ctx context.Context, task team.Task, by team.AgentID) (gitrepo.Hash, error) {
	m := gitrepo.Message{Subject: fmt.Sprintf("Undo %s: %s", task.ID, task.Title), Agent: by, Undoes: task.ID}
	for head := p.head; ; {
		since, err := p.Repo.Log(ctx, gitrepo.Hash(task.Commit), head)
		if err != nil {
			return "", err
		}
		if i := slices.IndexFunc(since, func(e gitrepo.Entry) bool { return e.Undoes == task.ID }); i >= 0 {
			return since[i].Commit, nil
		}
		next, err := p.Repo.Undo(ctx, head, gitrepo.Hash(task.Commit), m)
		if err != nil {
			return "", err
		}
		err = p.Advance(ctx, head, next)
		if !errors.Is(err, team.Conflict) {
			return next, err
		}
		now, berr := p.Bring(ctx)
		if berr != nil || now == head || now == next { // the branch here was moved by hand
			return "", cmp.Or(berr, err)
		}
		head = now // others have merged meanwhile
	}
}
