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

// TreeName is the name of a member's tree for a task, or of its tree without one. Each hold of a task has another one, also of the
// same member.
func TreeName(a team.AgentID, t team.Task) string {
	since := int64(0)
	if t.ClaimedAt != nil {
		since = t.ClaimedAt.UnixMilli()
	}
	return fmt.Sprintf("%s.%s.%s", cmp.Or(strings.ToLower(string(t.ID)), "at"), a, strconv.FormatInt(since, 36))
}

// SplitTree returns the [TreeName] of which a tree is, and the incarnation at its end; 0 if there is none.
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

// LatestTree returns the name of the tree that is called so, and whether there is one. Of several, by processes
// that were frozen, it is that of the latest incarnation.
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

// Live makes a commit of what the holder of t has in its tree at this moment, as [gitrepo.Repo.Live] does. Errors: NotFound if that is
// not on this host.
func (s *Site) Live(ctx context.Context, t team.Task) (base, at gitrepo.Hash, err error) {
	tree, _, err := LatestTree(s.Repo, TreeName(t.Assignee, t))
	if err != nil {
		return "", "", err
	}
	return s.Repo.Live(ctx, tree, gitrepo.Message{Subject: t.Title, Agent: t.Assignee, Task: t.ID})
}
