package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"agentteam/pkg/client"
	"agentteam/pkg/config"
	"agentteam/pkg/git/gitrepo"
	"agentteam/pkg/git/worktree"
	"agentteam/pkg/team"
)

// branchEnd is the change of a goal on the team's integration branch, as in -o json.
type branchEnd struct {
	Name    string         `json:"name"`
	Begun   gitrepo.Hash   `json:"begun"` // where the goal began
	Head    gitrepo.Hash   `json:"head"`
	Commits int            `json:"commits"`
	Files   []gitrepo.File `json:"files"`
	Landed  bool           `json:"landed"`

	stat string // a line for each file, and a summary
	take string // the command that takes it over; "" = none

	missing *client.Diff // of the branch, what the user's checkout lacks; nil: the branch is not there
}

// branchTime limits the work on the integration branch at the end of a goal.
const branchTime = time.Minute

// endBranch checks what the goal has added to the line, creates its branch in the user's repository, and lands
// it if requested. nil if the members shared the workspace, or the line is unavailable, which it prints. The
// error is that of the landing.
func (a *app) endBranch(ctx context.Context, t *client.Team, record team.Team, cfg config.Config, p *runRequest) (*branchEnd, error) {
	if !record.HasBranch() {
		if p.land {
			a.note("there is nothing to land: the members have shared the workspace")
		}
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, branchTime)
	defer cancel()
	d, err := t.Branch().Diff(ctx, client.DiffOptions{Form: gitrepo.Stat, Most: 64 << 10})
	if err != nil {
		if p.land {
			return nil, err
		}
		a.notice("what the tasks have changed is not shown: " + team.Line(err))
		return nil, nil
	}
	l := &branchEnd{Name: d.Branch, Begun: d.From, Head: d.Head, Commits: len(d.Commits), Files: d.Files, stat: d.Text}
	if p.land && record.Status == team.TeamFinished {
		_, err := t.Branch().Land(ctx, record.Workspace)
		l.Landed = err == nil
		return l, err
	}
	if l.Commits > 0 {
		l.take = a.command("land", t.ID())
	}
	a.printRun(l.Files)
	if l.Commits == 0 || !onThisMachine(cfg, p) {
		return l, nil
	}
	missing, err := t.Branch().Publish(ctx, record.Workspace)
	if err != nil {
		a.notice(fmt.Sprintf("%s is not in your repository: %s", d.Branch, team.Line(err)))
		return l, nil
	}
	l.missing = &missing
	return l, nil
}

// sumOfStat matches git's summary line of a diffstat.
var sumOfStat = regexp.MustCompile(`^ \d+ files? changed(,|$)`)

// mostFiles limits the files that a run lists at its end.
const mostFiles = 20

// write prints what the goal has changed, and how to land it.
func (l *branchEnd) write(w io.Writer) {
	if l == nil || l.Commits == 0 {
		return
	}
	lines := strings.Split(l.stat, "\n")
	if i := slices.IndexFunc(lines, sumOfStat.MatchString); i >= 0 { // behind it are the modes of new files
		sum := lines[i]
		if lines = lines[:i:i]; i > mostFiles {
			lines = append(lines[:mostFiles:mostFiles], fmt.Sprintf(" and %d more", i-mostFiles))
		}
		lines = append(lines, sum)
	}
	switch {
	case l.Landed:
		lines = append(lines, "landed: your checkout is at "+l.Head.Short())
	case l.take != "":
		lines = append(lines, "to take it over: "+l.take)
	}
	for _, s := range lines {
		fmt.Fprintln(w, printable(s))
	}
}

// printChanges prints the uncommitted changes of the workspace, which a goal does not include unless
// requested. Errors: InvalidState if they are requested and cannot be included, and for a folder that cannot
// have the requested worktrees; Conflict if what was not landed does not merge with the checkout; those of
// [client.Branch.CheckLinks].
func (a *app) printChanges(ctx context.Context, t *client.Team, record team.Team, cfg config.Config, p *runRequest) error {
	wish := cmp.Or(team.Isolation(p.isolation), record.Policy.Isolation)
	if wish == team.Shared || !onThisMachine(cfg, p) {
		return nil
	}
	defer a.waitsFor("git to look at the checkout")()
	dir := cmp.Or(p.workspace, record.Workspace)
	checkout, _, err := worktree.Inspect(ctx, wish, dir)
	if team.CodeOf(err) == team.InvalidState {
		return err
	}
	if err := t.Branch().CheckLinks(ctx, dir); err != nil {
		return err
	}
	if record.GoalNumber == 0 && checkout.Root != "" { // once
		for _, u := range unseenIn(ctx, checkout, record.Policy) {
			a.notice(u.String())
		}
	}
	names, err := t.Branch().Changes(ctx, dir, p.changes)
	switch {
	case p.changes, errors.Is(err, team.Conflict):
		return err
	case err != nil: // who leads the team will report what is wrong
		return nil
	}
	settings, err := os.Stat(cfg.File())
	names = slices.DeleteFunc(names, func(name string) bool { // they hold as they are here, and no member needs the file
		is, ierr := os.Stat(filepath.Join(checkout.Root, name))
		return err == nil && ierr == nil && os.SameFile(is, settings)
	})
	if len(names) == 0 {
		return nil
	}
	const most = 5
	a.notice("uncommitted changes are not taken along: " + team.Some(names, most) + " (--with-changes takes them)")
	return nil
}
