package config_test

import (
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"agentteam/pkg/config"
	"agentteam/pkg/team"
)

// The rules of the organisation are read from a file that its environment names, never from team.yaml, and no team
// of the settings holds them.
func TestOrganisation(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "org", "permissions.yaml")
	write(t, file, "deny: [Bash(git push *)]\nask: [WebFetch]\nallow: [Bash(ls)]\n")
	write(t, filepath.Join(dir, "team.yaml"), "permissions: {deny: [Bash(rm *)]}\n")
	load := func(file string) (config.Config, error) {
		return config.Load(config.Sources{Dir: dir, Env: from(map[string]string{"AGENTTEAM_ORGANISATION": file})})
	}
	c, err := load(file)
	if want := (team.Permissions{Deny: []string{"Bash(git push *)"}, Ask: []string{"WebFetch"}, Allow: []string{"Bash(ls)"}}); err != nil || !reflect.DeepEqual(c.Organisation, want) {
		t.Errorf("%+v, %v", c.Organisation, err)
	}
	if want := (team.Permissions{Deny: []string{"Bash(rm *)"}}); !reflect.DeepEqual(c.Policy.Permissions, want) {
		t.Errorf("the team has %+v", c.Policy.Permissions)
	}
	if o := c.Origins(); !slices.Contains(o, config.Origin{Name: "organisation", Value: file, Origin: "env AGENTTEAM_ORGANISATION"}) {
		t.Errorf("the origins are %v", o)
	}
	for text, want := range map[string]string{
		"deny: [Bash(rm *), ' ']": file + ":1:20: permissions: a rule is empty (write one such as Bash(git push *))",
		"allow: Bash":             file + ":1:8: allow must be a list: [Bash]",
		"denies: []":              file + `:1:1: unknown key "denies" in the file of permissions; allowed: deny, ask, allow`,
		"deny: [Bash(]":           file + `: permissions: deny: rule 1, "Bash(": a rule is Tool or Tool(what), such as Bash(git push *)`,
	} {
		write(t, file, text)
		if _, err := load(file); err == nil || team.Line(err) != want || team.CodeOf(err) != team.InvalidArgument {
			t.Errorf("%s: %v\nwant %s", text, team.Line(err), want)
		}
	}
	if _, err := load(filepath.Join(dir, "none")); team.CodeOf(err) != team.InvalidArgument || !strings.Contains(team.Line(err), "the permissions of the organisation") {
		t.Errorf("a file that is not there: %v", err)
	}
	write(t, filepath.Join(dir, "team.yaml"), "organisation: /tmp/x\n")
	if _, err := load(""); err == nil {
		t.Error("a settings file names the organisation's rules")
	}
}

// Each fault is one line with its place, and says what is meant.
func TestBadPolicy(t *testing.T) {
	for text, want := range map[string]string{
		"sandbox: bubblewarp":                           `team.yaml:1:10: setting sandbox: "bubblewarp" is not one of auto, bubblewrap, confined, none`,
		"network:\n  - a.org\n  - https://b.org/x":      `team.yaml:3:5: network: "https://b.org/x" is no name of a public host (write b.org)`,
		"network: a.org:80":                             `team.yaml:1:10: network: "a.org:80" is no name of a public host (write a.org)`,
		"network: [none]":                               `team.yaml:1:11: network: none stands alone, not in a list (write network: none)`,
		"network: {a: b}":                               `team.yaml:1:10: network must be a list`,
		"network: [\"a\\0.org\"]":                       `team.yaml:1:11: network: "a\x00.org" is no name of a public host (write example.org, or *.example.org for all names below it: no address, scheme, path or port)`,
		"permissions: {alow: []}":                       `team.yaml:1:15: unknown key "alow" in permissions; did you mean allow?`,
		"permissions: {deny: [Bash(rm *), ' ']}":        `team.yaml:1:34: permissions: a rule is empty (write one such as Bash(git push *))`,
		"permissions:\n  ask:\n    - Bash(git push":     `team.yaml:2:3: permissions: ask: rule 1, "Bash(git push": a rule is Tool or Tool(what), such as Bash(git push *)`,
		"permissions: {deny: Bash}":                     `team.yaml:1:21: deny must be a list: [Bash]`,
		"permission_mode: bypass":                       `team.yaml:1:18: setting permission_mode: "bypass" is not one of read-only, default, acceptEdits, bypassPermissions, plan`,
		"permission_ask: maybe":                         `team.yaml:1:17: setting permission_ask: "maybe" is not one of wait, deny`,
		"credentials: [ghp_secret]":                     `team.yaml:1:15: credentials: "ghp_secret" is no name of a credential (name one, such as gh; its value never stands here)`,
		"paths: {read: [/opt, src]}":                    `team.yaml:1:22: paths: "src" is no path of a folder or file (begin it with / or with ~/, your home; without .., and less than all of either)`,
		"worktree_links: [a, ../b]":                     `team.yaml:1:21: worktree_links: "../b" is no path in the workspace (name it from there, such as node_modules; without .., and not .git)`,
		"paths: {write: [/]}":                           `team.yaml:1:17: paths: "/" is no path of a folder or file (begin it with / or with ~/, your home; without .., and less than all of either)`,
		"server: nats://a:1\npaths:\n  rad: [/opt]\n":   `team.yaml:3:3: unknown key "rad" in paths; did you mean read?`,
		"AGENTTEAM_NETWORK=[a.org, 10.0.0.1]":           `env AGENTTEAM_NETWORK:1:9: network: "10.0.0.1" is no name of a public host (write example.org, or *.example.org for all names below it: no address, scheme, path or port)`,
		"AGENTTEAM_PERMISSIONS=deny":                    `env AGENTTEAM_PERMISSIONS:1:1: the permissions must be a mapping; keys: deny, ask, allow`,
		"AGENTTEAM_PERMISSION_MODE=dontAsk":             `setting permission_mode, from env AGENTTEAM_PERMISSION_MODE: "dontAsk" is not one of read-only, default, acceptEdits, bypassPermissions, plan`,
		"AGENTTEAM_SANDBOX=off":                         `setting sandbox, from env AGENTTEAM_SANDBOX: "off" is not one of auto, bubblewrap, confined, none`,
		"AGENTTEAM_PATHS={read: [\"/a\", \"/a/../b\"]}": `env AGENTTEAM_PATHS:1:15: paths: "/a/../b" is no path of a folder or file (begin it with / or with ~/, your home; without .., and less than all of either)`,
	} {
		dir, env := t.TempDir(), map[string]string{}
		if i := slices.Index([]byte(text), '='); text[0] == 'A' && i > 0 {
			env[text[:i]] = text[i+1:]
		} else {
			write(t, filepath.Join(dir, "team.yaml"), text)
		}
		c, err := config.Load(config.Sources{Dir: dir, Env: from(env)})
		if err == nil || team.Line(err) != want || team.CodeOf(err) != team.InvalidArgument || !reflect.DeepEqual(c, config.Config{}) {
			t.Errorf("%s: %v (%s)\nwant %s", text, team.Line(err), team.CodeOf(err), want)
		}
	}
}
