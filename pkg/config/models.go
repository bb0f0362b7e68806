package config

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"agentteam/pkg/model"
	"agentteam/pkg/team"
	"agentteam/pkg/team/strictyaml"
)

// models is the section `models:` of the settings file.
type models map[string]Alias

// noRoom is the error of an answer's limit that is as large as the window.
const noRoom = "%s: an answer of %d tokens leaves no room for a prompt in a window of %d"

func (all models) Validate() error {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		switch {
		case name == team.Inherit:
			return strictyaml.At(errors.New("inherit is reserved: it means the process's default"), strictyaml.Key(name))
		case !team.IsAlias(name):
			return strictyaml.At(fmt.Errorf("%.80q is not %s", name, team.AliasAllowed), strictyaml.Key(name))
		}
	}
	return nil
}

// UnmarshalText reads an alias that is a further name of another.
func (a *Alias) UnmarshalText(text []byte) error {
	a.Same = string(text)
	return nil
}

var (
	variablePattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	headerPattern   = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$") // RFC 9110, section 5.6.2
)

// fromEnv begins a header's value that is in the environment.
const fromEnv = "env:"

// Validate checks the fields in the file. Errors: InvalidArgument.
func (a *Alias) Validate() error {
	switch {
	case a.BaseURL != "" && !IsBaseURL(a.BaseURL):
		return strictyaml.At(fmt.Errorf("base_url %.80q is not an http or https URL such as http://127.0.0.1:8000/v1", maskURL(a.BaseURL)), "base_url")
	case a.KeyEnv != "" && !variablePattern.MatchString(a.KeyEnv): // not quoted: it may be the key
		return strictyaml.At(errors.New("key_env must be the name of an environment variable, such as OPENAI_API_KEY; the key itself never stands here"), "key_env")
	case a.Window > 0 && a.MaxOutput >= a.Window:
		return strictyaml.At(fmt.Errorf(noRoom, "max_output", a.MaxOutput, a.Window), "max_output")
	}
	for name, value := range a.Headers {
		if !headerPattern.MatchString(name) {
			return strictyaml.At(fmt.Errorf("%.80q is not the name of an HTTP header", name), "headers", strictyaml.Key(name))
		}
		if of, ok := strings.CutPrefix(string(value), fromEnv); ok && !variablePattern.MatchString(of) {
			return strictyaml.At(fmt.Errorf("after %s comes the name of an environment variable", fromEnv), "headers", name)
		}
	}
	for _, field := range model.OwnFields() {
		if _, own := a.Extra[field]; own {
			return strictyaml.At(team.Errorf(team.InvalidArgument, "%s is no extra field: each request has its own", field).
				WithHint("extra fields are such as reasoning_effort or temperature"), "extra", strictyaml.Key(field))
		}
	}
	return nil
}

// aliases returns the aliases of the section at n, in the order of the file and with their values from the environment.
func (all models) aliases(n strictyaml.Node, env func(name string) string) (aliases []Alias, err error) {
	for name, at := range n.Entries() {
		a := all[name]
		a.Name, a.Model, a.origin = name, strings.TrimSpace(a.Model), at.Origin()
		required := func(variable string) Secret {
			v := strings.TrimSpace(env(variable))
			if v == "" && !slices.Contains(a.Missing, variable) {
				a.Missing = append(a.Missing, variable)
			}
			return Secret(v)
		}
		for _, header := range slices.Sorted(maps.Keys(a.Headers)) {
			if of, ok := strings.CutPrefix(string(a.Headers[header]), fromEnv); ok {
				a.Headers[header] = required(of)
				a.secrets = append(a.secrets, header)
			}
			if strings.ContainsAny(string(a.Headers[header]), "\r\n\x00") { // not quoted: it may be a key
				return nil, at.At(fmt.Errorf("the header %s has more than one line", header), "headers", header)
			}
		}
		if a.KeyEnv == "" && a.BaseURL == "" && a.Same == "" {
			a.KeyEnv = "OPENAI_API_KEY" // OpenAI's own endpoint takes nobody without a key
		}
		if a.KeyEnv != "" {
			a.Key = required(a.KeyEnv)
		}
		if p := a.Prices; p != nil {
			if !at.Has("prices", "cached") {
				p.Cached = p.Input
			}
			if !at.Has("prices", "written") {
				p.Written = p.Input
			}
			// The costs of a team are one sum.
			if i := slices.IndexFunc(aliases, func(o Alias) bool { return o.Prices != nil && o.Prices.Currency != p.Currency }); i >= 0 {
				return nil, at.At(fmt.Errorf("the prices of %s are in %q and those of %s in %q; all need one currency",
					name, p.Currency, aliases[i].Name, aliases[i].Prices.Currency), "prices")
			}
		}
		aliases = append(aliases, a)
	}
	return aliases, nil
}

// link checks the references between the aliases of the section at n. known are all aliases, also the one that is not
// in the file.
func link(n strictyaml.Node, known []Alias) error {
	var names []string
	mentions := map[string][]string{}
	for _, a := range known {
		names, mentions[a.Name] = append(names, a.Name), a.Fallbacks
		if a.Same != "" {
			mentions[a.Name] = []string{a.Same}
		}
	}
	for _, name := range names {
		for i, of := range mentions[name] {
			if !slices.Contains(names, of) {
				return n.At(fmt.Errorf("%.80q is no alias; aliases are %s", of, strings.Join(names, ", ")), name, "fallbacks", i)
			}
		}
	}
	for _, name := range names {
		if path := team.Cycle(mentions, name); path != nil {
			last := path[len(path)-1]
			err := fmt.Errorf("a model cannot stand in for itself: %s", strings.Join(append(path, name), " -> "))
			return n.At(err, last, "fallbacks", slices.Index(mentions[last], name))
		}
	}
	return nil
}
