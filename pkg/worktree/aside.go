package worktree

import (
	"context"
	"fmt"
	"os"
	"strings"

	"agentteam/pkg/line"
	"agentteam/pkg/team"
	"agentteam/pkg/tool/workspace"
)

// forward brings the tree of a member without a task to the head. What its commands have changed
// there is kept as a commit, of which the member is notified: nothing merges it, and with it the
// member would see old files for ever. If that cannot be done, the tree stays as it is.
func (l *Line) forward(ctx context.Context, repo *line.Repo, t *line.Tree, ws *workspace.Workspace, head line.Hash) {
	l.ran.Store(false)
	moved, err := t.Forward(ctx, ws.Commands(), t.Base, head)
	for tries := 0; !moved && err == nil && tries < 2; tries++ { // what runs there may change more meanwhile
		var kept line.Hash
		if kept, err = l.keep(ctx, repo, t, ws); err == nil {
			moved, err = t.Forward(ctx, ws.Commands(), kept, head)
		}
	}
	switch team.CodeOf(err) {
	case team.InvalidState, team.InvalidArgument, team.BudgetExceeded: // such as a repository within the tree
		err = l.notify(ctx, head, fmt.Sprintf("Files that you changed without a task are not in the team's line, and are removed: they could not be kept, since %s.", team.Line(err)))
		if err == nil {
			err = t.Reset(ctx, ws.Commands(), head)
			moved = err == nil
		}
	}
	if !moved {
		l.ran.Store(true)
		l.o.Logger.WarnContext(ctx, "a tree stays behind the line", "agent", l.o.Member.AgentID, "tree", t.Root, "err", err)
	}
}

// mostNamed is how many of the files that were changed without a task are named.
const mostNamed = 10

// keep makes a commit of a tree's files as they are, which is pinned in the repository and not in the
// line, and notifies the member of what is in it. It returns the tree's base if nothing has changed.
func (l *Line) keep(ctx context.Context, repo *line.Repo, t *line.Tree, ws *workspace.Workspace) (line.Hash, error) {
	bundle, err := t.Commit(ctx, ws.Commands(), line.Message{Subject: "Changed without a task", Agent: l.o.Member.AgentID})
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
	for _, f := range files[:min(len(files), mostNamed)] {
		names = append(names, f.Path)
	}
	more := ""
	if n := len(files) - len(names); n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	l.o.Logger.InfoContext(ctx, "files were changed without a task", "agent", l.o.Member.AgentID, "files", len(files), "commit", kept)
	host, _ := os.Hostname()
	return kept, l.notify(ctx, kept, fmt.Sprintf("You changed files without a task: %s%s. They are not in the team's line, and your files are as the line has them now. "+
		"What you changed is kept on host %s as commit %s. To have it merged, %s. In its tree run `git cherry-pick --no-commit %s`.",
		strings.Join(names, ", "), more, host, kept.Short(), l.toClaim(), kept))
}

// toClaim is how the member gets a task to change files for.
func (l *Line) toClaim() string {
	if l.o.Member.AgentID != team.Leader && l.o.Record().Policies.Create == team.CreateLeader {
		return "claim a task; if there is none, ask the leader for one"
	}
	return "claim a task, or create one for yourself"
}

// notify sends the member a notice about a commit.
func (l *Line) notify(ctx context.Context, about line.Hash, text string) error {
	if l.o.Notify == nil {
		return nil
	}
	return l.o.Notify(ctx, fmt.Sprintf("unmerged-%s-%s", l.o.Member.AgentID, about), "[Not merged] "+text)
}

// atHead returns the place of who holds no task, and the workspace that is open there; nil if none is.
func (l *Line) atHead() (*place, *workspace.Workspace) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p := l.open[name(workspace.Work{Member: l.o.Member})]; p != nil {
		return p, p.ws
	}
	return nil, nil
}

// ahead sets aside what the member has changed without a task before it has a tree for one.
// There it finds nothing of that, and is notified of where it is. The caller holds opening.
func (l *Line) ahead(ctx context.Context, repo *line.Repo, head line.Hash) {
	if p, ws := l.atHead(); ws != nil && l.ran.Load() {
		l.forward(ctx, repo, p.tree, ws, head)
	}
}

// Aside sets aside what the member has changed without a task, before the goal or its membership
// ends.
func (l *Line) Aside(ctx context.Context) {
	l.opening.Lock() // while one call brings the tree forward, no other does
	defer l.opening.Unlock()
	if !l.ran.Load() || !l.o.Record().OnLine() {
		return
	}
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
