package client

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"

	"agentteam/pkg/git/gitrepo"
	"agentteam/pkg/git/worktree"
	"agentteam/pkg/team"
	"agentteam/pkg/tool/workspace"
)

// Files opens the files of a team for reading; the caller calls release. They are the folder in
// which its members work. If each task has a tree, they are an export of the head of the
// integration branch. The trees of members are never read.
//
// Errors: those of [workspace.Open]; for a team with an integration branch also those of
// [mergequeue.Site.Bring], and Unavailable without git.
func (t *Team) Files(ctx context.Context) (ws *workspace.Workspace, release func(), err error) {
	record, err := t.record(ctx)
	if err != nil {
		return nil, nil, err
	}
	return t.files(ctx, record)
}

func (t *core) files(ctx context.Context, record team.Team) (ws *workspace.Workspace, release func(), err error) {
	at, free := workspace.Work{Team: record}, func() {}
	if record.HasBranch() {
		p, err := t.position(ctx)
		if err != nil {
			return nil, nil, err
		}
		dir, done, err := p.Repo.View(ctx, p.head, record.Branch.Prefix)
		if err != nil {
			return nil, nil, err
		}
		at.Tree, free = &workspace.Tree{Root: dir, Dir: dir}, done
	}
	ws, closed, err := t.client.workspaces.Open(ctx, at, workspace.Options{ReadOnly: true})
	if err != nil {
		free()
		return nil, nil, err
	}
	return ws, func() { closed(); free() }, nil
}

// FilesIn opens the files of the teams that work in a folder of this machine for reading: those of
// the team that was set a goal last, if each of its tasks has a tree, see [Team.Files]; else the
// folder. An active team goes before those that have ended. The caller calls release.
func (c *Client) FilesIn(ctx context.Context, folder string) (ws *workspace.Workspace, release func(), err error) {
	t, record, err := c.lastIn(ctx, folder)
	if err != nil {
		return nil, nil, err
	}
	if t != nil && record.HasBranch() {
		return t.files(ctx, record)
	}
	return c.workspaces.Open(ctx, workspace.Work{Team: team.Team{Workspace: folder}}, workspace.Options{ReadOnly: true})
}

// lastIn returns the team in a folder that was set a goal last, of the active ones if there are
// any; nil if there is none.
func (c *Client) lastIn(ctx context.Context, folder string) (last *Team, record team.Team, err error) {
	all, err := c.registry.List(ctx)
	if err != nil {
		return nil, team.Team{}, err
	}
	for _, atWork := range []bool{true, false} {
		for _, sm := range all {
			if sm.Goal == 0 || sm.Workspace != folder || (sm.Status == team.Active) != atWork {
				continue
			}
			t, err := c.Open(ctx, sm.ID)
			var is team.Team
			if err == nil {
				is, err = t.Record(ctx)
			}
			if errors.Is(err, team.Unavailable) {
				return nil, team.Team{}, err
			}
			if err != nil || is.GoalAt == nil {
				continue // it is being deleted, or cannot be read
			}
			if last == nil || is.GoalAt.After(*record.GoalAt) {
				last, record = t, is
			}
		}
		if last != nil {
			break
		}
	}
	return last, record, nil
}

// fresh exports a commit of the integration branch into a new temporary folder, in which a check
// may write, with the worktree_links for the role in in; the caller calls remove.
func (t *core) fresh(ctx context.Context, p position, at gitrepo.Hash, in workspace.Work) (tree *workspace.Tree, remove func(), err error) {
	prefix := in.Team.Branch.Prefix
	top, err := os.MkdirTemp("", "checked-")
	if err != nil {
		return nil, nil, err
	}
	remove = func() { _ = os.RemoveAll(top) } // a folder for temporary files
	root := filepath.Join(top, "files")
	if err = p.Repo.Export(ctx, at, root); err == nil {
		var in *os.Root
		if in, err = os.OpenRoot(root); err == nil { // a link of the repository must not lead out
			err = errors.Join(in.MkdirAll(filepath.Join(".", filepath.FromSlash(prefix)), 0o755), in.Close())
		}
	}
	tree = &workspace.Tree{Root: root, Dir: filepath.Join(root, filepath.FromSlash(prefix))}
	if from, links, mounted := worktree.LinksOf(ctx, t.client.workspaces, slog.New(slog.DiscardHandler), in.Team, in.Member.Role); err == nil && len(links) > 0 {
		tree.Shown, err = from.CopyUserFiles(ctx, links, root, mounted)
	}
	if err != nil {
		remove()
		return nil, nil, err
	}
	return tree, remove, nil
}
