package main

import (
	"context"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"agentteam/pkg/git/gitrepo"
	"agentteam/pkg/team"
)

// unseen is a kind of files that members do not see in their worktrees, and the setting that adds them.
type unseen struct{ What, Setting string }

func (u unseen) String() string {
	return "members do not see " + u.What + "; to let members read them, in team.yaml: " + u.Setting
}

// mostUnseen limits the names in a line.
const mostUnseen = 5

// unseenIn returns what members in worktrees of the checkout do not see, except what h adds; nothing where
// git does not answer.
func unseenIn(ctx context.Context, c gitrepo.Checkout, h team.Policy) (all []unseen) {
	u, err := c.Unseen(ctx)
	if err != nil {
		return nil
	}
	dir := filepath.Join(c.Root, filepath.FromSlash(c.Prefix))
	ignored := slices.DeleteFunc(u.Ignored, func(name string) bool {
		return slices.ContainsFunc(h.Links, func(l string) bool { return below(name, filepath.Clean(l)) })
	})
	modules := slices.DeleteFunc(u.Submodules, func(name string) bool {
		return slices.ContainsFunc(h.Paths.Read, func(p string) bool { return below(filepath.Join(dir, name), p) })
	})
	if len(ignored) > 0 {
		all = append(all, unseen{"what git ignores: " + team.Some(ignored, mostUnseen), "worktree_links: " + listed(ignored)})
	}
	if len(modules) > 0 {
		paths := make([]string, len(modules))
		for i, name := range modules {
			paths[i] = filepath.Join(dir, name)
		}
		all = append(all, unseen{"the files of submodules: " + team.Some(modules, mostUnseen), "paths: {read: " + listed(paths) + "}"})
	}
	return all
}

// bare matches names that need no quotes in a YAML list.
var bare = regexp.MustCompile(`^[A-Za-z0-9./][A-Za-z0-9._/@+-]*$`)

// listed returns names as a YAML list, as many as a line shows.
func listed(names []string) string {
	var list []string
	for _, name := range names[:min(len(names), mostUnseen)] {
		if !bare.MatchString(name) {
			name = strconv.Quote(name)
		}
		list = append(list, name)
	}
	return "[" + strings.Join(list, ", ") + "]"
}
