package worktree

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"agentteam/pkg/git/gitrepo"
	"agentteam/pkg/git/mergequeue"
	"agentteam/pkg/shutdown"
	"agentteam/pkg/team"
	"agentteam/pkg/tool/workspace"
)

// Complete submits the files of a task, which the member holds and which is done as in d, to the merge queue. It waits until
// the queue has merged them, behind earlier entries, and completed the task. If ctx ends before, the work stays in the queue:
// the same call again waits for the same outcome. A task without changed files is completed without the queue, after its check.
// The result's summary names new files that git ignores, or that are in a submodule: the branch does not get them. If a task has
// only such files, the first call that finds them is refused.
//
// Errors: Busy for a leader whose work waits long, as if ctx had ended; InvalidState if the work was not merged, with all facts
// for its next holder: the member itself, whose tree is then at the new head with its changes in it, unless another member is
// idle; those of [board.ClaimSlot.Complete]; those of [gitrepo.Tree.Commit], and InvalidArgument or BudgetExceeded for content
// that no task may add: then the member still holds the task.
func (l *Workspaces) Complete(ctx context.Context, t team.Task, d team.Done) (team.Task, error) {
	p, ws, err := l.placeOf(t)
	if err != nil {
		return t, err
	}
	now := time.Now().UTC()
	m := gitrepo.Message{Subject: t.Title, Body: d.Summary, Agent: l.o.Member.AgentID, Task: t.ID, Time: now}
	var stored []string
	if d.Digest != "" {
		stored = append(stored, t.DeliverablePath)
	}
	for _, a := range d.Artifacts {
		stored = append(stored, a.Path)
	}
	bundle, leftOut, err := p.tree.Commit(ctx, ws.Commands(), m, stored...)
	if err == nil && len(leftOut) > 0 {
		d.Summary, err = p.without(t.ID, d.Summary, team.Some(leftOut, mostLeftOut), bundle == nil)
	}
	if err != nil {
		return t, err
	}
	if bundle == nil && l.o.Check != nil {
		if err := l.o.Check(ctx, t, ws); err != nil {
			return t, err
		}
	}
	if bundle == nil {
		t, err := l.o.Slot.Complete(ctx, t.ID, d)
		p.over.Store(err == nil)
		return t, err
	}
	if err := l.refused(ctx, bundle, p.tree.Base); err != nil {
		return t, err
	}
	e := mergequeue.Entry{Task: t.ID, Epoch: t.Epoch, Incarnation: t.Incarnation, Agent: l.o.Member.AgentID, Base: p.tree.Base, Check: t.Check, Supersedes: t.Supersedes, Title: t.Title,
		Summary: d.Summary, Deliverable: d.Digest, Artifacts: d.Artifacts, Returned: t.ReturnedEpochs()}
	if l.o.Level != nil {
		e.Sandbox = l.o.Level(ctx, l.o.Record(), l.o.Member.Role)
	}
	if t.Check != "" || l.o.Record().Policies.Check != "" {
		_, e.Links, _ = l.links(ctx, l.o.Member.Role)
	}
	p.submitted.Store(true) // before Submit: without an answer it may be submitted
	if _, err := l.records.Submit(ctx, e, bundle); err != nil {
		if code := team.CodeOf(err); code == team.InvalidArgument || code == team.Conflict {
			p.submitted.Store(false)
		}
		return t, err
	}
	return l.answer(ctx, t)
}

// sizes are those of files in a list of names.
var sizes = regexp.MustCompile(` \([^()]*\)`)

// without returns a summary that names the files which the branch does not get. If nothing else has changed it is an error the
// first time: the work may be in these files.
func (p *place) without(id team.TaskID, summary, names string, only bool) (string, error) {
	if seen := sizes.ReplaceAllString(names, ""); only && p.leftOut != seen { // a file that grows is the same
		p.leftOut = seen
		return summary, team.Errorf(team.InvalidState, "%s is not completed: nothing that git would merge has changed, and the branch does not get %s (ignored, or of a submodule)", id, names).
			WithModelHint("`git add -f` such a file, write it to another path, or name it in artifacts, which stores it; if it is not needed, complete %s again", id)
	}
	note := "\n\nNot in the branch (ignored, or of a submodule): " + team.Clip(names, 2000)
	return strings.ToValidUTF8(cutMiddle(summary, team.MaxTextBytes-len(note)-100), "") + note, nil
}

// answer waits until a submitted task is over, and returns the result.
func (l *Workspaces) answer(ctx context.Context, t team.Task) (team.Task, error) {
	wait := l.records.Over
	if l.o.Member.AgentID == team.Leader {
		wait = l.over
	}
	err := wait(ctx, t.ID, t.Epoch)
	if err != nil && ctx.Err() == nil {
		return t, err
	}
	// The end of the hold may have interrupted this call: the outcome of the work is its answer nevertheless.
	look, done := shutdown.Outlive(ctx, outcomeWithin)
	defer done()
	if err != nil {
		if now, failed := l.tasks.board.Get(look, t.ID); failed != nil || now.Status == team.InProgress && now.Epoch == t.Epoch {
			return t, err
		}
	}
	return l.outcome(look, t)
}

// outcomeWithin bounds the time in which an interrupted call reads the outcome of its work.
const outcomeWithin = shutdown.Tools

// refused returns the reason why the queue would refuse work, such as a repository within the tree, or why it is not finished:
// after a refusal here, its holder still has the task and the files. The queue judges work that this host cannot judge now.
func (l *Workspaces) refused(ctx context.Context, bundle []byte, base gitrepo.Hash) error {
	site, _, err := l.at(ctx)
	var marked []string
	if err == nil {
		var commit gitrepo.Hash
		if commit, err = site.Repo.Import(ctx, bundle, base); err == nil {
			marked, err = site.Repo.Marked(ctx, base, commit)
		}
	}
	if len(marked) > 0 {
		return team.Errorf(team.InvalidArgument, "both sides of a conflict are still in %s, between <<<<<<< and >>>>>>>", team.Some(marked, mostNamed)).
			WithHint("bring the two together, remove the markers, and complete it again")
	}
	if code := team.CodeOf(err); code == team.InvalidArgument || code == team.BudgetExceeded {
		return err
	}
	return nil
}

// placeOf returns the open tree of a task that the member holds, and the workspace there.
func (l *Workspaces) placeOf(t team.Task) (*place, *workspace.Workspace, error) {
	if p, ws := l.opened(workspace.Work{Member: l.o.Member, Task: t}); ws != nil {
		return p, ws, nil
	}
	return nil, nil, team.Errorf(team.InvalidState, "%s has no tree here", t.ID).WithHint("try again")
}

// outcome returns the result of a submitted task.
func (l *Workspaces) outcome(ctx context.Context, was team.Task) (team.Task, error) {
	// Confirm updates the slot, too.
	t, err := l.o.Slot.Confirm(ctx, was.ID)
	if err == nil {
		if t.Unmerged+t.Attempts > was.Unmerged+was.Attempts && name(workspace.Work{Task: t}) == name(workspace.Work{Task: was}) {
			return l.notMerged(ctx, was, t)
		}
		return t, nil // it was taken again meanwhile
	}
	if t, err = l.tasks.board.Get(ctx, was.ID); err != nil {
		return was, err
	}
	p, _ := l.opened(workspace.Work{Member: l.o.Member, Task: was})
	if t.Status == team.Completed && t.Epoch == was.Epoch {
		if p != nil {
			p.over.Store(true)
		}
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
	return t, gone(t, team.Errorf(team.InvalidState, "%s was not merged: %s", was.ID, report(was.ID, was.Epoch, o)))
}

// gone returns the error of unmerged work for a member that no longer holds the task t.
func gone(t team.Task, why error) error {
	switch t.Status {
	case team.Failed:
		return team.Errorf(team.InvalidState, "%w", why).WithModelHint("that was the last attempt: %s has failed", t.ID)
	case team.InProgress:
		return team.Errorf(team.InvalidState, "%w", why).WithModelHint("%s is no longer yours: %s has it", t.ID, t.Assignee)
	}
	return team.Errorf(team.InvalidState, "%w", why).WithModelHint("%s is no longer yours: it is free for whoever takes it", t.ID)
}

// notMerged has the member continue with a task whose work was returned to it, on top of the present integration branch: it
// knows the purpose of its work best. But an idle member that could take the task, and has no part in the conflict, gets it: it
// may see better how both fit.
func (l *Workspaces) notMerged(ctx context.Context, was, t team.Task) (team.Task, error) {
	why := team.Errorf(team.InvalidState, "%s was not merged: %s", was.ID, t.Reason)
	p, ws, err := l.placeOf(t)
	if err != nil {
		return t, why
	}
	p.submitted.Store(false)
	if o, err := l.records.Outcome(ctx, was.ID, was.Epoch); err == nil && l.third(ctx, t, o) {
		back, err := l.o.Slot.GiveBack(ctx, t.ID, team.GiveBack{Freed: team.Freed{Reason: t.Reason}, Others: others(o)})
		if err == nil {
			return back, gone(back, why)
		}
		l.o.Logger.WarnContext(ctx, "a task is not given to an idle member; its holder continues", "task", t.ID, "err", err)
	}
	l.opening.Lock()
	defer l.opening.Unlock()
	site, _, err := l.at(ctx)
	if err == nil {
		_, err = l.onto(ctx, site, workspace.Work{Member: l.o.Member, Task: t}, p.tree, ws)
	}
	if err != nil {
		l.o.Logger.WarnContext(ctx, "a tree continues at an older commit of the line", "task", t.ID, "tree", p.tree.Root, "err", err)
		return t, team.Errorf(team.InvalidState, "%w", why).WithModelHint("%s is still yours, and your files are as you have left them: they could not be brought to what the line has now (%s)", t.ID, team.Line(err))
	}
	attempt := ""
	if t.Attempts > was.Attempts {
		attempt = fmt.Sprintf("; this was attempt %d of %d", t.Attempts, team.MaxAttempts)
	}
	return t, team.Errorf(team.InvalidState, "%w", why).WithModelHint("%s is still yours, and your files are those of the line with your changes in them: continue there, and complete it again%s", t.ID, attempt)
}

// third reports whether another member could take t now that did not do the conflicting work. The leader keeps its task.
func (l *Workspaces) third(ctx context.Context, t team.Task, o mergequeue.Outcome) bool {
	if l.o.Peers == nil || o.Kind != mergequeue.Conflicting || l.o.Member.AgentID == team.Leader {
		return false
	}
	s, err := l.o.Peers(ctx)
	if err != nil {
		l.o.Logger.DebugContext(ctx, "it is not known which members are idle", "err", err)
	}
	return err == nil && s.Idle(t, append(others(o), l.o.Member.AgentID)...)
}

// Merging reports whether the work of a task, under the epoch of its present hold, waits in the queue. Then the queue completes
// it or puts it back, also if its holder is gone. Errors: Unavailable.
func (l *Workspaces) Merging(ctx context.Context, t team.Task) (bool, error) {
	return Merging(ctx, l.records, l.o.Record(), t)
}

// Merging is [Workspaces.Merging] for a caller that is not a member. A team whose members now share the workspace has no queue.
func Merging(ctx context.Context, r *mergequeue.Records, in team.Team, t team.Task) (bool, error) {
	if !in.HasBranch() {
		return false, nil
	}
	e, err := r.Get(ctx, t.ID)
	if errors.Is(err, team.NotFound) || errors.Is(err, team.ErrUnreadable) {
		return false, nil
	}
	return err == nil && e.Epoch == t.Epoch && e.State != mergequeue.Withdrawn, err
}
