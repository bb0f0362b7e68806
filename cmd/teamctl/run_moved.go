package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"agentteam/pkg/client"
	"agentteam/pkg/config"
	"agentteam/pkg/team"
)

// findFolder makes sure that a resumed goal has a folder, which may have been moved. Errors: NotFound if it
// is gone, and its new place is unknown; InvalidState if another one was named, though it exists.
func (a *app) findFolder(ctx context.Context, t *client.Team, record team.Team, cfg config.Config, p *runRequest) error {
	old, asked := record.Workspace, cfg.Workspace
	gone, err := a.isGone(ctx, t, old, cfg, p)
	if err != nil || old == "" || old == asked {
		return err
	}
	if !gone {
		if asked != "" {
			return team.Errorf(team.InvalidState, "team %s works in %s, which is there; a goal that has begun stays in its folder", t.ID(), old).
				WithHint("go on there: leave --workspace out; work elsewhere: end it with %s, and set a goal with --workspace", a.command("stop", t.ID()))
		}
		if !below(old, p.workspace) && !below(p.workspace, old) {
			a.notice("team " + string(t.ID()) + " works in " + old)
		}
		return nil
	}
	if asked == "" {
		asked = movedTo(old, root(cfg))
	}
	if asked == "" {
		return team.Errorf(team.NotFound, "team %s works in %s, and there is no such folder", t.ID(), old).
			WithHint("if it was moved: %s --workspace DIR", a.command("run --resume", t.ID()))
	}
	if _, err := t.Goals().Move(ctx, asked); err != nil {
		return err
	}
	a.notice("the folder " + old + " is gone; team " + string(t.ID()) + " goes on in " + asked)
	return nil
}

// findFirst is findFolder in the run's own cluster before its leader starts: that would look for the old
// folder.
func (a *app) findFirst(ctx context.Context, cfg config.Config, p *runRequest) error {
	if err := p.chooseWorkspace(cfg); err != nil {
		return err
	}
	c, err := connect(ctx, cfg)
	if err != nil {
		return err
	}
	defer c.Close()
	t, err := c.Open(ctx, cfg.Team)
	if err != nil {
		return err
	}
	record, err := t.Record(ctx)
	if err != nil || !record.AtWork() {
		return err
	}
	return a.findFolder(ctx, t, record, cfg, p)
}

// onThisMachine reports whether the cluster's processes see this machine's folders.
func onThisMachine(cfg config.Config, p *runRequest) bool { return p.own || cfg.ClusterFile() != "" }

// isGone reports whether no process can work for the team in the folder. Of a cluster on this machine this
// command checks it; of another the team's leader has reported it.
func (a *app) isGone(ctx context.Context, t *client.Team, folder string, cfg config.Config, p *runRequest) (bool, error) {
	if onThisMachine(cfg, p) {
		_, err := os.Stat(folder)
		return errors.Is(err, fs.ErrNotExist), nil
	}
	why, err := t.Unled(ctx)
	return why != "", err
}

// root returns the folder whose .agentteam holds the cluster's file and its data; "" if the data is
// elsewhere.
func root(cfg config.Config) string {
	if file := cfg.ClusterFile(); file != "" {
		return folderOf(file)
	}
	if below(cfg.DataDir, cfg.Folder()) {
		return cfg.Folder()
	}
	return ""
}

// movedTo returns the new place of a missing folder, if that can only be here, with its teams' data; else "".
func movedTo(gone, here string) string {
	if here == "" || below(gone, here) {
		return ""
	}
	if _, err := os.Stat(filepath.Dir(gone)); err != nil { // a folder above was moved: this may be a part of it
		return ""
	}
	return here
}

// below reports whether a path is a folder or something in it.
func below(path, folder string) bool {
	rel, err := filepath.Rel(folder, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}
