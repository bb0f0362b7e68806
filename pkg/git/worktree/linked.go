package worktree

import (
	"context"
	"log/slog"
	"maps"
	"slices"

	"agentteam/pkg/git/gitrepo"
	"agentteam/pkg/team"
	"agentteam/pkg/tool/workspace"
)

// CheckLinks returns an error for links of the team that trees cannot get from a checkout, before a goal begins: later they are
// left out. Under `sandbox: auto` only the members' machines know whether all is mounted. The errors are those of
// [gitrepo.Checkout.CheckLinks].
func CheckLinks(ctx context.Context, t team.Team, c gitrepo.Checkout) error {
	for _, role := range append([]string{""}, slices.Sorted(maps.Keys(t.Roles))...) {
		h := t.PolicyOf(role)
		if err := c.CheckLinks(ctx, h.Sandbox != team.Confined && h.Sandbox != team.Unconfined, h.Links...); err != nil {
			return err
		}
	}
	return nil
}

// LinksOf returns the files and folders of the user on this machine for trees of a role's members, and whether they are mounted
// there or copied; none for a source without folders on this machine. It leaves out and logs unavailable ones: most of them were
// refused when the goal was set, and other machines may not have them.
func LinksOf(ctx context.Context, source workspace.Source, log *slog.Logger, t team.Team, role string) (from gitrepo.Checkout, names []string, mounted bool) {
	local, ok := source.(interface {
		Folder(team.Team) (string, error)
		Level(context.Context, team.Team, string) team.Sandbox
	})
	wish := t.PolicyOf(role).Links
	if !ok || len(wish) == 0 || !t.HasBranch() {
		return from, nil, false
	}
	dir, err := local.Folder(t)
	if err == nil {
		from, err = gitrepo.Inspect(ctx, dir)
	}
	if err == nil && from.Prefix != t.Branch.Prefix {
		err = team.Errorf(team.InvalidState, "%s is another folder of its repository than %q", dir, t.Branch.Prefix)
	}
	if err != nil {
		log.WarnContext(ctx, "worktree_links are left out: there is no checkout here", "team", t.ID, "err", err)
		return from, nil, false
	}
	mounted = local.Level(ctx, t, role) == team.Bubblewrap
	for _, name := range wish {
		// With those before it: together they must not be too large to copy.
		if err := from.CheckLinks(ctx, mounted, append(names, name)...); err != nil {
			log.WarnContext(ctx, "left out of a tree", "team", t.ID, "err", err)
			continue
		}
		names = append(names, name)
	}
	return from, names, mounted
}
