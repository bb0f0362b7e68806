package hands

import (
	"context"
	"maps"
	"slices"

	"agentteam/pkg/line"
	"agentteam/pkg/team"
	"agentteam/pkg/tool/workspace"
)

// CheckLinks refuses what trees of the team's members cannot get of a checkout: before a goal begins,
// since later it is left out. Whether all is mounted under `sandbox: auto` only the members' machines
// know. The errors are those of [line.Checkout.CheckLinks].
func CheckLinks(ctx context.Context, t team.Team, c line.Checkout) error {
	for _, role := range append([]string{""}, slices.Sorted(maps.Keys(t.Roles))...) {
		h := t.PolicyOf(role)
		if err := c.CheckLinks(ctx, h.Sandbox != team.Confined && h.Sandbox != team.Unconfined, h.Links...); err != nil {
			return err
		}
	}
	return nil
}

// LinksOf is [Source.Links] of a source, if it has that; no other gives any.
func LinksOf(ctx context.Context, s workspace.Source, t team.Team, role string) (from line.Checkout, names []string, mounted bool) {
	if s, ok := s.(*Source); ok {
		return s.Links(ctx, t, role)
	}
	return from, nil, false
}

// Links returns what of the user's folder on this machine goes into trees of a role's members, and
// whether it is mounted there or copied. What cannot be had is left out, and logged: most of it is refused
// where a goal is set, and other machines may not have it.
func (s *Source) Links(ctx context.Context, t team.Team, role string) (from line.Checkout, names []string, mounted bool) {
	wish := t.PolicyOf(role).Links
	if len(wish) == 0 || !t.OnLine() {
		return from, nil, false
	}
	dir, err := s.Folder(t)
	if err == nil {
		from, err = line.Look(ctx, dir)
	}
	if err == nil && from.Prefix != t.Line.Prefix {
		err = team.Errorf(team.InvalidState, "%s is another folder of its repository than %q", dir, t.Line.Prefix)
	}
	if err != nil {
		s.o.Logger.WarnContext(ctx, "worktree_links are left out: there is no checkout here", "team", t.ID, "err", err)
		return from, nil, false
	}
	mounted = s.Level(ctx, t, role) == team.Bubblewrap
	for _, name := range wish {
		// With those before it: together they must not be too large to copy.
		if err := from.CheckLinks(ctx, mounted, append(names, name)...); err != nil {
			s.o.Logger.WarnContext(ctx, "left out of a tree", "team", t.ID, "err", err)
			continue
		}
		names = append(names, name)
	}
	return from, names, mounted
}
