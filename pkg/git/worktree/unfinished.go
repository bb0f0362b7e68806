package worktree

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"agentteam/pkg/git/gitrepo"
	"agentteam/pkg/git/mergequeue"
	"agentteam/pkg/store/board"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
	"agentteam/pkg/tool/workspace"
)

// mostLeftOut bounds the unstored files that a task's record names.
const mostLeftOut = 10

// Unfinished stores the files of a task that is about to be put back, which the member or an earlier incarnation of it holds, and
// returns them for the next holder; nil if none has changed, and if members share the workspace. Files that cannot be stored until
// ctx or that of [Options.ToStore] ends stay in the tree, and the result names this host.
func (l *Workspaces) Unfinished(ctx context.Context, t team.Task) *team.Try {
	record := l.o.Record()
	if !record.HasBranch() {
		return nil
	}
	if l.o.ToStore != nil {
		within, done := l.o.ToStore(ctx)
		defer done()
		ctx = within
	}
	work, err := l.store(ctx, workspace.Work{Team: record, Member: l.o.Member, Task: t})
	if err != nil {
		l.o.Logger.WarnContext(ctx, "unfinished work is not stored; it stays on this host", "task", t.ID, "err", err)
		return t.LeftOn(host())
	}
	return work
}

// Taken stores the files of a task that was taken from the member, which had held it as t, and adds them to the task's record. The
// task was not kept back for that: a next holder that has already begun gets a notice of them. A later incarnation of the member
// that has adopted the task continues in its tree.
func (l *Workspaces) Taken(ctx context.Context, t team.Task) {
	now, err := l.tasks.board.Get(ctx, t.ID)
	goesOn := now.Status == team.InProgress && mergequeue.TreeName(now.Assignee, now) == mergequeue.TreeName(t.Assignee, t)
	if err == nil && (now.Status == team.Completed || goesOn) {
		return
	}
	work := l.Unfinished(ctx, t)
	if work == nil {
		return
	}
	if now, err = l.tasks.board.Left(ctx, t.ID, *work); err == nil && now.Status == team.InProgress && l.o.Notify != nil {
		err = l.o.Notify(ctx, now.Assignee, fmt.Sprintf("left-%s-%d", t.ID, t.Epoch), leftText(*work, now))
	}
	if err != nil {
		l.o.Logger.WarnContext(ctx, "the record of a task does not name the work of a former holder", "task", t.ID, "work", *work, "err", err)
	}
}

// leftText returns the notice to the present holder of a task that an earlier holder's work was stored after it had begun.
func leftText(y team.Try, t team.Task) string {
	where := fmt.Sprintf("They are on host %s only.", y.Host)
	if y.Commit != "" {
		where = fmt.Sprintf("If `git status` lists changes that are not yours, these are they: continue with them. Else your tree is older: `teamctl diff %s` shows them to a person.", t.ID)
	}
	return fmt.Sprintf("%s held %s before you, and its changes, which are not finished, were stored only now. %s", y.By, t.ID, where)
}

// store is Unfinished, with its errors.
func (l *Workspaces) store(ctx context.Context, w workspace.Work) (*team.Try, error) {
	l.opening.Lock()
	defer l.opening.Unlock()
	site, _, err := l.at(ctx)
	if err != nil {
		return nil, err
	}
	p, ws := l.opened(w)
	if ws == nil {
		if _, there, err := mergequeue.LatestTree(site.Repo, name(w)); err != nil || !there {
			return nil, err // nothing was done here
		}
		_, release, err := l.openLocked(ctx, w, workspace.Options{})
		if err != nil {
			return nil, err
		}
		defer release()
		p, ws = l.opened(w)
	}
	bundle, leftOut, err := p.tree.Save(ctx, ws.Commands(), gitrepo.Message{Subject: "Unfinished: " + w.Task.Title, Agent: l.o.Member.AgentID, Task: w.Task.ID})
	if err != nil {
		return nil, err
	}
	if bundle == nil && len(leftOut) == 0 {
		p.over.Store(true)
		return nil, nil
	}
	y := w.Task.LeftOn(host())
	if y.LeftOut = team.Clip(team.Some(leftOut, mostLeftOut), 2000); len(leftOut) == 0 {
		y.Host = ""
	} else if err := p.tree.Keep(w.Task.Epoch); err != nil {
		return nil, err
	}
	if bundle != nil {
		u, err := site.Keep(ctx, mergequeue.Work{Task: w.Task.ID, Epoch: w.Task.Epoch}, bundle, p.tree.Base)
		if err != nil {
			return nil, err
		}
		if y.Commit, y.Base = string(u.Files), string(p.tree.Base); u.Whole != u.Files {
			y.Ignored = string(u.Whole)
		}
	}
	p.over.Store(len(leftOut) == 0)
	return y, nil
}

// left returns the tree on this host of an earlier hold of w's task by the same member; "" if there is none, or if newer work is
// stored.
func left(repo *gitrepo.Repo, w workspace.Work) (tree string, err error) {
	all, err := repo.Trees()
	stored, _ := w.Task.Work()
	newest := int64(-1)
	for _, name := range all {
		parts := strings.Split(name, ".")
		if len(parts) < 3 || parts[0] != strings.ToLower(string(w.Task.ID)) || team.AgentID(parts[1]) != w.Member.AgentID {
			continue
		}
		since, bad := strconv.ParseInt(parts[2], 36, 64)
		if epoch, whole := repo.EpochOf(name); bad == nil && whole && epoch >= stored.Epoch && since > newest {
			newest, tree = since, name
		}
	}
	return tree, err
}

// needs returns a function that reports whether a tree is whole and belongs to a task that may not be over, or that was cancelled
// with unstored files: these may be nowhere else.
func needs(repo *gitrepo.Repo, listed board.Listing) func(tree string) bool {
	open, cancelled := map[string]bool{}, map[string]team.Task{}
	for _, bad := range listed.Bad {
		_, id := subject.ParseKey(bad.Key)
		open[strings.ToLower(id)] = true
	}
	for _, t := range listed.Tasks {
		if t.Status == team.Cancelled {
			cancelled[strings.ToLower(string(t.ID))] = t
		}
		open[strings.ToLower(string(t.ID))] = t.Status != team.Completed && t.Status != team.Cancelled
	}
	return func(tree string) bool {
		id, _, _ := strings.Cut(tree, ".")
		epoch, whole := repo.EpochOf(tree)
		return whole && (open[id] || slices.ContainsFunc(cancelled[id].Returned, func(y team.Try) bool { return y.Epoch == epoch && y.Host != "" }))
	}
}

// onto moves the tree of a task, which is open in ws, to the head of the integration branch with its work on top. It returns the
// files with conflicts. If that fails, the tree stays as it is.
func (l *Workspaces) onto(ctx context.Context, site *mergequeue.Site, w workspace.Work, t *gitrepo.Tree, ws *workspace.Workspace) ([]gitrepo.Conflict, error) {
	head, err := site.Bring(ctx)
	if err != nil || head == t.Base {
		return nil, err
	}
	work := t.Base
	bundle, _, err := t.Commit(ctx, ws.Commands(), gitrepo.Message{Subject: w.Task.Title, Agent: l.o.Member.AgentID, Task: w.Task.ID})
	if err == nil && bundle != nil {
		work, err = site.Repo.Import(ctx, bundle, t.Base)
	}
	if err != nil {
		return nil, err
	}
	m, err := site.Repo.Merge(ctx, head, work)
	if err != nil {
		return nil, err
	}
	moved, err := t.Onto(ctx, ws.Commands(), work, m.Tree, head)
	if err == nil && !moved {
		err = fmt.Errorf("its files change while it is brought to %s", head.Short())
	}
	return m.Conflicts, err
}
