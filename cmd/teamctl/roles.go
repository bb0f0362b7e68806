package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"agentteam/pkg/agent/runtime"
	"agentteam/pkg/client"
	"agentteam/pkg/config"
	"agentteam/pkg/config/role"
	"agentteam/pkg/team"
)

func (a *app) rolesCmd() *cobra.Command {
	cmd := group(a.rolesLsCmd())
	cmd.Use, cmd.Aliases, cmd.Short = "roles", []string{"role"}, "Show the roles that members may have, of the team and of files; by itself it lists them"
	cmd.AddCommand(a.rolesLsCmd(), a.rolesShowCmd(), a.rolesValidateCmd(), a.rolesNewCmd(), a.rolesApplyCmd())
	return cmd
}

// How a role of the files compares to the team's stored one.
const (
	roleSame    = "same"
	roleDiffers = "differs"
	roleUnknown = "not stored" // the team has no such role yet
	roleTeam    = "team only"  // no file has it
)

// roleView is a role as printed: the team's, else the file's.
type roleView struct {
	team.Role
	File  string `json:"file"`  // "" = built in, or of the team only
	State string `json:"state"` // same, differs, not stored or team only
}

// mostNotices limits the notices about role files that a command shows.
const mostNotices = 8

// loadRoles reads this folder's roles, and shows what is ignored.
func (a *app) loadRoles() (role.Roles, error) {
	src := sources(a.cmd)
	src.Lenient = true
	cfg, err := config.Load(src)
	if err != nil {
		return role.Roles{}, err
	}
	roles, err := role.Load(".")
	if err == nil {
		roles.All, err = cfg.Roles(roles.All)
	}
	notices := append(roles.Notices, roles.Unknown(runtime.Has)...)
	slices.SortStableFunc(notices, role.Notice.Compare)
	for i, n := range notices {
		if i == mostNotices {
			a.notice(fmt.Sprintf("and %d notices more of role files: teamctl roles validate shows all", len(notices)-i))
			break
		}
		a.notice(team.OneLine(n.String()))
	}
	return roles, err
}

// printStale prints, in a command that uses role files, which files the team does not use: it stored its roles
// when it was created.
func (a *app) printStale(ctx context.Context, t *client.Team, roles role.Roles) {
	if len(roles.Files) == 0 {
		return
	}
	record, err := t.Record(ctx)
	if err != nil {
		return // the command itself will meet it
	}
	stale := staleRoles(record, roles)
	if len(stale) == 0 {
		return
	}
	for i, name := range stale {
		stale[i] = name + " (" + roles.Files[name] + ")"
	}
	fmt.Fprintf(a.err, "team %s goes by roles that differ from the files here: %s; to take the files over: %s\n",
		t.ID(), strings.Join(stale, ", "), a.command("roles apply", t.ID()))
}

// staleRoles returns the names of roles whose file differs from the team's role.
func staleRoles(record team.Team, roles role.Roles) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(roles.Files)) {
		if have, ok := record.Roles[name]; ok && !role.Same(have, roles.All[name]) {
			names = append(names, name)
		}
	}
	return names
}

// viewRoles returns the roles of the team and of the files, in order of name.
func viewRoles(record team.Team, roles role.Roles) []roleView {
	all := maps.Clone(roles.All)
	maps.Copy(all, record.Roles)
	views := make([]roleView, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		v := roleView{Role: all[name], File: roles.Files[name], State: roleSame}
		there, inFile := roles.All[name]
		have, inTeam := record.Roles[name]
		switch {
		case !inTeam:
			v.State = roleUnknown
		case !inFile:
			v.State = roleTeam
		case !role.Same(have, there):
			v.State = roleDiffers
		}
		views = append(views, v)
	}
	return views
}

// seeRoles returns the roles of the files and of the team; only those of the files without a cluster or a
// team.
func (a *app) seeRoles() ([]roleView, error) {
	roles, err := a.loadRoles()
	if err != nil {
		return nil, err
	}
	var record team.Team
	err = a.withTeam(func(ctx context.Context, t *client.Team) (err error) {
		record, err = t.Record(ctx)
		return err
	})
	named := a.cmd.Flags().Changed("team") || a.cmd.Flags().Changed("server")
	if !named && (errors.Is(err, team.NotFound) || errors.Is(err, team.Unavailable)) {
		a.note("these are the roles of the files and the built-in ones: " + team.OneLine(err.Error()))
		err = nil
	}
	return viewRoles(record, roles), err
}

func (a *app) rolesLsCmd() *cobra.Command {
	return &cobra.Command{
		Use: "ls", Aliases: []string{"list"}, Short: "List the roles, and whether a file differs from the team's copy", Args: atMost(0),
		Long: "ls lists the roles that the team has stored and those of the role files here. STATE is same, differs (the team\n" +
			"goes by what it has stored), not stored (the next run, spawn or tasks add stores it) or team only (no file has it).",
		RunE: func(*cobra.Command, []string) error {
			views, err := a.seeRoles()
			if err != nil {
				return err
			}
			return printList(a, views, func(v roleView) string { return v.Name }, func() table {
				t := table{columns: []column{{head: "NAME"}, {head: "STATE"}, {head: "FROM", cut: true, drop: 1}, {head: "DESCRIPTION", cut: true, drop: 2},
					{head: "MODEL", drop: 3, wide: true}, {head: "TOOLS", cut: true, drop: 4, wide: true}}}
				for _, v := range views {
					t.add(v.Name, paint(v.State), v.from(), printable(v.Brief()), orDash(v.Model), orDash(strings.Join(v.Tools, ",")))
				}
				return t
			})
		},
	}
}

// from returns where the role was read, for people.
func (v roleView) from() string {
	if v.State == roleTeam {
		return "-"
	}
	return printable(cmp.Or(v.File, "built-in"))
}

func (a *app) rolesShowCmd() *cobra.Command {
	return &cobra.Command{
		Use: "show NAME", Aliases: []string{"get"}, Short: "Show the team's copy of a role, with its instructions", Args: exactly(1, "the NAME of a role"),
		ValidArgsFunction: first(completeRoles),
		RunE: func(_ *cobra.Command, args []string) error {
			views, err := a.seeRoles()
			if err != nil {
				return err
			}
			i := slices.IndexFunc(views, func(v roleView) bool { return v.Name == team.CanonicalRole(args[0]) })
			if i < 0 {
				return team.Errorf(team.NotFound, "there is no role %q", args[0]).WithHint("teamctl roles lists them")
			}
			v := views[i]
			return a.printFields(v, v.Name, roleFields(v))
		},
	}
}

// roleFields returns all fields of a role, for people.
func roleFields(v roleView) []field {
	return slices.Concat([]field{{"name", v.Name}, {"state", v.State}, {"file", v.from()}, {"description", v.Description},
		{"model", v.Model}, {"tools", strings.Join(v.Tools, ", ")}, {"disallowed tools", strings.Join(v.DisallowedTools, ", ")},
		{"turns of a run", number(v.MaxTurns)}, {"turns without progress", number(v.StillTurns)}, {"effort", string(v.Effort)}, {"dialect", string(v.Dialect)}, {"plan mode", onlyIf(v.PlanMode, "yes")}, {"approver", string(v.Approver)}}, policyFields(v.Policy),
		[]field{{"kept ready", number(v.Ready)}, {"members at a time", number(v.MaxInstances)}, {"takes tasks", onlyIf(!v.Claims(), "only those assigned to it")},
			{"leaves", onlyIf(v.IdleSeconds > 0, "after "+v.IdleTimeout().String()+" without work")}, {"background", onlyIf(v.Background, "yes")}, {"color", string(v.Color)},
			{"skills", strings.Join(v.Skills, ", ")}, {"MCP servers", strings.Join(v.MCPServers, ", ")}, {"instructions", v.Instructions}})
}

func (a *app) rolesApplyCmd() *cobra.Command {
	return &cobra.Command{
		Use: "apply [NAME...]", Short: "Update the team's roles from the files of this folder",
		Long: "apply stores the roles NAME... with the team as the files here have them, or as they are built in. Without NAME\n" +
			"it takes over every file that differs from the team's role. Members that work keep the instructions that they\n" +
			"were started with; who is spawned from now on has the new ones.",
		ValidArgsFunction: completeRoles,
		RunE: func(_ *cobra.Command, args []string) error {
			roles, err := a.loadRoles()
			if err != nil {
				return err
			}
			return a.withTeam(func(ctx context.Context, t *client.Team) error { return a.applyRoles(ctx, t, roles, entries(args)) })
		},
	}
}

// applyRoles stores the named roles in the team, or all whose file differs.
func (a *app) applyRoles(ctx context.Context, t *client.Team, roles role.Roles, names []string) error {
	record, err := t.Record(ctx)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		if names = staleRoles(record, roles); len(names) == 0 {
			a.note(fmt.Sprintf("no role file differs from the roles of team %s", t.ID()))
		}
	}
	taken := map[string]team.Role{}
	for _, name := range names {
		r, ok := roles.All[team.CanonicalRole(name)]
		if !ok {
			return team.Errorf(team.NotFound, "no role file has the role %q", name).WithHint("role files are .agents/*.md of this folder; teamctl roles lists them")
		}
		taken[r.Name] = r
	}
	if _, err := t.Choose(ctx, team.Choices{Roles: taken}); err != nil {
		return err
	}
	if record, err = t.Record(ctx); err != nil {
		return err
	}
	views := slices.DeleteFunc(viewRoles(record, roles), func(v roleView) bool { _, ok := taken[v.Name]; return !ok })
	return printAll(a, views, func(v roleView) string { return v.Name }, func() {
		for _, v := range views {
			a.say(fmt.Sprintf("team %s has the role %s from %s now", t.ID(), v.Name, v.from()))
		}
	})
}
