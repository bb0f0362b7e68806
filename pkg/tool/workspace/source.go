package workspace

import (
	"cmp"
	"context"
	"os"

	"agentteam/pkg/team"
	"agentteam/pkg/tool/command"
)

// Work is the purpose of a workspace.
type Work struct {
	Team   team.Team   // the zero Team: no team in particular
	Member team.Member // who works; the zero Member: nobody, the caller looks at the team's files
	Task   team.Task   // that the member holds; the zero Task: none
	Head   string      // of the team's line, for a member that is to see it and holds no task; else ""
	Tree   *Tree       // where the member works in place of the team's folder; nil: there
}

// Tree is a folder for the work of one member. All paths are absolute.
type Tree struct {
	Root     string   // the member's, with all that is in it, its git dir too
	Dir      string   // Root, or the folder below it in which the member works
	ReadOnly []string // what else its commands may read

	// Shown is what commands and read_file find at places in it, and cannot write: files and folders of
	// the user, by the place.
	Shown map[string]string
}

// Source opens workspaces. Each process has one, and opens folders of teams only through it. Safe for concurrent use.
type Source interface {
	// Open opens the workspace of w, and decides what runs its commands. It may take until
	// ctx ends. The caller calls release once, when nothing uses the workspace any longer;
	// that does not block for long. Errors: those of the function Open.
	Open(ctx context.Context, w Work, o Options) (ws *Workspace, release func(), err error)
}

// Shared is the source that opens one folder for all members of a team, whatever they work on.
type Shared struct {
	Dir    string         // of this process; goes before the team's; may be ""
	Runner command.Runner // required
}

// Folder returns the folder of members of t: the process's, else the team's, else the current one.
func (s Shared) Folder(t team.Team) (string, error) {
	if dir := cmp.Or(s.Dir, t.Workspace); dir != "" {
		return dir, nil
	}
	return os.Getwd()
}

// Open implements [Source].
func (s Shared) Open(_ context.Context, w Work, o Options) (*Workspace, func(), error) {
	dir, err := s.Folder(w.Team)
	if w.Tree != nil {
		dir, err = w.Tree.Dir, nil
	}
	if err != nil {
		return nil, nil, team.Errorf(team.Unavailable, "the current folder: %w", err)
	}
	ws, err := Open(dir, s.Runner, o)
	if err != nil {
		return nil, nil, err
	}
	return ws, func() { ws.Close() }, nil // nothing was written through it
}
