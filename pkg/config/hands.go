package config

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"agentteam/pkg/grant"
	"agentteam/pkg/permission"
	"agentteam/pkg/strictyaml"
	"agentteam/pkg/team"
)

// handsSettings are the rows of what members may do.
func handsSettings(c *Config) []setting {
	f := &c.form
	return []setting{
		{name: "sandbox", flag: "sandbox", env: []string{"AGENTTEAM_SANDBOX"}, def: string(team.SandboxAuto), allowed: oneOfThese(f.Sandbox.Values()), parse: known(&f.Sandbox)},
		{name: "isolation", flag: "isolation", env: []string{"AGENTTEAM_ISOLATION"}, def: string(team.IsolationAuto), allowed: oneOfThese(f.Isolation.Values()), parse: known(&f.Isolation)},
		{name: "network", env: []string{"AGENTTEAM_NETWORK"}, def: "none", section: &f.Network},
		{name: "permissions", env: []string{"AGENTTEAM_PERMISSIONS"}, section: &f.Permissions},
		{name: "permission_mode", env: []string{"AGENTTEAM_PERMISSION_MODE"}, def: string(team.DefaultMode), allowed: oneOfThese(f.Mode.Values()), parse: known(&f.Mode)},
		{name: "permission_ask", env: []string{"AGENTTEAM_PERMISSION_ASK"}, def: string(team.AskWait), allowed: oneOfThese(f.Ask.Values()), parse: known(&f.Ask)},
		{name: "credentials", env: []string{"AGENTTEAM_CREDENTIALS"}, section: &f.Credentials},
		{name: "paths", env: []string{"AGENTTEAM_PATHS"}, section: &f.Paths},
		{name: "worktree_links", env: []string{"AGENTTEAM_WORKTREE_LINKS"}, section: &f.Links},
	}
}

func oneOfThese(values []string) string { return "one of " + strings.Join(values, ", ") }

// known takes one of the values of a type that lists them.
func known[T interface {
	~string
	Values() []string
}](dst *T) func(string) (string, bool) {
	return func(v string) (string, bool) {
		*dst = T(v)
		return v, slices.Contains((*dst).Values(), v)
	}
}

// handsParts are the settings of hands with the part of the hands that each is.
var handsParts = []struct {
	name string
	copy func(to *team.Hands, from team.Hands)
}{
	{"sandbox", func(to *team.Hands, from team.Hands) { to.Sandbox = from.Sandbox }},
	{"isolation", func(to *team.Hands, from team.Hands) { to.Isolation = from.Isolation }},
	{"network", func(to *team.Hands, from team.Hands) { to.Network = from.Network }},
	{"permissions", func(to *team.Hands, from team.Hands) { to.Permissions = from.Permissions }},
	{"permission_mode", func(to *team.Hands, from team.Hands) { to.PermissionMode = from.PermissionMode }},
	{"permission_ask", func(to *team.Hands, from team.Hands) { to.PermissionAsk = from.PermissionAsk }},
	{"credentials", func(to *team.Hands, from team.Hands) { to.Credentials = from.Credentials }},
	{"paths", func(to *team.Hands, from team.Hands) { to.Paths = from.Paths }},
	{"worktree_links", func(to *team.Hands, from team.Hands) { to.Links = from.Links }},
}

// takeHands makes the hands of what was read. What the settings file, which holds data, grants
// counts only if it is trusted.
func (c *Config) takeHands(file map[string]entry, data []byte) (err error) {
	said, planMode := c.form.Hands()
	if planMode {
		c.Choices.PlanMode = &planMode
	}
	var inFile team.Hands
	origin := map[string]int{}
	for i, o := range c.origins {
		origin[o.Name] = i
	}
	for _, part := range handsParts {
		i, ok := origin[part.name]
		switch {
		case !ok || c.origins[i].Origin == fromDefault:
		case c.origins[i].Origin == file[part.name].origin:
			part.copy(&inFile, said)
		default:
			part.copy(&c.Hands, said)
		}
	}
	counts, withheld := grant.OfUser().Judge(c.file, data, inFile)
	c.withheld = withheld
	if !grant.OfUser().Trusts(c.file, data) {
		c.withhold(file)
		var s sends // what is wrong with it is said where it is read
		if _, err := (strictyaml.Format{File: c.file, Kind: "settings file", Unknown: func(error) {}}).Decode(data, &s); err == nil {
			c.exposing = s.keysOf()
			for _, o := range c.origins {
				if o.Name == "base_url" && o.Origin != file["base_url"].origin {
					delete(c.exposing, plain)
				}
			}
		}
	}
	for _, part := range handsParts {
		i, ok := origin[part.name]
		if !ok || c.origins[i].Origin != file[part.name].origin {
			continue
		}
		part.copy(&c.Hands, counts)
		var one team.Hands
		if part.copy(&one, inFile); withheld != nil && one.Beyond(team.Hands{}) != nil {
			c.origins[i].Value, c.origins[i].Origin = strictly(part.name, counts), c.origins[i].Origin+", not trusted"
		}
	}
	if c.Sandbox = c.Hands.Sandbox; c.Sandbox == "" {
		c.Sandbox = team.SandboxAuto
	}
	_, c.neverMatch, err = permission.Parse(c.Hands.Permissions)
	if e := file["permissions"]; err != nil && e.origin != "" {
		err = e.node.At(err)
	}
	return err
}

// withhold takes out what else a file grants that is not trusted.
func (c *Config) withhold(file map[string]entry) {
	mark := func(name string) bool {
		i := slices.IndexFunc(c.origins, func(o Origin) bool { return o.Name == name })
		of := i >= 0 && c.origins[i].Origin == file[name].origin
		if of {
			c.origins[i].Value, c.origins[i].Origin = "", c.origins[i].Origin+", not trusted"
		}
		return of
	}
	if c.BranchHook != "" && mark(hookKey) {
		c.withheld = append(c.withheld, hookGrant(c.BranchHook))
		c.BranchHook = ""
	}
	if words := c.sections.limits.grant(); words != "" {
		mark("limits")
		c.withheld = append(c.withheld, words)
		c.sections.limits.MaxTeammates = nil
	}
}

// strictly shows what holds of a setting whose grants do not count.
func strictly(name string, h team.Hands) string {
	switch name {
	case "sandbox":
		return string(h.Sandbox)
	case "isolation":
		return string(h.Isolation)
	case "network":
		return h.Network.String()
	case "permission_mode":
		return string(h.PermissionMode)
	case "permissions":
		if h.Permissions.Deny != nil || h.Permissions.Ask != nil {
			line, _ := oneLine(map[string][]string{"deny": h.Permissions.Deny, "ask": h.Permissions.Ask}) // texts can always be written
			return line
		}
	}
	return ""
}

// Withheld is what team.yaml would grant if a person had trusted it; it has no grants if nothing
// is withheld.
func (c Config) Withheld() grant.Withheld {
	file := c.file
	if rel, err := filepath.Rel(c.sources.Dir, file); err == nil {
		file = rel
	}
	return grant.Withheld{File: file, Grants: c.withheld}
}

// showSection is a section as people may see it, in one line.
func showSection(section any) (string, error) {
	if s, ok := section.(fmt.Stringer); ok {
		return s.String(), nil
	}
	return oneLine(section)
}

// NeverMatch returns the rules of permissions that can never match, and why, one line each.
func (c Config) NeverMatch() []string { return c.neverMatch }
