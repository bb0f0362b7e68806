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
	"time"

	"agentteam/pkg/git/gitrepo"
	"agentteam/pkg/team"
)

// mostTogether bounds the entries that are merged and checked together.
const mostTogether = 32

// merged is an entry whose work was merged onto the head, or onto the entry before it: next has both, and work is its own commit.
type merged struct {
	Entry
	next, work gitrepo.Hash
}

// settle merges entries onto the head, in order, and completes their tasks. The checks run once, on all of it together. If one
// fails, the first half is settled alone, and then the rest onto it: so work that passes is merged, and in the end an entry is
// alone whose work breaks a check. Its task is released, and so is one whose work conflicts with the head. An entry that
// conflicts with one before it waits for the next turn. Errors: those that end the term.
func (q *Queue) settle(ctx context.Context, h *hold, batch []Entry) error {
	if len(batch) == 0 {
		return nil
	}
	head, began := h.now(), time.Now()
	work, err := q.stack(ctx, h, head, batch)
	if err != nil || len(work) == 0 {
		return err
	}
	last := work[len(work)-1]
	failed, err := q.check(ctx, head, work)
	switch {
	case err != nil && len(work) == 1:
		return q.endured(ctx, last.Entry, err)
	case failed != nil && len(work) == 1:
		out, err := q.broken(ctx, head, last, *failed)
		if err == nil {
			err = q.giveUp(ctx, h, last.Entry, out)
		}
		if err == nil {
			q.m.took(last.At, began)
		}
		return q.endured(ctx, last.Entry, err)
	case err != nil && ctx.Err() != nil:
		return err
	case err != nil || failed != nil: // alone, each is judged by itself
		half := (len(work) + 1) / 2
		if err := q.settle(ctx, h, entries(work[:half])); err != nil {
			return err
		}
		return q.settle(ctx, h, entries(work[half:]))
	}
	if err := q.move(ctx, h, head.Commit, work); errors.Is(err, errGone) {
		return nil // one was withdrawn, which the next turn finds
	} else if err != nil {
		for _, w := range work {
			if err := q.endured(ctx, w.Entry, err); err != nil {
				return err
			}
		}
		return nil
	}
	for _, w := range work {
		q.m.took(w.At, began)
		q.m.done(isMerged)
		q.o.Logger.Info("task merged", "task", w.Task, "agent", w.Agent, "commit", w.next, "together", len(work))
	}
	return q.finish(ctx, h.now())
}

func entries(work []merged) (all []Entry) {
	for _, w := range work {
		all = append(all, w.Entry)
	}
	return all
}

// stack merges entries onto the head, each on top of the one before it. No ref and no record changes, except for an entry that
// cannot be merged onto the head, whose task is released. For one head and one batch every queue makes the same commits.
func (q *Queue) stack(ctx context.Context, h *hold, head Head, batch []Entry) (work []merged, err error) {
	if err := q.step(ctx, "bring"); err != nil {
		return nil, err
	}
	if err := q.o.Site.follow(ctx, head.Commit); err != nil {
		for _, e := range batch {
			if err := q.endured(ctx, e, err); err != nil {
				return nil, err
			}
		}
		return nil, nil
	}
	at := head.Commit
	for _, e := range batch {
		w, out, err := q.merge(ctx, head, at, e)
		if err == nil && out != nil && at == head.Commit {
			began := time.Now()
			if err = q.giveUp(ctx, h, e, *out); err == nil {
				q.m.took(e.At, began)
			}
		}
		if err := q.endured(ctx, e, err); err != nil {
			return nil, err
		}
		if err == nil && out == nil {
			at, work = w.next, append(work, w)
		}
	}
	return work, nil
}

// merge makes the commit that has the entry's work on top of at; or it returns the reason why there is none.
func (q *Queue) merge(ctx context.Context, head Head, at gitrepo.Hash, e Entry) (merged, *Outcome, error) {
	repo, w := q.o.Site.Repo, merged{Entry: e}
	out := &Outcome{Head: head.Commit, Base: e.Base, Agent: e.Agent, Title: e.Title, Summary: e.Summary}
	if err := q.step(ctx, "import"); err != nil {
		return w, nil, err
	}
	bundle, err := q.bundle(ctx, e)
	if errors.Is(err, team.NotFound) {
		err = team.Errorf(team.InvalidArgument, "%w", err)
	}
	if err == nil {
		w.work, err = repo.Import(ctx, bundle, e.Base)
	}
	if err != nil {
		return q.refuse(w, out, err)
	}
	if err := q.step(ctx, "merge"); err != nil {
		return w, nil, err
	}
	m, err := repo.Merge(ctx, at, w.work)
	if err != nil {
		return q.refuse(w, out, err)
	}
	if len(m.Conflicts) > 0 {
		out.Kind, out.Conflicts, out.Commit = Conflicting, m.Conflicts, w.work
		out.Reason = fmt.Sprintf("it conflicts with the line in %s", m.Conflicts[0].Path)
		if n := len(m.Conflicts) - 1; n > 0 {
			out.Reason += fmt.Sprintf(" and %d more", n)
		}
		out.Since, err = q.since(ctx, e.Base, head.Commit, m.Conflicts)
		return w, out, err
	}
	if err := q.step(ctx, "commit"); err != nil {
		return w, nil, err
	}
	w.next, err = repo.Commit(ctx, m.Tree, gitrepo.Message{Subject: e.Title, Body: e.Summary, Agent: e.Agent, Task: e.Task, Supersedes: e.Supersedes, Time: e.At}, at)
	if err != nil {
		return q.refuse(w, out, err)
	}
	return w, nil, nil
}

// broken describes the work of an entry on which a check has failed. If the check fails on the work without what was merged
// since its base, the work itself breaks it.
func (q *Queue) broken(ctx context.Context, head Head, w merged, f failure) (out Outcome, err error) {
	out = Outcome{Kind: CheckFailed, Head: head.Commit, Base: w.Base, Commit: w.work, Agent: w.Agent, Title: w.Title, Summary: w.Summary,
		Failed: f.Task, Output: f.output, Own: head.Commit == w.Base}
	if !out.Own {
		passed, _, err := q.run(ctx, w.work, f.Check)
		if err != nil {
			return out, fmt.Errorf("%s: %w", f.Check, err)
		}
		out.Own = !passed
	}
	where := "on this work"
	if !out.Own {
		where = "on the merged files"
		out.Since, err = q.since(ctx, w.Base, head.Commit, nil)
	}
	out.Reason = fmt.Sprintf("%s fails %s: %s", f.Check, where, team.OneLine(f.Command))
	return out, err
}

// refuse returns the outcome for work that cannot be imported; other errors stay errors, for example that this host's
// repository is gone (NotFound).
func (q *Queue) refuse(w merged, out *Outcome, err error) (merged, *Outcome, error) {
	switch code := team.CodeOf(err); code {
	case team.InvalidArgument, team.BudgetExceeded, team.Conflict:
		out.Kind, out.Reason = Refused, team.Line(err)
		return w, out, nil
	}
	return w, nil, err
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

// String names the check in a sentence.
func (c Check) String() string {
	switch {
	case c.Task == "":
		return "the team's check"
	case c.Title == "":
		return "the check of " + string(c.Task)
	}
	return fmt.Sprintf("the check of %s (%s)", c.Task, team.OneLine(c.Title))
}

// failure is a check that has failed, with its output.
type failure struct {
	Check
	output string
}

// check runs the checks that a merge requires, each on its own copy of the merged files, and returns the first that fails, or nil.
func (q *Queue) check(ctx context.Context, head Head, work []merged) (*failure, error) {
	last := work[len(work)-1]
	all, err := q.checks(ctx, head, work)
	if err != nil {
		return nil, err
	}
	leftOut := make([]error, len(all))
	for i, c := range all {
		if leftOut[i] = c.Unknown; c.Unknown != nil {
			continue
		}
		if err := q.step(ctx, "check"); err != nil {
			return nil, err
		}
		passed, output, err := q.run(ctx, last.next, c)
		if c.Earlier && (errors.Is(err, team.PermissionDenied) || errors.Is(err, ErrNotHere)) { // perhaps no host can run it, and that task is over
			leftOut[i] = err
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c, err)
		}
		if !passed {
			return &failure{c, output}, nil
		}
	}
	for i, why := range leftOut { // now that the work is to be merged
		if why == nil {
			continue
		}
		if len(work) > 1 {
			return nil, errors.New("a check is left out: each entry is merged alone, and the leader notified of it")
		}
		if err := q.o.Checker.LeftOut(ctx, last.Entry, all[i], why); err != nil {
			return nil, fmt.Errorf("%s: %w", all[i], err)
		}
	}
	return nil, nil
}

// checks returns the checks that a merge requires, each command once: the team's, those of its tasks, and those of merged tasks
// that changed the same files.
func (q *Queue) checks(ctx context.Context, head Head, work []merged) (all []Check, err error) {
	last := work[len(work)-1]
	if command := q.o.Check(); command != "" {
		all = append(all, Check{Agent: last.Agent, Command: command})
	}
	var own []team.TaskID
	add := func(c Check) {
		if c.Unknown != nil || !slices.ContainsFunc(all, func(have Check) bool { return have.Command == c.Command }) {
			all = append(all, c)
		}
	}
	for _, w := range work {
		if own = append(own, w.Task); w.Check != "" {
			add(Check{Task: w.Task, Title: w.Title, Agent: w.Agent, Command: w.Check})
		}
	}
	files, err := q.o.Site.Repo.Files(ctx, head.Commit, last.next)
	if err != nil || len(files) == 0 {
		return all, err
	}
	var paths []string
	for _, f := range files {
		paths = append(paths, f.Path)
	}
	ids, err := q.inBranch(ctx, head, few(paths))
	if err != nil || len(ids) == 0 {
		return all, err
	}
	over, err := q.superseded(ctx, head, work)
	if err != nil {
		return nil, err
	}
	ids = slices.DeleteFunc(ids, func(id team.TaskID) bool { return slices.Contains(own, id) || over[id] })
	if len(ids) == 0 {
		return all, nil
	}
	others, err := q.o.Tasks.Checks(ctx, ids)
	for _, c := range others {
		c.Earlier = true
		add(c)
	}
	return all, err
}

// superseded returns the tasks whose checks no longer count with the work: since work in the branch that is not undone, or this
// work, supersedes them.
func (q *Queue) superseded(ctx context.Context, head Head, work []merged) (map[team.TaskID]bool, error) {
	by := map[team.TaskID][]team.TaskID{}
	log, err := q.o.Site.Repo.Log(ctx, head.Begun, head.Commit)
	for _, e := range log {
		by[e.Task] = e.Supersedes
		delete(by, e.Undoes)
	}
	for _, w := range work {
		by[w.Task] = w.Supersedes
	}
	over := map[team.TaskID]bool{}
	for _, ids := range by {
		for _, id := range ids {
			over[id] = true
		}
	}
	return over, err
}

// inBranch returns the tasks whose work is in the integration branch and not undone, and changed one of the files.
func (q *Queue) inBranch(ctx context.Context, head Head, paths []string) (ids []team.TaskID, err error) {
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
