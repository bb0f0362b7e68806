package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"agentteam/pkg/team"
	"agentteam/pkg/team/strictyaml"
)

// TeammateMode states whether `teamctl run` shows each teammate in a pane of tmux.
type TeammateMode string

// The modes.
const (
	PanesAuto   TeammateMode = "auto"       // inside tmux
	PanesNever  TeammateMode = "in-process" // nowhere
	PanesAlways TeammateMode = "tmux"       // where there is no tmux, that is said
)

// Values returns the modes that people may write.
func (TeammateMode) Values() []string { return team.Strings(PanesAuto, PanesNever, PanesAlways) }

// leaderSection is `leader:` of the settings file: settings of the leader's role.
type leaderSection struct {
	Model    *string       `yaml:"model,omitempty" minLength:"1"`
	Dialect  *team.Dialect `yaml:"dialect,omitempty"`
	Delegate *bool         `yaml:"delegate,omitempty" harmless:"true"`
}

// roleSection is one role of `roles:`. A number alone is the number of members kept ready.
type roleSection struct {
	team.RoleChoices `yaml:",inline"`
}

func (r *roleSection) UnmarshalText(text []byte) error {
	n, err := strconv.Atoi(string(text))
	if err != nil || n < 0 || n > team.MostTeammates {
		return team.Errorf(team.InvalidArgument, "%.40q is no number of members to be kept ready, from 0 to %d", text, team.MostTeammates)
	}
	r.Ready = &n
	return nil
}

type policiesSection struct {
	Create   *team.Create   `yaml:"create,omitempty" harmless:"leader"`
	Respawn  *team.Respawn  `yaml:"respawn,omitempty"`
	Approver *team.Approver `yaml:"approver,omitempty" harmless:"human"`
	PlanMode *bool          `yaml:"plan_mode,omitempty" harmless:"true"`
}

type limitsSection struct {
	MaxTeammates *int `yaml:"max_teammates,omitempty" minimum:"0" maximum:"1000" harmless:"most=10"` // that is what a team has without it
}

// sections are the sections of a team in the settings file.
type sections struct {
	leader   leaderSection
	roles    map[string]roleSection
	policies policiesSection
	limits   limitsSection
	budgets  budgetsSection
	node     strictyaml.Node // of roles
}

// teamSettings returns the rows of a new team's settings. Only the file has the sections: they are of one team.
func teamSettings(c *Config) []setting {
	s := &c.sections
	return []setting{
		{name: "description", harmless: "any", allowed: "a text", parse: optional(func(v string) (string, bool) { c.Choices.Description = &v; return v, true })},
		{name: "dialect", env: []string{"AGENTTEAM_DIALECT"}, allowed: oneOfThese(team.Dialect("").Values()), parse: optional(func(v string) (string, bool) {
			c.Choices.Dialect = new(team.Dialect)
			return known(c.Choices.Dialect)(v)
		})},
		{name: "teammate_mode", flag: "teammate-mode", env: []string{"AGENTTEAM_TEAMMATE_MODE"}, def: string(PanesAuto), allowed: oneOfThese(PanesAuto.Values()), parse: known(&c.TeammateMode)},
		{name: "check", runs: true, allowed: "a command", parse: optional(func(v string) (string, bool) { c.Choices.Check = &v; return v, true })},
		{name: hookKey, runs: true, env: []string{"AGENTTEAM_BRANCH_HOOK"}, allowed: "a command", parse: text(&c.BranchHook)},
		{name: "leader", section: &s.leader},
		{name: rolesKey, section: &s.roles},
		{name: "policies", section: &s.policies},
		{name: "limits", section: &s.limits},
		{name: "budgets", section: &s.budgets},
	}
}

const (
	rolesKey = "roles"
	hookKey  = "branch_hook"
)

// takeTeam sets the choices from the settings.
func (c *Config) takeTeam(file map[string]entry) {
	s := &c.sections
	s.node = file[rolesKey].node
	c.takeAssumed(file)
	c.Choices.Delegate = s.leader.Delegate
	c.Choices.Create, c.Choices.Respawn, c.Choices.Approver = s.policies.Create, s.policies.Respawn, s.policies.Approver
	c.Choices.MaxTeammates = s.limits.MaxTeammates
	c.Budgets = s.budgets.budgets()
	c.Choices.PlanMode = cmp.Or(s.policies.PlanMode, c.Choices.PlanMode)
}

// RolesNamed returns the names of the roles with settings, in their order.
func (c Config) RolesNamed() []string {
	names := slices.Sorted(maps.Keys(c.sections.roles))
	if (c.sections.leader.Model != nil || c.sections.leader.Dialect != nil) && !slices.Contains(names, team.LeaderRole) {
		names = append([]string{team.LeaderRole}, names...)
	}
	return names
}

// Roles returns roles with their settings. Errors: NotFound for an unknown role, InvalidArgument for an invalid
// setting, each with the place in the file, all joined.
func (c Config) Roles(roles map[string]team.Role) (all map[string]team.Role, err error) {
	all = maps.Clone(roles)
	for _, name := range c.RolesNamed() {
		r, fault := (team.Team{Roles: roles}).Role(name)
		if fault != nil {
			err = errors.Join(err, c.sections.node.At(fault, strictyaml.Key(name)))
			continue
		}
		r = r.With(c.choicesOf(name))
		if fault := r.Validate(); fault != nil {
			err = errors.Join(err, c.sections.node.At(fault, name))
		}
		all[r.Name] = r
	}
	return all, err
}

// UnknownModels returns the models that the settings set for roles but do not define under `models:`, one line each. A
// process with other settings may have them. It is empty without `models:`.
func (c Config) UnknownModels() (lines []string) {
	if len(c.Models) == 0 {
		return nil
	}
	have := c.Aliases()
	for _, role := range c.RolesNamed() {
		if m := c.choicesOf(role).Model; m != nil && *m != team.Inherit && !slices.ContainsFunc(have, named(*m)) {
			lines = append(lines, fmt.Sprintf("%s: the role %s is to use the model %q, which is not under models; a process without it uses its default", c.File(), role, *m))
		}
	}
	return lines
}

func (c Config) choicesOf(role string) team.RoleChoices {
	choices := c.sections.roles[role].RoleChoices
	if l := c.sections.leader; role == team.LeaderRole {
		choices.Model, choices.Dialect = cmp.Or(l.Model, choices.Model), cmp.Or(l.Dialect, choices.Dialect)
	}
	return choices
}

// Over returns the policy with the parts of c.Policy that some source has set.
func (c Config) Over(policy team.Policy) team.Policy {
	for _, part := range policyParts {
		if slices.ContainsFunc(c.origins, func(o Origin) bool { return o.Name == part.name && o.Origin != fromDefault }) {
			part.copy(&policy, c.Policy)
		}
	}
	return policy
}
