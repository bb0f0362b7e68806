package gitrepo

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"agentteam/pkg/team"
)

// Land moves the user's checkout forward to a commit of the integration branch, as git merge --ff-only does. It is for the
// user's command only. Filters of the user's config run, as with any other update: LFS needs that. Hooks do not, since the
// branch may have changed their files.
//
// Errors: InvalidState, with a hint, for a checkout with changes, a HEAD that the commit does not contain, and a commit that
// changes a program which a filter runs. Nothing is changed then.
func (r *Repo) Land(ctx context.Context, c Checkout, to Hash) error {
	now, err := Inspect(ctx, c.Root)
	if err != nil {
		return err
	}
	if err := check(to); err != nil {
		return err
	}
	if err := now.refuseDirty(ctx, r.Branch()); err != nil {
		return err
	}
	if ok, err := r.Contains(ctx, to, now.Head); err != nil {
		return err
	} else if !ok {
		return team.Errorf(team.InvalidState, "the checkout %s has moved to %s, on which the line does not build", now.Root, now.Head.Short()).
			WithHint("`git merge %s` merges the two; a next goal does so, too", r.Branch())
	}
	if err := r.refuseFilters(ctx, now, to); err != nil {
		return err
	}
	if err := r.Publish(ctx, now, to); err != nil {
		return err
	}
	g := now.users("merge", "--ff-only", "--quiet", string(to))
	g.within = slow
	// ctx does not stop it: a git that is stopped here leaves some files new and others old, as changes of the user's.
	if _, err := g.run(context.WithoutCancel(ctx)); err != nil {
		return team.Errorf(team.InvalidState, "the checkout %s is not brought forward: %w", now.Root, err).
			WithHint("the line is the branch %s there: `git merge %[1]s`", r.Branch())
	}
	return nil
}

// Publish makes a commit of the integration branch the head of the branch [Repo.Branch] in the user's repository. Errors:
// Conflict if that branch has commits there that the integration branch lacks.
func (r *Repo) Publish(ctx context.Context, c Checkout, to Hash) error {
	if err := check(to); err != nil {
		return err
	}
	spec := string(to) + ":" + r.ref()
	g := c.users("fetch", "--no-tags", "--no-write-fetch-head", "--no-auto-gc", "--no-recurse-submodules",
		"--upload-pack="+uploadPack, "--", r.bare, spec)
	g.within = slow
	_, err := g.run(ctx)
	switch {
	case messageOf(err, "non-fast-forward", "[rejected]"):
		return team.Errorf(team.Conflict, "the branch %s in %s has commits that the line lacks: it was moved by hand, or is that of a deleted team", r.Branch(), c.Root).
			WithHint("give it another name there: `git branch -m %s NAME`", r.Branch())
	case messageOf(err, "refusing to fetch into"):
		return team.Errorf(team.Conflict, "the branch %s is checked out in %s", r.Branch(), c.Root).WithHint("`git switch` to your own branch first")
	case err != nil:
		return fmt.Errorf("bring the line to %s: %w", c.Root, r.gone(err))
	}
	return nil
}

// users returns a command in the user's checkout with the user's own settings, without hooks.
func (c Checkout) users(args ...string) git {
	g := git{args: args, dir: c.Root}
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "GIT_") { // a GIT_DIR would lead elsewhere
			g.whole = append(g.whole, v)
		}
	}
	g.whole = append(g.whole, "LC_ALL=C", "GIT_TERMINAL_PROMPT=0")
	g.whole = append(g.whole, settings([]string{
		"core.hooksPath=/dev/null", "core.fsmonitor=false", "core.pager=cat", "core.editor=false", "submodule.recurse=false",
		"fetch.recurseSubmodules=false", "gc.auto=0", "protocol.version=2", "protocol.file.allow=always", "maintenance.auto=false", "merge.autoStash=false", "merge.verifySignatures=false",
		"core.quotePath=false", "advice.diverging=false",
	})...)
	return g
}

// refuseDirty returns an error for a checkout with changes or a merge under way.
func (c Checkout) refuseDirty(ctx context.Context, branch string) error {
	out, err := c.users("status", "--porcelain", "-z", "--untracked-files=no", "--ignore-submodules=dirty", "--no-renames").run(ctx)
	if err != nil {
		return err
	}
	var names []string
	for _, l := range fields(out) {
		if len(l) > 3 {
			names = append(names, l[3:])
		}
	}
	if len(names) > 0 {
		return team.Errorf(team.InvalidState, "the checkout %s has changes: %s", c.Root, team.Some(names, mostNamed)).
			WithHint("commit them or `git stash`, then land again; the work stays in the line %s", branch)
	}
	if _, err := c.users("rev-parse", "--verify", "--quiet", "MERGE_HEAD").run(ctx); err == nil {
		return team.Errorf(team.InvalidState, "a merge is under way in %s", c.Root).WithHint("finish it, or `git merge --abort`, then land again")
	}
	return nil
}

// refuseFilters returns an error for a commit that changes a file which a filter of the user's config names: git would run
// it for the next file that it writes.
func (r *Repo) refuseFilters(ctx context.Context, c Checkout, to Hash) error {
	out, err := c.users("config", "-z", "--get-regexp", `^filter\..*\.(clean|smudge|process)$`).run(ctx)
	if exitCode(err) == 1 {
		return nil
	} else if err != nil {
		return err
	}
	var programs []string
	for _, f := range fields(out) {
		_, value, _ := strings.Cut(f, "\n")
		programs = append(programs, value)
	}
	all, err := changes(ctx, r.git, c.Head, to)
	if err != nil {
		return err
	}
	for _, ch := range all {
		if slices.ContainsFunc(programs, func(p string) bool { return strings.Contains(p, ch.path) }) {
			return team.Errorf(team.InvalidState, "the line changes %s, which a filter of your git config runs", ch.path).
				WithHint("look at it with `git diff HEAD %s`, then `git merge %[1]s` yourself", r.Branch())
		}
	}
	return nil
}
