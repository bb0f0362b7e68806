// Package trust holds which files of repositories a person has trusted, and the form in which settings and role files
// write what members may do. A repository chooses nothing: a key of its files counts only if the key is harmless, or
// once a person has trusted the file as it stands. What is harmless is declared with each key, by the tag `harmless`
// (package strictyaml). The list of trusted files lies in the user's configuration folder.
//
// It reads no settings and no roles; packages config and role do. What members may do where no file states it is
// package team's to decide.
package trust

import (
	"slices"
	"strings"

	"agentteam/pkg/team"
	"agentteam/pkg/team/strictyaml"
)

// Form is what settings and role files say of the hands of members. The zero value says nothing.
type Form struct {
	Sandbox     team.Sandbox       `yaml:"sandbox" harmless:"bubblewrap"`
	Isolation   team.Isolation     `yaml:"isolation" harmless:"worktree"`
	Network     network            `yaml:"network" harmless:"none"`
	Permissions permissions        `yaml:"permissions"`
	Mode        Mode               `yaml:"permission_mode" harmless:"plan|read-only"`
	Ask         team.PermissionAsk `yaml:"permission_ask" harmless:"deny"`
	Credentials credentials        `yaml:"credentials" harmless:"none"`
	Paths       paths              `yaml:"paths"`
	Links       links              `yaml:"worktree_links" harmless:"none"`
}

// Policy returns what f says, and whether its mode is that of plans.
func (f Form) Policy() (h team.Policy, planMode bool) {
	h = team.Policy{
		Sandbox: f.Sandbox, Isolation: f.Isolation, Network: team.Network(f.Network), Permissions: f.Permissions.rules(), PermissionMode: team.PermissionMode(f.Mode),
		PermissionAsk: f.Ask, Credentials: f.Credentials, Paths: team.Paths(f.Paths), Links: f.Links,
	}
	if f.Mode == planning {
		h.PermissionMode = ""
	}
	return h, f.Mode == planning
}

// Mode is a [team.PermissionMode], or plan: that of members whose plans are approved first.
type Mode string

const planning Mode = "plan"

// Values returns the modes that can be written.
func (Mode) Values() []string {
	return append(team.PermissionMode("").Values(), string(planning))
}

// network is a list of hosts, or a text: none, full, or hosts with commas.
type network team.Network

func (n *network) UnmarshalText(text []byte) error {
	*n = network{}
	if string(text) == "none" {
		return nil
	}
	for host := range strings.SplitSeq(string(text), ",") {
		*n = append(*n, strings.TrimSpace(host))
	}
	return nil
}

func (n network) Validate() error {
	if team.Network(n).Full() {
		return nil
	}
	return each(n, team.CheckHost)
}

func (n network) String() string { return team.Network(n).String() }

type credentials []string

func (c credentials) Validate() error { return each(c, team.CheckCredential) }

type paths struct {
	Read  []string `yaml:"read,omitempty" harmless:"none"`
	Write []string `yaml:"write,omitempty" harmless:"none"`
}

func (p paths) Validate() error {
	if err := each(p.Read, team.CheckPath, "read"); err != nil {
		return err
	}
	return each(p.Write, team.CheckPath, "write")
}

type links []string

func (l links) Validate() error { return each(l, team.CheckLink) }

type permissions struct {
	Deny  []string `yaml:"deny,omitempty" harmless:"any"`
	Ask   []string `yaml:"ask,omitempty" harmless:"any"`
	Allow []string `yaml:"allow,omitempty" harmless:"none"`
}

// rules are those of p as a record has them once it was stored and read.
func (p permissions) rules() (r team.Permissions) {
	r.Deny, r.Ask, r.Allow = append(r.Deny, p.Deny...), append(r.Ask, p.Ask...), append(r.Allow, p.Allow...)
	return r
}

func (p permissions) Validate() error {
	check := func(rule string) error {
		return team.Policy{Permissions: team.Permissions{Deny: []string{rule}}}.Validate()
	}
	for _, list := range []struct {
		name  string
		rules []string
	}{{"deny", p.Deny}, {"ask", p.Ask}, {"allow", p.Allow}} {
		if err := each(list.rules, check, list.name); err != nil {
			return err
		}
	}
	return nil
}

// each checks all of a list, which lies at path. The error has the place of the first that is
// refused.
func each(list []string, check func(string) error, path ...any) error {
	for i, v := range list {
		if err := check(v); err != nil {
			return strictyaml.At(err, slices.Concat(path, []any{i})...)
		}
	}
	return nil
}
