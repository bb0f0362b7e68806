package mergequeue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agentteam/pkg/git/gitrepo"
	"agentteam/pkg/team"
)

// merge makes the commit that has the entry's work on top of the head, with its checks passed; or it returns the reason why
// there is none. No ref and no record changes. For one entry and one head every queue makes the same commit.
func (q *Queue) merge(ctx context.Context, head Head, e Entry) (gitrepo.Hash, *Outcome, error) {
	repo := q.o.Site.Repo
	if err := q.step(ctx, "bring"); err != nil {
		return "", nil, err
	}
	if err := q.o.Site.follow(ctx, head.Commit); err != nil {
		return "", nil, err
	}
	out := &Outcome{Head: head.Commit, Base: e.Base, Agent: e.Agent, Title: e.Title, Summary: e.Summary}
	if err := q.step(ctx, "import"); err != nil {
		return "", nil, err
	}
	bundle, err := q.bundle(ctx, e)
	if errors.Is(err, team.NotFound) {
		err = team.Errorf(team.InvalidArgument, "%w", err)
	}
	if err == nil {
		out.Commit, err = repo.Import(ctx, bundle, e.Base)
	}
	if err != nil {
		return q.refuse(out, err)
	}
	if err := q.step(ctx, "merge"); err != nil {
		return "", nil, err
	}
	m, err := repo.Merge(ctx, head.Commit, out.Commit)
	if err != nil {
		return q.refuse(out, err)
	}
	if len(m.Conflicts) > 0 {
		out.Kind, out.Conflicts = Conflicting, m.Conflicts
		out.Reason = fmt.Sprintf("it conflicts with the line in %s", m.Conflicts[0].Path)
		if n := len(m.Conflicts) - 1; n > 0 {
			out.Reason += fmt.Sprintf(" and %d more", n)
		}
		out.Since, err = q.since(ctx, e.Base, head.Commit, m.Conflicts)
		return "", out, err
	}
	if err := q.step(ctx, "commit"); err != nil {
		return "", nil, err
	}
	next, err := repo.Commit(ctx, m.Tree, gitrepo.Message{Subject: e.Title, Body: e.Summary, Agent: e.Agent, Task: e.Task, Time: e.At}, head.Commit)
	if err != nil {
		return q.refuse(out, err)
	}
	failed, err := q.check(ctx, head, next, e, out)
	if err != nil || !failed {
		return next, nil, err
	}
	out.Since, err = q.since(ctx, e.Base, head.Commit, nil)
	return "", out, err
}

// refuse returns the outcome for work that cannot be imported; other errors stay errors, for example that this host's
// repository is gone (NotFound).
func (q *Queue) refuse(out *Outcome, err error) (gitrepo.Hash, *Outcome, error) {
	switch code := team.CodeOf(err); code {
	case team.InvalidArgument, team.BudgetExceeded, team.Conflict:
		out.Kind, out.Reason, out.Commit = Refused, team.Line(err), ""
		return "", out, nil
	}
	return "", nil, err
}

// mostSince bounds the commits of the integration branch that the next holder is shown, and mostSummary the bytes of the
// summary of each.
const (
	mostSince   = 50
	mostSummary = 1 << 10
)

// since returns the commits in the integration branch since base that changed the files in conflict, or all.
func (q *Queue) since(ctx context.Context, base, head gitrepo.Hash, in []gitrepo.Conflict) (since []Since, err error) {
	paths := make([]string, 0, len(in))
	for _, c := range in {
		paths = append(paths, c.Path)
	}
	all, err := q.o.Site.Repo.Log(ctx, base, head, few(paths)...)
	for _, e := range all[max(0, len(all)-mostSince):] {
		since = append(since, Since{e, strings.ToValidUTF8(e.Body[:min(len(e.Body), mostSummary)], "")})
	}
	return since, err
}

// few returns paths if they fit onto a command line; else nil, which means all.
func few(paths []string) []string {
	size := 0
	for _, p := range paths {
		size += len(p) + 1
	}
	if len(paths) > 1000 || size > 64<<10 {
		return nil
	}
	return paths
}

// check runs the checks that the merge requires, each on its own copy of the files, and reports whether one has failed; out
// then describes it.
func (q *Queue) check(ctx context.Context, head Head, next gitrepo.Hash, e Entry, out *Outcome) (failed bool, err error) {
	all, err := q.checks(ctx, head, next, e)
	if err != nil {
		return false, err
	}
	leftOut := make([]error, len(all))
	for i, c := range all {
		if leftOut[i] = c.Unknown; c.Unknown != nil {
			continue
		}
		if err := q.step(ctx, "check"); err != nil {
			return false, err
		}
		passed, output, err := q.run(ctx, next, c)
		if c.Earlier && (errors.Is(err, team.PermissionDenied) || errors.Is(err, ErrNotHere)) { // perhaps no host can run it, and that task is over
			leftOut[i] = err
			continue
		}
		if err != nil {
			return false, fmt.Errorf("the check of %s: %w", c.Task, err)
		}
		if passed {
			continue
		}
		out.Kind, out.Failed, out.Output = CheckFailed, c.Task, output
		out.Reason = fmt.Sprintf("the check of %s (%s) fails on the merged files: %s", c.Task, team.OneLine(c.Title), team.OneLine(c.Command))
		return true, nil
	}
	for i, why := range leftOut { // now that the work is to be merged
		if why == nil {
			continue
		}
		if err := q.o.Checker.LeftOut(ctx, e, all[i], why); err != nil {
			return false, fmt.Errorf("the check of %s: %w", all[i].Task, err)
		}
	}
	return false, nil
}

// checks returns the checks that the merge requires. The task's own has passed on its holder's tree: it runs again only if
// the branch has moved since. The checks of other tasks have not run on this work.
func (q *Queue) checks(ctx context.Context, head Head, next gitrepo.Hash, e Entry) ([]Check, error) {
	var all []Check
	if e.Check != "" && head.Commit != e.Base {
		all = append(all, Check{Task: e.Task, Title: e.Title, Agent: e.Agent, Command: e.Check})
	}
	recheck := q.o.Recheck()
	if recheck == team.RecheckOwn {
		return all, nil
	}
	var paths []string
	if recheck != team.RecheckAll {
		files, err := q.o.Site.Repo.Files(ctx, head.Commit, next)
		if err != nil || len(files) == 0 {
			return all, err
		}
		for _, f := range files {
			paths = append(paths, f.Path)
		}
		paths = few(paths)
	}
	ids, err := q.merged(ctx, head, paths)
	if err != nil {
		return nil, err
	}
	ids = slices.DeleteFunc(ids, func(id team.TaskID) bool { return id == e.Task })
	if len(ids) == 0 {
		return all, nil
	}
	others, err := q.o.Tasks.Checks(ctx, ids)
	if err != nil {
		return nil, err
	}
	for _, c := range others {
		c.Earlier = true
		if c.Unknown != nil || !slices.ContainsFunc(all, func(have Check) bool { return have.Agent == c.Agent && have.Command == c.Command }) {
			all = append(all, c)
		}
	}
	return all, nil
}

// merged returns the tasks whose work is in the integration branch and not undone, and changed one of the files.
func (q *Queue) merged(ctx context.Context, head Head, paths []string) (ids []team.TaskID, err error) {
	log, err := q.o.Site.Repo.Log(ctx, head.Begun, head.Commit, paths...)
	for _, e := range log {
		switch {
		case e.Undoes != "":
			ids = slices.DeleteFunc(ids, func(id team.TaskID) bool { return id == e.Undoes })
		case e.Task != "" && !slices.Contains(ids, e.Task):
			ids = append(ids, e.Task)
		}
	}
	return ids, err
}

// run runs one check on an export of the merged files.
func (q *Queue) run(ctx context.Context, files gitrepo.Hash, c Check) (passed bool, output string, err error) {
	dir, err := os.MkdirTemp(q.o.Site.Dir, "merged-")
	if err != nil {
		return false, "", err
	}
	defer func(all string) { // files that a check leaves there do not change its result
		if err := gitrepo.Remove(all); err != nil {
			q.o.Logger.Warn("the files of a check were not removed", "task", c.Task, "folder", all, "err", err)
		}
	}(dir)
	dir = filepath.Join(dir, cmp.Or(string(c.Task), "files"))
	if err := q.o.Site.Repo.Export(ctx, files, dir); err != nil {
		return false, "", err
	}
	passed, output, err = q.o.Checker.Check(ctx, dir, c)
	return passed, output, errors.Join(err, ctx.Err())
}
