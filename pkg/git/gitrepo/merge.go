package gitrepo

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"agentteam/pkg/team"
)

// Merged is the result of a merge.
type Merged struct {
	Tree      Hash // of the merged files; with conflicts, git's markers are in them
	Conflicts []Conflict
}

// Conflict is a file that both sides have changed incompatibly.
type Conflict struct {
	Path   string `json:"path"`
	Kind   string `json:"kind"`          // as git names it: "contents", "binary", "modify/delete", ...
	Ours   string `json:"ours"`          // the changes of the integration branch in it, as a diff, at most 16 KiB
	Theirs string `json:"theirs"`        // the changes of the work to be merged in it
	Cut    bool   `json:"cut,omitempty"` // one of the two has only the beginning, or is left out
}

const (
	mostConflicts = 100      // with their diffs
	mostDiff      = 16 << 10 // bytes
)

// Merge merges theirs into ours, two commits with some history in common; no ref moves. Changes of both in the same lines are a
// conflict, for every file: attributes and merge drivers that the files name have no effect.
//
// Errors: InvalidArgument if the two have no history in common.
func (r *Repo) Merge(ctx context.Context, ours, theirs Hash) (Merged, error) {
	if err := check(ours, theirs); err != nil {
		return Merged{}, err
	}
	base, err := r.git("merge-base", string(ours), string(theirs)).line(ctx)
	if exitCode(err) == 1 {
		return Merged{}, team.Errorf(team.InvalidArgument, "%s and %s have no history in common: the team's branch is of another repository than this folder", ours.Short(), theirs.Short()).
			WithHint("run the team in a clone of its repository, or set the goal to another team: --team NAME")
	} else if err != nil {
		return Merged{}, r.gone(err)
	}
	return r.merge(ctx, Hash(base), ours, theirs)
}

// MergeFrom is Merge with the given base.
func (r *Repo) MergeFrom(ctx context.Context, base, ours, theirs Hash) (Merged, error) {
	if err := check(base, ours, theirs); err != nil {
		return Merged{}, err
	}
	// merge-tree has no option for the base before git 2.40. So MergeFrom makes two commits that have base, and nothing
	// else, in common.
	root, err := r.stand(ctx, base)
	if err != nil {
		return Merged{}, err
	}
	left, err := r.stand(ctx, ours, root)
	if err != nil {
		return Merged{}, err
	}
	right, err := r.stand(ctx, theirs, root)
	if err != nil {
		return Merged{}, err
	}
	return r.merge(ctx, root, left, right)
}

// stand makes a commit with the files of another and these parents. The same arguments give the same commit.
func (r *Repo) stand(ctx context.Context, files Hash, parents ...Hash) (Hash, error) {
	tree, err := r.tree(ctx, files)
	if err != nil {
		return "", err
	}
	return r.Commit(ctx, tree, Message{Subject: "Files of " + string(files), Agent: team.Leader, Time: timeZero}, parents...)
}

func (r *Repo) merge(ctx context.Context, base, ours, theirs Hash) (Merged, error) {
	g := r.git("-c", "merge.directoryRenames=conflict", "-c", "merge.renames=true",
		"merge-tree", "--write-tree", "-z", "--messages", string(ours), string(theirs))
	g.within = slow
	out, err := g.run(ctx)
	if code := exitCode(err); code != 0 && code != 1 {
		return Merged{}, fmt.Errorf("merge %s into %s: %w", theirs.Short(), ours.Short(), r.gone(err))
	}
	tree, conflicts, bad := readMerge(string(out))
	if bad != nil {
		return Merged{}, bad
	}
	m := Merged{Tree: tree}
	if err == nil {
		return m, nil
	}
	if len(conflicts) == 0 {
		return Merged{}, fmt.Errorf("merge %s into %s: git reports a conflict and names none", theirs.Short(), ours.Short())
	}
	for i := range conflicts {
		c := &conflicts[i]
		if i >= mostConflicts {
			c.Cut = true
			continue
		}
		var whole [2]bool
		if c.Ours, whole[0], err = r.Diff(ctx, Patch, mostDiff, base, ours, c.Path); err != nil {
			return Merged{}, err
		}
		if c.Theirs, whole[1], err = r.Diff(ctx, Patch, mostDiff, base, theirs, c.Path); err != nil {
			return Merged{}, err
		}
		c.Cut = !whole[0] || !whole[1]
	}
	m.Conflicts = conflicts
	return m, nil
}

// readMerge parses the output of merge-tree -z: the tree, the entries in conflict, then messages, each with its paths and kind.
func readMerge(out string) (tree Hash, all []Conflict, err error) {
	parts := fields([]byte(out))
	if len(parts) == 0 {
		return "", nil, fmt.Errorf("git merge-tree prints nothing")
	}
	if tree, err = ParseHash(parts[0]); err != nil {
		return "", nil, err
	}
	kinds := map[string]string{}
	rest := parts[1:]
	for len(rest) > 0 && rest[0] != "" {
		if _, name, ok := strings.Cut(rest[0], "\t"); ok {
			kinds[name] = cmp.Or(kinds[name], "")
		}
		rest = rest[1:]
	}
	for rest = rest[min(1, len(rest)):]; len(rest) > 1; {
		n, err := strconv.Atoi(rest[0])
		if err != nil || n < 0 || n+3 > len(rest) {
			return "", nil, fmt.Errorf("git merge-tree prints %.80q", rest[0])
		}
		names, kind := rest[1:n+1], rest[n+1]
		rest = rest[n+3:]
		kind, isConflict := strings.CutPrefix(kind, "CONFLICT (")
		if !isConflict {
			continue
		}
		for _, name := range names {
			kinds[name] = cmp.Or(kinds[name], strings.TrimSuffix(kind, ")"))
		}
	}
	for name, kind := range kinds {
		all = append(all, Conflict{Path: name, Kind: cmp.Or(kind, "contents")})
	}
	slices.SortFunc(all, func(a, b Conflict) int { return cmp.Compare(a.Path, b.Path) })
	return tree, all, nil
}

// paths returns the files of conflicts, for people.
func paths(all []Conflict) string {
	var names []string
	for _, c := range all {
		names = append(names, c.Path)
	}
	return team.Some(names, mostNamed)
}

// mostNamed bounds the files or tasks that a message names.
const mostNamed = 5

// Undo makes a commit on head, the head of the integration branch, that reverts the commit of a task; no ref moves. m names the
// task in Undoes.
//
// Errors: InvalidState, with the files and the tasks, if later work builds on it, if it is already undone, or was never in the
// branch.
func (r *Repo) Undo(ctx context.Context, head, commit Hash, m Message) (Hash, error) {
	if ok, err := r.Contains(ctx, head, commit); err != nil {
		return "", err
	} else if !ok {
		return "", team.Errorf(team.InvalidState, "commit %s is not in the line", commit.Short()).WithHint("what was not merged is not undone")
	}
	before, err := r.Before(ctx, commit)
	if err != nil {
		return "", err
	}
	merged, err := r.MergeFrom(ctx, commit, head, before)
	if err != nil {
		return "", err
	}
	if len(merged.Conflicts) > 0 {
		return "", r.builtOn(ctx, head, commit, merged.Conflicts)
	}
	now, err := r.tree(ctx, head)
	if err != nil {
		return "", err
	}
	if merged.Tree == now {
		return "", team.Errorf(team.InvalidState, "nothing of commit %s is left in the line to undo", commit.Short())
	}
	return r.Commit(ctx, merged.Tree, m, head)
}

// builtOn returns the error for a commit on whose files later ones build.
func (r *Repo) builtOn(ctx context.Context, head, commit Hash, conflicts []Conflict) error {
	var names []string
	for _, c := range conflicts {
		names = append(names, c.Path)
	}
	later, err := r.Log(ctx, commit, head, names...)
	if err != nil {
		return err
	}
	var tasks []string
	for _, e := range later {
		tasks = append(tasks, cmp.Or(string(e.Task), e.Commit.Short()))
	}
	by := "later work"
	if len(tasks) > 0 {
		by = team.Some(slices.Compact(tasks), mostNamed)
	}
	return team.Errorf(team.InvalidState, "%s builds on commit %s in %s", by, commit.Short(), team.Some(names, mostNamed)).
		WithHint("undo the later work first, or have a task change these files")
}
