package worktree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"agentteam/pkg/git/gitrepo"
	"agentteam/pkg/shutdown"
	"agentteam/pkg/team"
	"agentteam/pkg/tool/workspace"
)

// forward moves the tree of a member without a task to the head. It keeps changes of the member's commands as a commit, and
// notifies the member of it: nothing merges the commit, and with the changes the member would see old files for ever. If that
// fails, the tree stays as it is.
func (l *Workspaces) forward(ctx context.Context, repo *gitrepo.Repo, t *gitrepo.Tree, ws *workspace.Workspace, head gitrepo.Hash) {
	ran := l.ran.Swap(false)
	moved, err := t.Forward(ctx, ws.Commands(), t.Base, head)
	if !moved && err == nil && !ran && !l.ran.Load() { // no command has changed anything: a process was killed while it brought the tree forward
		err = t.Reset(ctx, ws.Commands(), head)
		moved = err == nil
	}
	for tries := 0; !moved && err == nil && tries < 2; tries++ { // running commands may change more meanwhile
		var kept gitrepo.Hash
		if kept, err = l.keep(ctx, repo, t, ws); err == nil {
			moved, err = t.Forward(ctx, ws.Commands(), kept, head)
		}
	}
	switch code := team.CodeOf(err); {
	case errors.Is(err, gitrepo.ErrInterrupted): // the next opening tries it again
		l.interrupted(ctx, t, head, err)
	case code == team.InvalidState, code == team.InvalidArgument, code == team.BudgetExceeded: // such as a repository within the tree
		if err = l.lose(ctx, fmt.Sprintf("they could not be kept, since %s", team.Line(err))); err == nil {
			err = t.Reset(ctx, ws.Commands(), head)
			moved = err == nil
		}
	}
	if moved {
		l.interruptions = 0
	}
	err = errors.Join(err, l.looked(t, moved && err == nil || !ran))
	if !moved || err != nil {
		l.o.Logger.WarnContext(ctx, "a tree without a task is not as it should be", "moved", moved, "agent", l.o.Member.AgentID, "tree", t.Root, "err", err)
	}
}

// looked records that a tree was checked, and whether the check has found all changes there.
func (l *Workspaces) looked(t *gitrepo.Tree, all bool) error {
	l.marking.Lock()
	defer l.marking.Unlock()
	switch {
	case !all, l.running > 0: // later changes of a running command were not checked
		return l.hasRun(t)
	case l.ran.Load(): // a command that has begun since
		return nil
	}
	return t.SetRan(false)
}

// runs records that one more command has begun in the tree without a task, or that one has ended.
func (l *Workspaces) runs(t *gitrepo.Tree, more int) {
	l.marking.Lock()
	defer l.marking.Unlock()
	l.running += more
	if err := l.hasRun(t); err != nil {
		l.o.Logger.Warn("if this process is killed, what was changed without a task is not kept", "agent", l.o.Member.AgentID, "err", err)
	}
}

// hasRun records that commands have run in a tree, for this process and later ones. The caller holds marking.
func (l *Workspaces) hasRun(t *gitrepo.Tree) error {
	l.ran.Store(true)
	return t.SetRan(true)
}

// CheckHead clears the record that commands have run in the tree without a task, if they have changed nothing there: the process
// of a member that is to come back may be the last on this host.
func (l *Workspaces) CheckHead(ctx context.Context) {
	l.opening.Lock()
	defer l.opening.Unlock()
	p, ws := l.atHead()
	if ws == nil || !l.ran.Load() {
		return
	}
	l.ran.Store(false)
	same, err := p.tree.Forward(ctx, ws.Commands(), p.tree.Base, p.tree.Base)
	if err = errors.Join(err, l.looked(p.tree, same && err == nil)); err != nil {
		l.o.Logger.DebugContext(ctx, "it is not known whether something was changed without a task", "tree", p.tree.Root, "err", err)
	}
}

// mostNamed bounds the files that a notice of changes without a task names.
const mostNamed = 10

// keep makes a commit of a tree's present files, which is pinned in the repository but not in the integration branch, and
// notifies the member of its files. It returns the tree's base if nothing has changed.
func (l *Workspaces) keep(ctx context.Context, repo *gitrepo.Repo, t *gitrepo.Tree, ws *workspace.Workspace) (gitrepo.Hash, error) {
	bundle, _, err := t.Commit(ctx, ws.Commands(), gitrepo.Message{Subject: "Changed without a task", Agent: l.o.Member.AgentID})
	if err != nil || bundle == nil {
		return t.Base, err
	}
	kept, err := repo.Import(ctx, bundle, t.Base)
	if err != nil {
		return "", err
	}
	if err := repo.Pin(ctx, fmt.Sprintf("unmerged/%s/%s", l.o.Member.AgentID, kept.Short()), kept); err != nil {
		return "", err
	}
	files, err := repo.Files(ctx, t.Base, kept)
	if err != nil {
		return "", err
	}
	var names []string
	for _, f := range files {
		names = append(names, f.Path)
	}
	l.o.Logger.InfoContext(ctx, "files were changed without a task", "agent", l.o.Member.AgentID, "files", len(files), "commit", kept)
	now, how := ", and your files are as the line has them now", fmt.Sprintf("To have it merged, %s.", l.toClaim())
	if l.leaves() {
		now, how = "", "To have it merged, claim a task, or create one for yourself."
	}
	return kept, l.notify(ctx, string(kept), fmt.Sprintf("%s changed files without a task: %s. They are not in the team's line%s. "+
		"What was changed is kept on host %s as commit %s. %s In its tree run `git cherry-pick --no-commit %s`.",
		l.who("You"), team.Some(names, mostNamed), now, host(), kept.Short(), how, kept))
}

// lose sends the notice that changes without a task are removed.
func (l *Workspaces) lose(ctx context.Context, why string) error {
	return l.notify(ctx, fmt.Sprintf("lost-%d-%x", l.o.Member.Incarnation, time.Now().UnixNano()),
		fmt.Sprintf("Files that %s changed without a task are not in the team's line, and are removed: %s.", l.who("you"), why))
}

// interrupted counts failures in a row to move a tree to a new head, and sends a notice from the third on, until it is sent: the
// member sees old files.
func (l *Workspaces) interrupted(ctx context.Context, t *gitrepo.Tree, head gitrepo.Hash, why error) {
	if head == t.Base || ctx.Err() != nil {
		return
	}
	if l.interruptions++; l.interruptions < 3 || l.behind == t.Base {
		return
	}
	who := "Your"
	if l.leaves() {
		who = string(l.o.Member.AgentID) + "'s"
	}
	text := fmt.Sprintf("%s files without a task are those of commit %s, which is not the newest, with what was changed there: %s.", who, t.Base.Short(), team.Line(why))
	if err := l.notify(ctx, "behind-"+string(t.Base), text); err != nil {
		l.o.Logger.WarnContext(ctx, "a tree stays behind the line without a notice", "tree", t.Root, "err", err)
		return
	}
	l.behind = t.Base
}

// noticeWithin is the time by which a notice of kept files may outlast the process's context.
const noticeWithin = shutdown.Release / 4

// keepWhole moves a tree without a task that no process has open aside, with its changes, for a person; why is the reason that no
// commit of them was made. gone: its member has no use for the notice.
func (l *Workspaces) keepWhole(ctx context.Context, repo *gitrepo.Repo, tree, why string, gone bool) error {
	to, who := team.Leader, string(owner(tree))
	if !gone { // and the caller holds opening
		to, who = l.reader(), l.who("you")
	}
	var failed error
	err := repo.Keep(tree, func(folder string) { // a process that is killed here leaves the tree to the next sweep
		ctx, cancel := shutdown.Outlive(ctx, noticeWithin)
		defer cancel()
		text := fmt.Sprintf("What %s may have changed without a task is not in the team's line: %s. A person finds the files on host %s in %s.", who, why, host(), folder)
		if err := l.send(ctx, to, filepath.Base(folder), text); err != nil {
			failed = fmt.Errorf("no notice names the files in %s: %w", folder, err)
		}
	})
	if errors.Is(err, team.NotFound) || errors.Is(err, team.Busy) { // another process was first
		return nil
	}
	return errors.Join(err, failed)
}

// leaves reports whether the member leaves, so that its notices go to the leader. The caller holds opening.
func (l *Workspaces) leaves() bool { return l.leaving && l.o.Member.AgentID != team.Leader }

// who returns the name of the member in a notice; you is its form of address.
func (l *Workspaces) who(you string) string {
	if l.leaves() {
		return string(l.o.Member.AgentID)
	}
	return you
}

func host() string {
	name, _ := os.Hostname()
	return name
}

// toClaim returns the advice on how the member gets a task to change files for.
func (l *Workspaces) toClaim() string {
	if l.o.Member.AgentID != team.Leader && l.o.Record().Policies.Create == team.CreateLeader {
		return "claim a task; if there is none, ask the leader for one"
	}
	return "claim a task, or create one for yourself"
}

// notify sends a notice to the member, or to the leader if the member leaves.
func (l *Workspaces) notify(ctx context.Context, about, text string) error {
	return l.send(ctx, l.reader(), about, text)
}

// reader returns the reader of notices on the member's files. The caller holds opening.
func (l *Workspaces) reader() team.AgentID {
	if l.leaves() {
		return team.Leader
	}
	return l.o.Member.AgentID
}

func (l *Workspaces) send(ctx context.Context, to team.AgentID, about, text string) error {
	if l.o.Notify == nil {
		return nil
	}
	return l.o.Notify(ctx, to, fmt.Sprintf("unmerged-%s-%s", l.o.Member.AgentID, about), "[Not merged] "+text)
}

// atHead is opened for a member without a task.
func (l *Workspaces) atHead() (*place, *workspace.Workspace) {
	return l.opened(workspace.Work{Member: l.o.Member})
}

// opened returns the place of w, and the workspace that is open there; nil if none is.
func (l *Workspaces) opened(w workspace.Work) (*place, *workspace.Workspace) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p := l.open[name(w)]; p != nil {
		return p, p.ws
	}
	return nil, nil
}

// ahead sets aside the member's changes without a task before it has a tree for one. There it finds none of them, and gets a notice
// of their place. The caller holds opening.
func (l *Workspaces) ahead(ctx context.Context, repo *gitrepo.Repo, head gitrepo.Hash) {
	if p, ws := l.atHead(); ws != nil && l.ran.Load() {
		l.forward(ctx, repo, p.tree, ws, head)
	}
}

// Uncommitted sets aside the member's changes without a task, before the goal or its membership ends; the leader gets a notice.
// [Workspaces.Leave] keeps the changes that it could not set aside.
func (l *Workspaces) Uncommitted(ctx context.Context) {
	l.opening.Lock() // while one call brings the tree forward, no other does
	defer l.opening.Unlock()
	if !l.ran.Load() || !l.o.Record().HasBranch() {
		return
	}
	l.leaving = true
	defer func() { l.leaving = false }()
	p, ws := l.atHead()
	if ws == nil {
		_, release, err := l.openLocked(ctx, workspace.Work{Team: l.o.Record(), Member: l.o.Member}, workspace.Options{})
		if err != nil {
			l.o.Logger.WarnContext(ctx, "it is not known what was changed without a task", "agent", l.o.Member.AgentID, "err", err)
			return
		}
		defer release()
		p, ws = l.atHead()
	}
	if l.ran.Load() { // the head has not moved, so it was not looked at
		l.forward(ctx, l.site.Repo, p.tree, ws, p.tree.Base)
	}
}
