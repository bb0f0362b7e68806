package doctor

import (
	"context"
	"path/filepath"
	"strings"

	"agentteam/pkg/config"
	"agentteam/pkg/execenv/projectcontext"
	"agentteam/pkg/git/gitrepo"
	"agentteam/pkg/team"
)

// gitChecks check git, and the state of the workspace's repository.
func gitChecks(ctx context.Context, cfg config.Config) []Check {
	dir, err := filepath.Abs(cfg.Workspace)
	if err != nil {
		return nil // the check of the workspace reports it
	}
	s, err := gitrepo.StateOf(ctx, dir)
	if err != nil {
		return []Check{{Name: "git", Status: Warn, Detail: err.Error(), Hint: team.HintOf(err)}}
	}
	g := Check{Name: "git", Status: OK, Detail: s.Version}
	if s.Unnamed {
		g.Status, g.Detail = Warn, g.Detail+"; git knows no name and address of yours, without which your own commits fail"
		g.Hint = "git config --global user.name NAME; git config --global user.email ADDRESS"
	}
	r := Check{Name: "repository", Status: OK, Detail: s.Root}
	switch {
	case cfg.Policy.Isolation == team.Shared:
		r.Detail = "isolation is set to shared: all members work in " + dir
		return []Check{g, r}
	case s.Unfit != nil:
		r.Status, r.Detail, r.Hint = Warn, s.Unfit.Error()+", so that all members work in the folder itself", team.HintOf(s.Unfit)
		if s.Root == "" { // a folder without git is not a fault
			r.Status = OK
		}
	}
	var notes, hints []string
	if s.Unfit == nil && s.Branch == "" {
		notes, hints = append(notes, "its HEAD is on no branch"), append(hints, "git switch BRANCH: `teamctl land` moves a branch")
	} else if s.Unfit == nil {
		r.Detail += ", on the branch " + s.Branch
	}
	if s.Under != "" {
		notes, hints = append(notes, s.Under+" is under way"), append(hints, "end it, or give it up: `git status` shows how; `run --with-changes` and `land` refuse until then")
	}
	if s.Super != "" {
		r.Detail += ", a submodule of " + s.Super
	}
	if notes != nil {
		r.Status, r.Detail = Warn, r.Detail+"; "+strings.Join(notes, "; ")
		if r.Hint != "" {
			hints = append([]string{r.Hint}, hints...)
		}
		r.Hint = strings.Join(hints, "; ")
	}
	return []Check{g, r}
}

// instructions lists the files with instructions for agents that are not read.
func instructions(cfg config.Config) Check {
	c := Check{Name: "instructions", Status: OK, Detail: "no AGENTS.md or CLAUDE.md is here"}
	dir, err := filepath.Abs(cfg.Workspace)
	if err != nil {
		return c
	}
	var names []string
	for _, f := range projectcontext.Standing(dir, nil) {
		names = append(names, f.Name)
	}
	if names != nil {
		c.Detail = "members are given " + team.Some(names, 5)
	}
	if lines := projectcontext.Untaken(dir); lines != nil {
		c.Status, c.Detail, c.Hint = Warn, strings.Join(lines, "; "), "save it as UTF-8, in a folder that only you and your group may write to (chmod o-w)"
	}
	return c
}
