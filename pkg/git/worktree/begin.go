package worktree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"agentteam/pkg/git/gitrepo"
	"agentteam/pkg/git/mergequeue"
	"agentteam/pkg/team"
)

// levelWithin bounds the check of a member's sandbox level, and the read of the team's record when a member leaves.
const levelWithin = 25 * time.Second // a look may try two levels, each for 10 s

// below makes and returns the folder dir/prefix; prefix has slashes.
func below(dir, prefix string) (string, error) {
	root, err := os.OpenRoot(dir) // a link of the repository must not lead us out
	if err != nil {
		return "", err
	}
	defer root.Close()
	if prefix != "" {
		if err := root.MkdirAll(filepath.FromSlash(prefix), 0o755); err != nil {
			return "", err
		}
	}
	return filepath.Join(dir, filepath.FromSlash(prefix)), nil
}

// Inspect is [gitrepo.Look] for members with this isolation. why is the reason why they share the folder instead; "" if they need
// not. Errors: InvalidState if the wish is worktrees; those of [gitrepo.Inspect] that may be temporary.
func Inspect(ctx context.Context, wish team.Isolation, dir string) (c gitrepo.Checkout, why string, err error) {
	c, err = gitrepo.Inspect(ctx, dir)
	switch code := team.CodeOf(err); {
	case err == nil, code != team.NotFound && code != team.Unavailable:
		return c, "", err
	case wish == team.Worktrees:
		return c, "", team.Errorf(team.InvalidState, "isolation: worktree cannot be had in %s: %w", dir, err).WithHint("make it a git repository with a commit, or set `isolation: auto`")
	}
	return c, team.Line(err), nil
}

// Decide decides on the isolation of the members for the team's next goal, whose workspace is dir on this machine. If each task
// is to have a tree, the goal begins at the checkout's HEAD, merged with the commits of the integration branch that it lacks,
// and with its uncommitted changes if the user wants that. open opens the repository. It can be repeated.
//
// Errors: InvalidState if the workspace cannot have trees, and the team wishes for them, and for changes that cannot be
// included; Conflict, with the files, if the branch does not merge with the checkout; Unavailable.
func Decide(ctx context.Context, t team.Team, dir string, open func(context.Context) (*mergequeue.Site, error)) (team.GoalBranch, error) {
	next := team.GoalBranch{Goal: t.NextGoal(), Early: t.Goal == ""}
	if t.Policy.Isolation == team.Shared {
		next.Why = "isolation is set to shared"
		return next, nil
	}
	c, why, err := Inspect(ctx, t.Policy.Isolation, dir)
	if err != nil || why != "" {
		next.Why = why
		return next, err
	}
	if err := CheckLinks(ctx, t, c); err != nil {
		return next, err
	}
	site, err := open(ctx)
	if err != nil {
		return next, err
	}
	if err := site.Repo.Fetch(ctx, c); err != nil {
		return next, err
	}
	next.Prefix = c.Prefix
	at := c.Head
	if t.WithChanges == next.Goal {
		m := gitrepo.Message{Subject: fmt.Sprintf("Uncommitted changes before goal %d", next.Goal), Agent: team.UserAgent}
		if at, err = site.Repo.Snapshot(ctx, c, m); err != nil {
			return next, err
		}
	}
	begun, err := begin(ctx, site, t, at)
	next.Begun = string(begun)
	return next, err
}

// begin moves the integration branch to the first commit of the next goal, which it returns.
func begin(ctx context.Context, site *mergequeue.Site, t team.Team, at gitrepo.Hash) (gitrepo.Hash, error) {
	head, err := site.Bring(ctx)
	if errors.Is(err, team.NotFound) {
		return at, site.Advance(ctx, "", at)
	}
	if err != nil {
		return "", err
	}
	next, err := site.Repo.Next(ctx, at, gitrepo.Message{Subject: fmt.Sprintf("Begin goal %d", t.NextGoal()), Agent: team.Leader})
	if err != nil {
		return "", fmt.Errorf("what team %s has done before and was not landed: %w", t.ID, err)
	}
	if next == head {
		return next, nil
	}
	return next, site.Advance(ctx, head, next)
}
