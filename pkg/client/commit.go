package client

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"

	"agentteam/pkg/git/gitrepo"
	"agentteam/pkg/git/mergequeue"
	"agentteam/pkg/git/worktree"
	"agentteam/pkg/team"
)

// CompleteWith completes a task that a person's seat holds, and merges its work into the
// integration branch: ref is a branch, a tag or a hash in the checkout in dir, on this machine, and
// includes all earlier commits that the integration branch lacks. They become one commit: merged
// onto the head here, where the check runs on the merged files, and then by the queue like any
// member's. It blocks until a process of the team has merged it. If ctx ends before, the work stays
// in the queue: the same call again waits for the same outcome. Work that the branch has already is
// completed without the queue.
//
// Errors: those of [Board.Complete]; Conflict, with the files, if the work does not merge, and
// InvalidArgument or BudgetExceeded for changes that no task may make: then the seat still holds
// the task; InvalidState if the queue has returned it, and then it is free; NotFound for an unknown
// commit; InvalidState for a team whose members share the workspace.
func (t Board) CompleteWith(ctx context.Context, id team.TaskID, as team.AgentID, summary, dir, ref string) (team.Task, error) {
	done := team.Done{Summary: summary}
	task, h, err := t.mayComplete(ctx, id, as, done)
	if err != nil {
		return team.Task{}, err
	}
	record, err := t.record(ctx)
	if err != nil {
		return team.Task{}, err
	}
	if !record.HasBranch() {
		return team.Task{}, team.Errorf(team.InvalidState, "the members of team %s share the workspace%s: a task brings no commit there", t.id(), because(record)).
			WithHint("leave --commit out")
	}
	records := mergequeue.New(t.team)
	if e, err := records.Get(ctx, id); err == nil && e.Epoch == task.Epoch && e.State == mergequeue.Waiting {
		return t.merged(ctx, records, task) // an earlier call has submitted it
	}
	p, err := t.position(ctx)
	if err != nil {
		return team.Task{}, err
	}
	commit, bundle, err := p.take(ctx, dir, ref, gitrepo.Message{Subject: task.Title, Body: summary, Agent: h.Agent, Task: id})
	if err != nil {
		return team.Task{}, err
	}
	if done.Digest, err = t.verify(ctx, task, h, commit); err != nil {
		return t.failCheck(ctx, task, h, err)
	}
	if bundle == nil {
		return t.board.Complete(ctx, id, h, task.Epoch, done)
	}
	e := mergequeue.Entry{Task: id, Epoch: task.Epoch, Incarnation: task.Incarnation, Agent: h.Agent, Base: p.head, Check: task.Check, Supersedes: task.Supersedes, Title: task.Title,
		Summary: summary, Deliverable: done.Digest, Returned: task.ReturnedEpochs()}
	if task.Check != "" {
		_, e.Links, _ = worktree.LinksOf(ctx, t.client.workspaces, slog.New(slog.DiscardHandler), record, h.Role)
	}
	levels, ok := t.client.workspaces.(interface {
		Level(context.Context, team.Team, string) team.Sandbox
	})
	if ok {
		e.Sandbox = levels.Level(ctx, record, h.Role)
	}
	if _, err := records.Submit(ctx, e, bundle); err != nil {
		return team.Task{}, err
	}
	return t.merged(ctx, records, task)
}

// take returns one commit on the head with a person's work, and its bundle; the head and no bundle
// if the head has all of it. No ref moves.
func (p position) take(ctx context.Context, dir, ref string, m gitrepo.Message) (commit gitrepo.Hash, bundle []byte, err error) {
	c, err := gitrepo.Inspect(ctx, dir)
	if err == nil {
		c, err = c.At(ctx, ref)
	}
	if err == nil {
		err = p.Repo.Fetch(ctx, c)
	}
	if err != nil {
		return "", nil, err
	}
	merged, err := p.Repo.Merge(ctx, p.head, c.Head)
	if err != nil {
		return "", nil, err
	}
	if len(merged.Conflicts) > 0 {
		var files []string
		for _, f := range merged.Conflicts {
			files = append(files, f.Path)
		}
		return "", nil, team.Errorf(team.Conflict, "commit %s does not merge with the line: both have changed %s", c.Head.Short(), team.Clip(strings.Join(files, ", "), 500)).
			WithHint("`teamctl land --publish` makes the branch %s in your repository: merge that, commit, and name the new commit", p.Repo.Branch())
	}
	if commit, err = p.Repo.Commit(ctx, merged.Tree, m, p.head); err != nil {
		return "", nil, err
	}
	files, err := p.Repo.Files(ctx, p.head, commit)
	if err != nil || len(files) == 0 {
		return p.head, nil, err
	}
	var b bytes.Buffer
	if err = p.Repo.Bundle(ctx, &b, p.head, commit); err == nil {
		_, err = p.Repo.Import(ctx, b.Bytes(), p.head) // refuses what the queue would refuse
	}
	return commit, b.Bytes(), err
}

// merged waits for the outcome of a task whose work was submitted.
func (t *core) merged(ctx context.Context, records *mergequeue.Records, was team.Task) (team.Task, error) {
	if err := records.Over(ctx, was.ID, was.Epoch); err != nil {
		return team.Task{}, err
	}
	task, err := t.board.Get(ctx, was.ID)
	if err != nil || task.Status == team.Completed && task.Epoch == was.Epoch {
		return task, err
	}
	o, err := records.Outcome(ctx, was.ID, was.Epoch)
	switch {
	case errors.Is(err, team.NotFound):
		return team.Task{}, team.Errorf(team.Conflict, "%s was taken back while it waited to be merged: %s", was.ID, task.Reason)
	case err != nil:
		return team.Task{}, err
	}
	return team.Task{}, team.Errorf(team.InvalidState, "%s was not merged: %s", was.ID, o.Reason).
		WithHint("the task is %s; `teamctl tasks get %s` shows why", task.Status, was.ID)
}
