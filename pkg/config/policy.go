package config

import (
	"fmt"
	"slices"
	"strings"

	"agentteam/pkg/execenv/permission"
	"agentteam/pkg/execenv/sandbox"
	"agentteam/pkg/team"
)

// policySettings returns the rows of the members' policy.
func policySettings(c *Config) []setting {
	f := &c.form
	return []setting{
		{name: "sandbox", decides: true, harmless: "bubblewrap", flag: "sandbox", env: []string{"AGENTTEAM_SANDBOX"}, def: string(team.SandboxAuto), allowed: oneOfThese(f.Sandbox.Values()), parse: known(&f.Sandbox)},
		{name: "isolation", harmless: "worktree", flag: "isolation", env: []string{"AGENTTEAM_ISOLATION"}, def: string(team.IsolationAuto), allowed: oneOfThese(f.Isolation.Values()), parse: known(&f.Isolation)},
		{name: "network", harmless: "none", env: []string{"AGENTTEAM_NETWORK"}, def: "none", section: &f.Network},
		{name: "permissions", env: []string{"AGENTTEAM_PERMISSIONS"}, section: &f.Permissions},
		{name: "permission_mode", harmless: "plan|read-only", env: []string{"AGENTTEAM_PERMISSION_MODE"}, def: string(team.DefaultMode), allowed: oneOfThese(f.Mode.Values()), parse: known(&f.Mode)},
		{name: "permission_ask", harmless: "deny", env: []string{"AGENTTEAM_PERMISSION_ASK"}, def: string(team.AskWait), allowed: oneOfThese(f.Ask.Values()), parse: known(&f.Ask)},
		{name: "credentials", harmless: "none", env: []string{"AGENTTEAM_CREDENTIALS"}, section: &f.Credentials},
		{name: "paths", env: []string{"AGENTTEAM_PATHS"}, section: &f.Paths},
		{name: "command_limits", env: []string{"AGENTTEAM_COMMAND_LIMITS"}, section: &c.limits},
		{name: "worktree_links", harmless: "none", env: []string{"AGENTTEAM_WORKTREE_LINKS"}, section: &f.Links},
		{name: "on_edit", env: []string{"AGENTTEAM_ON_EDIT"}, section: &f.OnEdit},
	}
}

// commandLimits bound the resources of a command and all its processes; package sandbox has the defaults.
type commandLimits struct {
	Memory    int64 `yaml:"memory_mib,omitempty" minimum:"1"` // of all processes together
	Processes int   `yaml:"processes,omitempty" minimum:"1"`
	Threads   int   `yaml:"threads,omitempty" minimum:"1"` // of all processes together
	File      int64 `yaml:"file_mib,omitempty" minimum:"1"`
}

func oneOfThese(values []string) string { return "one of " + strings.Join(values, ", ") }

// known returns a parser for the values of a type that lists them.
func known[T interface {
	~string
	Values() []string
}](dst *T) func(string) (string, bool) {
	return func(v string) (string, bool) {
		*dst = T(v)
		return v, slices.Contains((*dst).Values(), v)
	}
}

// policyParts are the settings of a policy, each with its part.
var policyParts = []struct {
	name string
	copy func(to *team.Policy, from team.Policy)
}{
	{"sandbox", func(to *team.Policy, from team.Policy) { to.Sandbox = from.Sandbox }},
	{"isolation", func(to *team.Policy, from team.Policy) { to.Isolation = from.Isolation }},
	{"network", func(to *team.Policy, from team.Policy) { to.Network = from.Network }},
	{"permissions", func(to *team.Policy, from team.Policy) { to.Permissions = from.Permissions }},
	{"permission_mode", func(to *team.Policy, from team.Policy) { to.PermissionMode = from.PermissionMode }},
	{"permission_ask", func(to *team.Policy, from team.Policy) { to.PermissionAsk = from.PermissionAsk }},
	{"credentials", func(to *team.Policy, from team.Policy) { to.Credentials = from.Credentials }},
	{"paths", func(to *team.Policy, from team.Policy) { to.Paths = from.Paths }},
	{"worktree_links", func(to *team.Policy, from team.Policy) { to.Links = from.Links }},
	{"on_edit", func(to *team.Policy, from team.Policy) { to.OnEdit = from.OnEdit }},
}

// takePolicy sets the policy from the settings.
func (c *Config) takePolicy(file map[string]entry) (err error) {
	stated, planMode := c.form.Policy()
	if planMode {
		c.Choices.PlanMode = &planMode
	}
	for _, part := range policyParts {
		if slices.ContainsFunc(c.origins, func(o Origin) bool { return o.Name == part.name && o.Origin != fromDefault }) {
			part.copy(&c.Policy, stated)
		}
	}
	c.Limits = sandbox.Limits{Memory: c.limits.Memory << 20, Processes: c.limits.Processes, Threads: c.limits.Threads, FileSize: c.limits.File << 20}
	if c.Sandbox = c.Policy.Sandbox; c.Sandbox == "" {
		c.Sandbox = team.SandboxAuto
	}
	_, c.neverMatch, err = permission.Parse(c.Policy.Permissions)
	if e := file["permissions"]; err != nil && e.origin != "" {
		err = e.node.At(err)
	}
	return err
}

// showSection returns a section as people may see it, in one line.
func showSection(section any) (string, error) {
	if s, ok := section.(fmt.Stringer); ok {
		return s.String(), nil
	}
	return oneLine(section)
}

// NeverMatch returns the rules of permissions that can never match, with the reason, one line each.
func (c Config) NeverMatch() []string { return c.neverMatch }
