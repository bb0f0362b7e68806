package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/wI2L/jsondiff"

	"agentteam/pkg/client"
	"agentteam/pkg/config"
	"agentteam/pkg/config/role"
	"agentteam/pkg/team"
)

// applied is what `teams apply` has done, or would do.
type applied struct {
	Team    team.TeamID `json:"team"`
	Made    bool        `json:"made"` // it was not there
	DryRun  bool        `json:"dry_run"`
	Changes []change    `json:"changes"`
}

// change is one field of a team's record that apply changes.
type change struct {
	Field string `json:"field"` // such as policies.respawn
	From  any    `json:"from"`  // null: it was not there
	To    any    `json:"to"`    // null: it is not there any more
}

func (a *app) teamsApplyCmd() *cobra.Command {
	var file string
	var dry bool
	cmd := &cobra.Command{
		Use: "apply [-f FILE]", Short: "Make the team of a settings file, or change it to what the file says", Args: atMost(0),
		Long: "apply makes the team that team.yaml describes, or changes the one that is there: description, roles, leader, policies,\n" +
			"limits, dialect, isolation, permissions and what else members may do. What the file does not name stays as it is.\n" +
			"It prints each field that changes; with --dry-run it changes nothing.",
	}
	cmd.Flags().StringVarP(&file, "file", "f", "", "the settings file; default: the nearest team.yaml")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "only print what would change")
	cmd.RunE = func(*cobra.Command, []string) error {
		src := sources(a.cmd)
		src.File, src.Lenient = file, true
		cfg, err := a.decided(src)
		if err != nil {
			return err
		}
		if file == "" && !cfg.Found() {
			return noSettings()
		}
		roles, err := role.Load(".")
		if err != nil {
			return err
		}
		return a.connected(func(ctx context.Context, c *client.Client, _ config.Config) error {
			done, err := a.apply(ctx, c, cfg, roles, dry)
			if err != nil {
				return err
			}
			a.printWaiting(cfg, roles)
			return a.printLine(done, string(done.Team), done.lines()...)
		})
	}
	return makesTeam(cmd)
}

// apply creates the team of the settings, or changes it.
func (a *app) apply(ctx context.Context, c *client.Client, cfg config.Config, roles role.Roles, dry bool) (applied, error) {
	done := applied{Team: cfg.Team, DryRun: dry}
	before := team.Team{ID: cfg.Team, Roles: roles.All, MaxTeammates: team.DefaultMaxTeammates,
		Policies: team.Policies{Create: team.CreateAll, Respawn: team.RespawnAlways, Approver: team.ByLeader}}
	t, err := c.Open(ctx, cfg.Team)
	if done.Made = errors.Is(err, team.NotFound); err == nil {
		before, err = t.Record(ctx)
	}
	if err != nil && !done.Made {
		return done, err
	}
	choices, err := choicesFor(before, cfg, roles)
	if err != nil {
		return done, err
	}
	after := before
	after.Choose(choices)
	if err := after.Validate(); err != nil {
		return done, err
	}
	if done.Changes, err = changesOf(before, after); err != nil || dry || !done.Made && len(done.Changes) == 0 {
		return done, err
	}
	if !done.Made {
		_, err = t.Choose(ctx, choices)
		return done, err
	}
	workspace, err := workspaceOf(cfg)
	if err == nil {
		_, err = c.AddTeam(ctx, newTeam(cfg, roles, workspace), choices)
	}
	return done, err
}

// choicesFor returns the settings' choices for an existing team. A role keeps its instructions; one that the
// team lacks comes from the files.
func choicesFor(record team.Team, cfg config.Config, roles role.Roles) (team.Choices, error) {
	all := maps.Clone(roles.All)
	maps.Copy(all, record.Roles)
	all, err := cfg.Roles(all)
	if err != nil {
		return team.Choices{}, err
	}
	chosen := map[string]team.Role{}
	for _, name := range cfg.RolesNamed() {
		name = team.CanonicalRole(name)
		chosen[name] = all[name]
	}
	choices, policy := cfg.Choices, cfg.Over(record.Policy)
	choices.Roles, choices.Policy = chosen, &policy
	return choices, nil
}

// changesOf returns the fields in which two records of a team differ.
func changesOf(before, after team.Team) ([]change, error) {
	patch, err := jsondiff.Compare(before, after)
	if err != nil {
		return nil, err
	}
	changes := []change{}
	for _, op := range patch {
		field := strings.ReplaceAll(strings.TrimPrefix(op.Path, "/"), "/", ".")
		changes = append(changes, spread(change{field, op.OldValue, op.Value})...)
	}
	return changes, nil
}

// spread splits a change into fields: of an object that is new or removed, each field is a change.
func spread(c change) (all []change) {
	from, was := c.From.(map[string]any)
	to, is := c.To.(map[string]any)
	if !was && !is {
		return []change{c}
	}
	fields := maps.Clone(from)
	if fields == nil {
		fields = map[string]any{}
	}
	maps.Copy(fields, to)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		all = append(all, spread(change{c.Field + "." + name, from[name], to[name]})...)
	}
	return all
}

// lines returns the result for people.
func (d applied) lines() []string {
	did := "is changed"
	switch {
	case len(d.Changes) == 0 && !d.Made:
		return []string{fmt.Sprintf("team %s is as the settings say", d.Team)}
	case d.Made && d.DryRun:
		did = "would be made"
	case d.Made:
		did = "is made"
	case d.DryRun:
		did = "would be changed"
	}
	lines := []string{fmt.Sprintf("team %s %s", d.Team, did)}
	for _, c := range d.Changes {
		lines = append(lines, fmt.Sprintf("  %s: %s -> %s", c.Field, shownValue(c.From), shownValue(c.To)))
	}
	return lines
}

// shownValue formats a record's value in one line. A long text is cut; a list, such as one of permissions, is
// not.
func shownValue(v any) string {
	if v == nil || v == "" {
		return "-"
	}
	if text, ok := v.(string); ok {
		return printable(team.Clean(team.OneLine(text), 120))
	}
	data, err := json.Marshal(v)
	if err != nil {
		return "?"
	}
	return printable(string(data))
}
