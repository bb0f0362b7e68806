package runtime

import (
	"context"
	"path/filepath"

	"agentteam/pkg/agent"
	"agentteam/pkg/execenv/projectcontext"
	"agentteam/pkg/team"
)

// whole returns the team's record unchanged, as it applies to the member.
func whole(t team.Team) team.Team { return t }

// folders returns a finder of AGENTS.md files in the current worktree, limited to the paths that the
// record which lend returns lets the member read.
func (m *member) folders(lend func(team.Team) team.Team) agent.Folders {
	return func(ctx context.Context, file string, skip func(folder string) bool) (found []agent.Folder) {
		ws, done, err := m.current.Use(ctx)
		if err != nil { // the next call shows it
			return nil
		}
		defer done()
		may := m.mayNotify(lend(m.record()), ws.Dir())
		if file == "" {
			return []agent.Folder{{Name: agent.Top, Files: projectcontext.Standing(ws.Dir(), may)}}
		}
		for _, dir := range projectcontext.Below(ws.Dir(), file) {
			name, err := filepath.Rel(ws.Dir(), dir)
			if err != nil || skip(filepath.ToSlash(name)) {
				continue
			}
			if files := projectcontext.Folder(ws.Dir(), dir, may); len(files) > 0 {
				found = append(found, agent.Folder{Name: filepath.ToSlash(name), Files: files})
			}
		}
		return found
	}
}

// changes returns the files that differ from the last commit in the member's current folder, a line
// each.
func (m *member) changes(ctx context.Context) string {
	return m.check(ctx, projectcontext.Changes)
}

// footprint returns a text that changes with the files where the member works now.
func (m *member) footprint(ctx context.Context) string {
	return m.check(ctx, projectcontext.Footprint)
}

func (m *member) check(ctx context.Context, by func(context.Context, projectcontext.Run) string) string {
	ws, done, err := m.current.Use(ctx)
	if err != nil { // the next call shows it
		return ""
	}
	defer done()
	return by(ctx, ws.Check)
}

// here returns the member's current place, which may be another tree than the one in which it
// began, with the project's instructions there.
func (m *member) here(ctx context.Context, r team.Role, lend func(team.Team) team.Team) (projectcontext.Place, error) {
	at := *m.at
	ws, done, err := m.current.Use(ctx)
	if err != nil {
		return at, err
	}
	defer done()
	if at.Workspace != ws.Dir() { // the git state is that of another folder
		at.Workspace, at.Git = ws.Dir(), ""
	}
	at.Project = projectcontext.Standing(ws.Dir(), m.mayNotify(lend(m.record()), ws.Dir()))
	return m.withSkills(at, r, ws.Dir(), lend), nil
}
