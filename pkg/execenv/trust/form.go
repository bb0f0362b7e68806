// Package trust records which files of repositories a person has trusted, in the user's configuration folder, and defines the form in
// which settings and role files write policies. A key of a repository's file counts only if its declaration has the tag `harmless`
// (package strictyaml), or once a person has trusted the file as it stands. Packages config and role read the files.
package trust

import (
	"strings"

	"agentteam/pkg/team"
	"agentteam/pkg/team/strictyaml"
)

// Form is the policy of members as settings and role files write it. The zero value states nothing.
type Form struct {
	Sandbox     team.Sandbox       `yaml:"sandbox" harmless:"bubblewrap"`
	Isolation   team.Isolation     `yaml:"isolation" harmless:"worktree"`
	Network     network            `yaml:"network" harmless:"none"`
	Permissions permissions        `yaml:"permissions"`
	Mode        Mode               `yaml:"permission_mode" harmless:"plan|read-only"`
	Ask         team.PermissionAsk `yaml:"permission_ask" harmless:"deny"`
	Credentials list[credential]   `yaml:"credentials" harmless:"none"`
	Paths       paths              `yaml:"paths"`
	Links       list[link]         `yaml:"worktree_links" harmless:"none"`
	OnEdit      list[argument]     `yaml:"on_edit"`
}

// Policy returns the policy in f, and whether its mode is plan.
func (f Form) Policy() (h team.Policy, planMode bool) {
	h = team.Policy{
		Sandbox: f.Sandbox, Isolation: f.Isolation, Network: team.Network(f.Network), Permissions: f.Permissions.rules(), PermissionMode: team.PermissionMode(f.Mode),
		PermissionAsk: f.Ask, Credentials: f.Credentials, Paths: team.Paths{Read: f.Paths.Read, Write: f.Paths.Write}, Links: f.Links,
		OnEdit: f.OnEdit,
	}
	if f.Mode == planning {
		h.PermissionMode = ""
	}
	return h, f.Mode == planning
}

// Mode is a [team.PermissionMode], or plan: members need approved plans.
type Mode string

const planning Mode = "plan"

// Values returns the modes that can be written.
func (Mode) Values() []string {
	return append(team.PermissionMode("").Values(), string(planning))
}

// network is a list of hosts, or a string: none, full, or hosts with commas.
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
	return list[host](n).Validate()
}

func (n network) String() string { return team.Network(n).String() }

// list is a list of strings that C checks one by one: the error has the place of the first refused one.
type list[C interface{ check(string) error }] []string

func (l list[C]) Validate() error {
	var c C
	for i, v := range l {
		if err := c.check(v); err != nil {
			return strictyaml.At(err, i)
		}
	}
	return nil
}

type (
	host       struct{}
	credential struct{}
	path       struct{}
	link       struct{}
	rule       struct{}
	argument   struct{}
)

func (host) check(s string) error       { return team.CheckHost(s) }
func (credential) check(s string) error { return team.CheckCredential(s) }
func (path) check(s string) error       { return team.CheckPath(s) }
func (link) check(s string) error       { return team.CheckLink(s) }
func (argument) check(s string) error   { return team.Policy{OnEdit: []string{"program", s}}.Validate() }
func (rule) check(s string) error {
	return team.Policy{Permissions: team.Permissions{Deny: []string{s}}}.Validate()
}

type paths struct {
	Read  list[path] `yaml:"read,omitempty" harmless:"none"`
	Write list[path] `yaml:"write,omitempty" harmless:"none"`
}

type permissions struct {
	Deny  list[rule] `yaml:"deny,omitempty" harmless:"any"`
	Ask   list[rule] `yaml:"ask,omitempty" harmless:"any"`
	Allow list[rule] `yaml:"allow,omitempty" harmless:"none"`
}

// rules returns p in the form of a stored record.
func (p permissions) rules() (r team.Permissions) {
	r.Deny, r.Ask, r.Allow = append(r.Deny, p.Deny...), append(r.Ask, p.Ask...), append(r.Allow, p.Allow...)
	return r
}
