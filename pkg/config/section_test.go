package config

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// garden is a made-up section: a struct, its tags, and one row in the table.
type garden struct {
	Gate   gate           `yaml:"gate,omitempty" required:"who may enter"`
	Beds   map[string]bed `yaml:"beds,omitempty"`
	Water  time.Duration  `yaml:"water,omitempty" maximum:"1h"`
	Robots int            `yaml:"robots,omitempty" minimum:"1"`
	Pin    Secret         `yaml:"pin,omitempty"`
}

type bed struct {
	Plants []string `yaml:"plants" required:"a list of plants" minItems:"1"`
}

type gate string

func (gate) Values() []string { return []string{"open", "locked"} }

func TestSection(t *testing.T) {
	for text, want := range map[string]string{
		"team: a\ngarden:\n  gate: locked\n  beds: {north: {plants: [kale, 'a: b']}}\n  water: 5m\n  pin: hush\n": "{gate: locked, beds: {north: {plants: [kale, 'a: b']}}, water: 5m0s, pin: set}",
		"garden: {gate: open}\nteam: b":     "{gate: open}",
		"garden:\n":                         "",
		"":                                  "",
		"garden: open":                      "team.yaml:1:9: garden must be a mapping; keys: gate, beds, water, robots, pin",
		"garden: {}":                        "team.yaml:1:1: garden lacks the key gate: who may enter",
		"garden: {gate: opne}":              `team.yaml:1:16: gate: "opne" is not known; did you mean open?`,
		"garden:\n  gate: open\n  robot: 1": `team.yaml:3:3: unknown key "robot" in garden; did you mean robots?`,
		"garden:\n  gate: open\n  beds:\n    north: {}":    "team.yaml:4:5: beds.north lacks the key plants: a list of plants",
		"garden:\n  gate: open\n  robots: many":            `team.yaml:3:11: robots: "many" is not a whole number, 1 or more`,
		"garden: {gate: open}\ngarden: {gate: open}":       `team.yaml:2:1: the key "garden" comes twice`,
		"gardne: {gate: open}":                             `team.yaml:1:1: unknown key "gardne" in the settings file; did you mean garden?`,
		"garden: {gate: open}\nmodels: {a: {modle: open}}": `team.yaml:2:14: unknown key "modle" in models.a; did you mean model?`,
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "team.yaml"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		var g garden
		c := Config{sources: Sources{Dir: dir}}
		err := c.load(append(settings(&c, dir), setting{name: "garden", section: &g}))
		got := ""
		for _, o := range c.Origins() {
			if o.Name == "garden" {
				got = o.Value
				if o.Origin != "team.yaml:1" && o.Origin != "team.yaml:2" {
					t.Errorf("%q: garden comes from %q", text, o.Origin)
				}
			}
		}
		if err != nil {
			got = err.Error()
		}
		if got != want || want != "" && err == nil && g.Gate == "" {
			t.Errorf("%q: %s, %+v\nwant %s", text, got, g, want)
		}
	}
}
