package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"agentteam/pkg/git/gitrepo"
	"agentteam/pkg/git/mergequeue"
	"agentteam/pkg/team"
)

// Branch is the team's integration branch, with the commits of its completed tasks: show it, undo
// parts of it, and land it in a checkout. Its calls need git on this machine, and keep the branch
// in the user's cache folder.
type Branch struct{ *core }

// position is the integration branch on this machine.
type position struct {
	*mergequeue.Site
	head  gitrepo.Hash
	begun gitrepo.Hash // where the present goal began, or the last one on the line
	first gitrepo.Hash // where the line began
}

// position fetches the integration branch to this machine. Errors: InvalidState if the team has
// none; those of [mergequeue.At] and [mergequeue.Site.Bring].
func (t *core) position(ctx context.Context) (p position, err error) {
	record, err := t.record(ctx)
	if err != nil {
		return p, err
	}
	h, err := mergequeue.New(t.team).Head(ctx)
	if errors.Is(err, team.NotFound) {
		return p, team.Errorf(team.InvalidState, "team %s has no line: its members share the workspace%s", t.id(), because(record)).
			WithHint("tasks have trees, and are merged, in a git repository with a commit, unless isolation is shared")
	}
	if err != nil {
		return p, err
	}
	if p.Site, err = mergequeue.At(ctx, "", t.team, record); err != nil {
		return p, err
	}
	p.head, err = p.Bring(ctx)
	p.first = h.Begun
	p.begun = p.first
	if l := record.Branch; l != nil && l.Begun != "" {
		p.begun = gitrepo.Hash(l.Begun)
	}
	return p, err
}

// because returns why the members of the team share the workspace, if that is known.
func because(t team.Team) string {
	if t.Branch == nil || t.Branch.Why == "" {
		return ""
	}
	return ": " + t.Branch.Why
}

// from returns where the integration branch began or, unless all is set, where the goal did.
func (p position) from(all bool) gitrepo.Hash {
	if all {
		return p.first
	}
	return p.begun
}

// Head returns the head of the integration branch, "" if the team has none. It needs no git.
// Errors: Unavailable.
func (t Branch) Head(ctx context.Context) (gitrepo.Hash, error) {
	h, err := mergequeue.New(t.team).Head(ctx)
	if errors.Is(err, team.NotFound) {
		err = nil
	}
	return h.Commit, err
}

// Log returns the commits of the integration branch since the present goal began, the oldest first;
// with all, since the branch did. Errors: InvalidState for a team without one.
func (t Branch) Log(ctx context.Context, all bool) ([]gitrepo.Entry, error) {
	p, err := t.position(ctx)
	if err != nil {
		return nil, err
	}
	return p.Repo.Log(ctx, p.from(all), p.head)
}

// DiffOptions select changes of the integration branch, and their form.
type DiffOptions struct {
	Task  team.TaskID  // only what this task has changed; "" = all
	Agent team.AgentID // only what the tasks of this agent have changed, but for those undone; "" = all
	All   bool         // since the line began, not since the present goal did
	Form  gitrepo.Form // default [gitrepo.Patch]
	Most  int          // bytes of the text; default 1 MiB
}

// mostText is the default bound of a diff's text.
const mostText = 1 << 20

// Diff holds the changes of commits of the integration branch.
type Diff struct {
	Team    team.TeamID     `json:"team"`
	Branch  string          `json:"branch"`
	From    gitrepo.Hash    `json:"from" doc:"The commit before."`
	Head    gitrepo.Hash    `json:"head"`
	Commits []gitrepo.Entry `json:"commits" nullable:"false" doc:"Of the team, the oldest first."`
	Files   []gitrepo.File  `json:"files" nullable:"false"` // by path
	Text    string          `json:"diff" doc:"With the content of files, and whatever characters that has."`
	Cut     bool            `json:"truncated"`

	Live     bool `json:"live,omitempty" doc:"It is what the task's holder has changed in its tree at this moment."`
	Returned bool `json:"returned,omitempty" doc:"It is work of the task that was not merged, or not finished, the last; the task's next holder begins with it."`
}

// Diff returns the changes of the integration branch since the present goal began, or of a task or
// an agent. For a task in progress, these are its holder's changes so far, if they are on this
// machine; else for a task that is not completed, its last returned work. Errors: InvalidArgument;
// NotFound for an unknown task; InvalidState for a team without an integration branch, and a task
// that has merged nothing.
func (t Branch) Diff(ctx context.Context, o DiffOptions) (Diff, error) {
	if o.Task != "" && (o.Agent != "" || o.All) {
		return Diff{}, team.Errorf(team.InvalidArgument, "the changes of one task are those of one agent and one goal").WithHint("name the task alone")
	}
	if shared, err := t.shares(ctx, o.Task); shared || err != nil {
		if err != nil {
			return Diff{}, err
		}
		return t.diffOfFolder(ctx, o)
	}
	p, err := t.position(ctx)
	if err != nil {
		return Diff{}, err
	}
	d := p.diff(t.id(), p.from(o.All))
	w := &text{p: p, form: cmp.Or(o.Form, gitrepo.Patch), left: cmp.Or(o.Most, mostText)}
	switch {
	case o.Task != "":
		err = t.diffOfTask(ctx, &d, w, o.Task)
	case o.Agent != "":
		err = d.ofAgent(ctx, w, o.Agent)
	default:
		if d.Commits, err = p.Repo.Log(ctx, d.From, d.Head); err == nil {
			err = w.add(ctx, d.From, d.Head)
		}
	}
	if err != nil {
		return Diff{}, err
	}
	d.Text, d.Cut = w.String(), w.cut
	d.Files = append(d.Files, w.files...)
	d.Commits = append([]gitrepo.Entry{}, d.Commits...) // an array for programs, if there are none
	return d, nil
}

// diff returns an empty Diff from a commit to the head.
func (p position) diff(t team.TeamID, from gitrepo.Hash) Diff {
	return Diff{Team: t, Branch: p.Repo.Branch(), From: from, Head: p.head, Commits: []gitrepo.Entry{}, Files: []gitrepo.File{}}
}

// diffOfTask fills d with the changes of a task.
func (t Branch) diffOfTask(ctx context.Context, d *Diff, w *text, id team.TaskID) error {
	task, err := t.board.Get(ctx, id)
	if err != nil {
		return err
	}
	if task.Status == team.InProgress {
		if d.From, d.Head, err = w.p.Live(ctx, task); !errors.Is(err, team.NotFound) {
			if d.Live = true; err != nil {
				return fmt.Errorf("what %s has changed so far: %w", task.Assignee, err)
			}
			return w.add(ctx, d.From, d.Head)
		}
	}
	work, stored := task.Work()
	switch {
	case !stored && task.Status != team.Completed:
		return t.unmerged(ctx, task)
	case stored && task.Status != team.Completed:
		d.Returned = true
		var u gitrepo.Unfinished
		u, err = w.p.Returned(ctx, id, work)
		d.Head = u.Files
	default:
		d.Head, err = gitrepo.Hash(task.Commit), task.Undoable()
	}
	if err != nil {
		return err
	}
	if d.From, err = w.p.Repo.Before(ctx, d.Head); err != nil {
		return fmt.Errorf("the commit of %s: %w", id, err)
	}
	if d.Commits, err = w.p.Repo.Log(ctx, d.From, d.Head); err != nil {
		return err
	}
	return w.add(ctx, d.From, d.Head)
}

// unmerged returns the error for a task that has merged nothing yet, with a hint where its changes
// are.
func (t Branch) unmerged(ctx context.Context, task team.Task) error {
	if m, err := t.roster.Get(ctx, task.Assignee); task.Status == team.InProgress && err == nil {
		switch here, _ := os.Hostname(); {
		case m.Backend == team.Person:
			return team.Errorf(team.InvalidState, "%s holds %s: the files of a person are in no tree of the team", m.AgentID, task.ID)
		case m.Host == here:
			return team.Errorf(team.InvalidState, "%s has changed nothing for %s yet", m.AgentID, task.ID).
				WithHint("`teamctl agents transcript %s` shows what it does", m.AgentID)
		}
		return team.Errorf(team.InvalidState, "what %s has changed for %s so far is in its tree on host %s, if it has changed anything", m.AgentID, task.ID, cmp.Or(m.Host, "unknown")).
			WithHint("run `teamctl diff %s` there; `teamctl agents transcript %s` shows what it does", task.ID, m.AgentID)
	}
	return team.Errorf(team.InvalidState, "%s is %s: what a task has changed is shown once it is merged, and while work that was not merged is kept", task.ID, task.Status).
		WithHint("`teamctl tasks history %s` shows what became of it", task.ID)
}

// ofAgent fills d with the changes of an agent's tasks, one after the other.
func (d *Diff) ofAgent(ctx context.Context, w *text, a team.AgentID) error {
	log, err := w.p.Repo.Log(ctx, d.From, d.Head)
	if err != nil {
		return err
	}
	undone := map[team.TaskID]bool{}
	for _, e := range log {
		undone[e.Undoes] = true
	}
	for _, e := range log {
		if e.Agent != a || e.Undoes != "" || undone[e.Task] {
			continue
		}
		d.Commits = append(d.Commits, e)
		before, err := w.p.Repo.Before(ctx, e.Commit)
		if err != nil {
			return err
		}
		w.head(fmt.Sprintf("%s %s: %s\n\n", e.Commit.Short(), cmp.Or(string(e.Task), "no task"), e.Subject))
		if err := w.add(ctx, before, e.Commit); err != nil {
			return err
		}
	}
	return nil
}

// text collects differences, up to a bound, and their files.
type text struct {
	strings.Builder
	p     position
	form  gitrepo.Form
	left  int
	cut   bool
	files []gitrepo.File
}

// head adds a line before the next difference.
func (w *text) head(s string) {
	if w.Len() > 0 {
		s = "\n" + s
	}
	if w.cut = w.cut || len(s) > w.left; !w.cut {
		w.WriteString(s)
		w.left -= len(s)
	}
}

// add adds the difference of two commits.
func (w *text) add(ctx context.Context, from, to gitrepo.Hash) error {
	files, err := w.p.Repo.Files(ctx, from, to)
	if err != nil {
		return err
	}
	for _, f := range files {
		w.count(f)
	}
	if w.cut {
		return nil
	}
	shown, whole, err := w.p.Repo.Diff(ctx, w.form, int64(w.left), from, to)
	w.WriteString(shown)
	w.left -= len(shown)
	w.cut = !whole
	return err
}

// count adds a file's lines to those counted for it.
func (w *text) count(f gitrepo.File) {
	i, found := slices.BinarySearchFunc(w.files, f.Path, func(g gitrepo.File, path string) int { return cmp.Compare(g.Path, path) })
	switch {
	case !found:
		w.files = slices.Insert(w.files, i, f)
	case f.Added < 0 || w.files[i].Added < 0: // no text
		w.files[i].Added, w.files[i].Deleted = -1, -1
	default:
		w.files[i].Added += f.Added
		w.files[i].Deleted += f.Deleted
	}
}
