package config

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"agentteam/pkg/model"
	"agentteam/pkg/strictyaml"
	"agentteam/pkg/team"
)

// models reads the mapping `models:` of the settings file.
type models struct {
	*strictyaml.Reader
	env      func(name string) string
	aliases  []Alias
	mentions []mention
	currency string // of the prices read so far
}

// mention is a place where an alias names another, which may stand further down.
type mention struct {
	at     *yaml.Node
	by, of string
}

func (m *models) read(n *yaml.Node) {
	m.Entries(n, "models", func(key, v *yaml.Node) {
		switch {
		case key.Value == team.Inherit:
			m.Fail(key, "inherit is reserved: it means the process's default")
			return
		case !team.IsAlias(key.Value):
			m.Fail(key, "%.80q is not %s", key.Value, team.AliasAllowed)
			return
		}
		a := Alias{Name: key.Value, origin: fmt.Sprintf("%s:%d", m.File, key.Line)}
		if v.Kind == yaml.ScalarNode && !isNull(v) {
			a.Same = v.Value
			m.mentions = append(m.mentions, mention{v, a.Name, a.Same})
		} else {
			m.alias(key, v, &a)
		}
		m.aliases = append(m.aliases, a)
	})
}

// alias reads what stands under the alias's name, which is at key.
func (m *models) alias(key, v *yaml.Node, a *Alias) {
	what := "the model " + a.Name
	var most *yaml.Node // where max_output stands
	m.Object(v, what, map[string]func(*yaml.Node){
		"base_url": func(n *yaml.Node) { a.BaseURL = m.url(n) },
		"key_env":  func(n *yaml.Node) { a.KeyEnv = m.variable(n, "key_env") },
		"model": func(n *yaml.Node) {
			if a.Model = strings.TrimSpace(m.Text(n, "model")); a.Model == "" {
				m.Fail(n, "model is empty; give the model's name at the endpoint")
			}
		},
		"profile":    func(n *yaml.Node) { a.Profile = m.oneOf(n, "profile", model.Profiles()) },
		"window":     func(n *yaml.Node) { a.Window = m.tokens(n, "window") },
		"max_output": func(n *yaml.Node) { most, a.MaxOutput = n, m.tokens(n, "max_output") },
		"headers":    func(n *yaml.Node) { a.Headers = m.headers(n, a) },
		"prices":     func(n *yaml.Node) { a.Prices = m.prices(n, a.Name) },
		"extra":      func(n *yaml.Node) { a.Extra = m.extra(n, a.Name) },
		"fallbacks": func(n *yaml.Node) {
			if n.Kind == yaml.ScalarNode && n.Value != "" {
				m.Fail(n, "fallbacks must be a list: [%.80s]", n.Value)
				return
			}
			for _, item := range m.Items(n, "fallbacks") {
				name := m.Text(item, "a fallback")
				a.Fallbacks = append(a.Fallbacks, name)
				m.mentions = append(m.mentions, mention{item, a.Name, name})
			}
		},
		"limits": func(n *yaml.Node) { a.Limits = m.limits(n, a.Name) },
	})
	if a.Model == "" {
		m.Fail(key, "%s lacks the key model: its name at the endpoint", what)
	}
	if a.Window > 0 && a.MaxOutput >= a.Window {
		m.Fail(most, noRoom, "max_output", a.MaxOutput, a.Window)
	}
	if a.KeyEnv == "" && a.BaseURL == "" {
		a.KeyEnv = "OPENAI_API_KEY" // OpenAI's own endpoint takes nobody without a key
	}
	if a.KeyEnv != "" {
		a.Key = Secret(m.required(a, a.KeyEnv))
	}
}

// noRoom is what is wrong with a limit of the answer that is all of the window.
const noRoom = "%s: an answer of %d tokens leaves no room for a prompt in a window of %d"

// required is what the environment variable holds. Without it the alias cannot be used.
func (m *models) required(a *Alias, name string) string {
	v := strings.TrimSpace(m.env(name))
	if v == "" && name != "" && !slices.Contains(a.Missing, name) {
		a.Missing = append(a.Missing, name)
	}
	return v
}

func (m *models) url(n *yaml.Node) string {
	v := strings.TrimSpace(m.Text(n, "base_url"))
	if !isURL(v, "http", "https") {
		m.Fail(n, "base_url %.80q is not an http or https URL such as http://127.0.0.1:8000/v1", maskURL(v))
	}
	return v
}

var variablePattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func (m *models) variable(n *yaml.Node, what string) string {
	v := m.Text(n, what)
	if !variablePattern.MatchString(v) { // not quoted: it may be the key
		m.Fail(n, "%s must be the name of an environment variable, such as OPENAI_API_KEY; the key itself never stands here", what)
	}
	return v
}

func (m *models) oneOf(n *yaml.Node, what string, allowed []string) string {
	v := m.Text(n, what)
	if !slices.Contains(allowed, v) {
		m.Fail(n, "the %s %.80q is not known; known are %s", what, v, strings.Join(allowed, ", "))
	}
	return v
}

func isNull(n *yaml.Node) bool { return n.Tag == "!!null" }

func (m *models) tokens(n *yaml.Node, what string) int {
	if isNull(n) {
		m.Fail(n, "%s must be a number of tokens", what)
		return 0
	}
	v, err := strconv.Atoi(m.Text(n, what))
	if err != nil || v < 1 {
		m.Fail(n, "%s %.80q is not a whole number of tokens, 1 or more", what, n.Value)
	}
	return v
}

// fromEnv begins a header's value that stands in the environment.
const fromEnv = "env:"

var headerPattern = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$") // RFC 9110, section 5.6.2

func (m *models) headers(n *yaml.Node, a *Alias) map[string]Secret {
	all := map[string]Secret{}
	m.Entries(n, "headers", func(key, v *yaml.Node) {
		value := m.Text(v, "a header")
		if !headerPattern.MatchString(key.Value) {
			m.Fail(key, "%.80q is not the name of an HTTP header", key.Value)
		}
		if name, ok := strings.CutPrefix(value, fromEnv); ok {
			if !variablePattern.MatchString(name) {
				m.Fail(v, "after %s comes the name of an environment variable", fromEnv)
			}
			value = m.required(a, name)
			a.secrets = append(a.secrets, key.Value)
		}
		if strings.ContainsAny(value, "\r\n\x00") { // not quoted: it may be a key
			m.Fail(v, "the header %s has more than one line", key.Value)
		}
		all[key.Value] = Secret(value)
	})
	return all
}

func (m *models) prices(n *yaml.Node, alias string) *model.Prices {
	p := model.Prices{Input: -1, Cached: -1, Output: -1}
	price := func(to *float64, what string) func(*yaml.Node) {
		return func(n *yaml.Node) {
			if isNull(n) {
				m.Fail(n, "%s must be a number", what)
				return
			}
			v, err := strconv.ParseFloat(m.Text(n, what), 64)
			if err != nil || v < 0 || math.IsInf(v, 0) || math.IsNaN(v) {
				m.Fail(n, "the price %s: %.80q is not a number, 0 or more, for a million tokens", what, n.Value)
			}
			*to = v
		}
	}
	m.Object(n, "the prices of "+alias, map[string]func(*yaml.Node){
		"input": price(&p.Input, "input"), "cached": price(&p.Cached, "cached"), "output": price(&p.Output, "output"),
		"currency": func(n *yaml.Node) { p.Currency = m.Text(n, "currency") },
	})
	switch {
	case p.Input < 0 || p.Output < 0:
		m.Fail(n, "the prices of %s need input and output; cached is that of input unless it is given", alias)
	case p.Currency != m.currency && slices.ContainsFunc(m.aliases, func(a Alias) bool { return a.Prices != nil }):
		// The costs of a team are one sum.
		m.Fail(n, "the prices of %s are in %q and those above in %q; all need one currency", alias, p.Currency, m.currency)
	}
	m.currency = p.Currency
	if p.Cached < 0 {
		p.Cached = p.Input
	}
	return &p
}

func (m *models) extra(n *yaml.Node, alias string) map[string]any {
	if n.Kind != yaml.MappingNode {
		m.Fail(n, "the extra of %s must be a mapping of fields for the request's body", alias)
		return nil
	}
	m.Entries(n, "the extra of "+alias, func(key, _ *yaml.Node) {
		if slices.Contains(model.OwnFields(), key.Value) {
			m.Refuse(key, team.Errorf(team.InvalidArgument, "%s is no extra field: each request has its own", key.Value).
				WithHint("extra fields are such as reasoning_effort or temperature"))
		}
	})
	fields, _ := m.Value(n, func(n *yaml.Node) any { return m.Text(n, "a value") }).(map[string]any)
	return fields
}

func (m *models) limits(n *yaml.Node, alias string) (l Limits) {
	limit := func(to *time.Duration, what string) func(*yaml.Node) {
		return func(n *yaml.Node) {
			if _, ok := duration(to, leastLimit, mostLimit)(m.Text(n, what)); !ok {
				m.Fail(n, "the limit %s: %.80q is not %s", what, n.Value, limitAllowed)
			}
		}
	}
	m.Object(n, "the limits of "+alias, map[string]func(*yaml.Node){
		"connect": limit(&l.Connect, "connect"), "first_byte": limit(&l.FirstByte, "first_byte"),
		"idle": limit(&l.Idle, "idle"), "total": limit(&l.Total, "total"),
	})
	return l
}

// link checks the names by which aliases speak of each other. known are all aliases,
// also the one that does not stand in the file.
func (m *models) link(known []Alias) {
	var names []string
	next := map[string][]mention{}
	for _, a := range known {
		names = append(names, a.Name)
	}
	for _, to := range m.mentions {
		if !slices.Contains(names, to.of) {
			m.Fail(to.at, "%.80q is no alias; aliases are %s", to.of, strings.Join(names, ", "))
			return
		}
		next[to.by] = append(next[to.by], to)
	}
	seen := map[string]bool{}
	var follow func(path []string)
	follow = func(path []string) {
		at := path[len(path)-1]
		for _, to := range next[at] {
			if i := slices.Index(path, to.of); i >= 0 {
				m.Fail(to.at, "a model cannot stand in for itself: %s", strings.Join(append(path[i:], to.of), " -> "))
			} else if !seen[to.of] {
				follow(append(slices.Clone(path), to.of))
			}
		}
		seen[at] = true
	}
	for _, a := range m.aliases {
		follow([]string{a.Name})
	}
}
