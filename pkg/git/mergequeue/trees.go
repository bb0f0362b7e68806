package mergequeue

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"agentteam/pkg/git/gitrepo"
	"agentteam/pkg/team"
)

// TreeName returns the name of a member's tree for a task, or of its tree without one. Each hold of a task has a new name,
// also for the same member.
func TreeName(a team.AgentID, t team.Task) string {
	since := int64(0)
	if t.ClaimedAt != nil {
		since = t.ClaimedAt.UnixMilli()
	}
	return fmt.Sprintf("%s.%s.%s", cmp.Or(strings.ToLower(string(t.ID)), "at"), a, strconv.FormatInt(since, 36))
}

// SplitTree splits a tree's name into its [TreeName] and the incarnation at its end; 0 if there is none.
func SplitTree(tree string) (of string, incarnation uint64) {
	parts := strings.Split(tree, ".")
	if len(parts) != 4 {
		return tree, 0
	}
	n, err := strconv.ParseUint(parts[3], 10, 64)
	if err != nil {
		return tree, 0
	}
	return strings.Join(parts[:3], "."), n
}

// LatestTree returns the name of the tree with the [TreeName] called, and whether there is one. Of several, which frozen
// processes leave, it returns that of the latest incarnation.
func LatestTree(repo *gitrepo.Repo, called string) (tree string, there bool, err error) {
	all, err := repo.Trees()
	tree, incarnation := called, uint64(0)
	for _, name := range all {
		if of, n := SplitTree(name); of == called && n >= incarnation {
			tree, incarnation, there = name, n, true
		}
	}
	return tree, there, err
}

// Live makes a commit of the present files in the tree of t's holder, as [gitrepo.Repo.Live] does. Errors: NotFound if the tree
// is not on this host.
func (s *Site) Live(ctx context.Context, t team.Task) (base, at gitrepo.Hash, err error) {
	tree, _, err := LatestTree(s.Repo, TreeName(t.Assignee, t))
	if err != nil {
		return "", "", err
	}
	return s.Repo.Live(ctx, tree, gitrepo.Message{Subject: t.Title, Agent: t.Assignee, Task: t.ID})
}
