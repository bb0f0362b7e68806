package config

import (
	"errors"
	"maps"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"agentteam/pkg/grant"
	"agentteam/pkg/strictyaml"
	"agentteam/pkg/team"
)

// sends is what of a settings file decides where secrets of the environment go.
type sends struct {
	BaseURL string `yaml:"base_url"`
	Models  models `yaml:"models"`
}

// plain is the name by which keysOf speaks of the endpoint of the plain settings.
const plain = ""

// keysOf returns "OPENAI_API_KEY to api.example.org" for each secret that goes to an endpoint of
// the file's choice, by the alias. An endpoint on this machine is no other's.
func (s sends) keysOf() map[string][]string {
	all := map[string][]string{}
	add := func(alias, what, endpoint string) {
		u, err := url.Parse(endpoint)
		if err != nil || u.Host == "" || u.Hostname() == "localhost" {
			return
		}
		if ip, err := netip.ParseAddr(u.Hostname()); err != nil || !ip.IsLoopback() {
			all[alias] = append(all[alias], what+" to "+u.Host)
		}
	}
	add(plain, "OPENAI_API_KEY", s.BaseURL)
	for name, a := range s.Models {
		if a.KeyEnv != "" {
			add(name, a.KeyEnv, a.BaseURL)
		}
		for _, header := range slices.Sorted(maps.Keys(a.Headers)) {
			if variable, ok := strings.CutPrefix(string(a.Headers[header]), fromEnv); ok {
				add(name, variable, a.BaseURL)
			}
		}
	}
	return all
}

// keys is keysOf in one list.
func (s sends) keys() (all []string) {
	of := s.keysOf()
	for _, alias := range slices.Sorted(maps.Keys(of)) {
		all = append(all, of[alias]...)
	}
	return all
}

// hookGrant names a command that runs outside of any sandbox.
func hookGrant(command string) string { return hookKey + ", run with your rights: " + command }

// GrantsIn returns what a settings file, which holds data, lets members do, which secrets it
// sends where and what it runs, a few words each: what a person trusts. Errors: InvalidArgument.
func GrantsIn(file string, data []byte) ([]string, error) {
	var f grant.Form
	var s sends
	var rest struct {
		Hook   string        `yaml:"branch_hook"`
		Limits limitsSection `yaml:"limits"`
	}
	format := strictyaml.Format{File: file, Kind: "settings file", Unknown: func(error) {}}
	root, err := format.Decode(data, &f)
	if err == nil {
		err = errors.Join(root.Decode(&s), root.Decode(&rest))
	}
	if err != nil {
		return nil, err
	}
	hands, _ := f.Hands()
	grants := append(hands.Beyond(team.Hands{}), s.keys()...)
	if rest.Hook != "" {
		grants = append(grants, hookGrant(rest.Hook))
	}
	if words := rest.Limits.grant(); words != "" {
		grants = append(grants, words)
	}
	return grants, nil
}
