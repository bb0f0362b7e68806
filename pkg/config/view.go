package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"agentteam/pkg/model/router"
)

// origins returns the lines of the alias in "teamctl config view": one for the alias, and one for each further setting
// under `models:`.
func (a Alias) origins() []Origin {
	name := modelsKey + "." + a.Name
	lines := []Origin{{Name: name, Value: a.String(), Origin: a.origin}}
	if a.plain {
		return lines // those settings have lines of their own
	}
	for _, f := range []struct{ key, value string }{
		{"profile", string(a.Profile)}, {"window", count(a.Window)}, {"max_output", count(a.MaxOutput)},
		{"prices", pricesText(a.Prices)}, {"limits", a.Limits.String()},
	} {
		if f.value != "" {
			lines = append(lines, Origin{Name: name + "." + f.key, Value: f.value, Origin: a.origin})
		}
	}
	return lines
}

func count(tokens int) string {
	if tokens == 0 {
		return ""
	}
	return strconv.Itoa(tokens)
}

func pricesText(p *router.Prices) string {
	if p == nil {
		return ""
	}
	return strings.TrimSpace(fmt.Sprintf("input %g, cached %g, written %g, output %g %s", p.Input, p.Cached, p.Written, p.Output, p.Currency))
}

// String returns the limits that are set, such as "connect 5s, idle 3m0s".
func (l Limits) String() string {
	var set []string
	for _, f := range []struct {
		name string
		d    time.Duration
	}{{"connect", l.Connect}, {"first_byte", l.FirstByte}, {"idle", l.Idle}, {"total", l.Total}} {
		if f.d > 0 {
			set = append(set, f.name+" "+f.d.String())
		}
	}
	return strings.Join(set, ", ")
}

// oneLine returns a section as one line of YAML.
func oneLine(section any) (string, error) {
	var n yaml.Node
	if err := n.Encode(section); err != nil {
		return "", err
	}
	n.Style = yaml.FlowStyle
	line, err := yaml.Marshal(&n)
	return strings.TrimSpace(string(line)), err
}
