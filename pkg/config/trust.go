package config

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"agentteam/pkg/execenv/trust"
	"agentteam/pkg/team"
	"agentteam/pkg/team/strictyaml"
)

// withhold removes the untrusted keys from the entries of a file, and records them as waiting. If all faults are
// wanted, the entries stay.
func (c *Config) withhold(table []setting, file map[string]entry, data []byte) {
	shown := c.file
	if rel, err := filepath.Rel(c.sources.Dir, c.file); err == nil {
		shown = rel
	}
	w := trust.OfUser().Judge(c.file, shown, data)
	if w == nil {
		return
	}
	for _, s := range table {
		e, ok := file[s.name]
		if !ok || e.origin == "" {
			continue
		}
		waits := len(w.Keys)
		switch e.node, ok = s.withhold(e.node, w); {
		case c.sources.All: // the file is checked, and nothing done by it
		case ok:
			file[s.name] = e
		default:
			delete(file, s.name)
		}
		if s.decides && len(w.Keys) > waits && !s.isNamed(c.sources) {
			c.undecided = append(c.undecided, s.name)
		}
	}
	c.waiting = *w
}

// withhold returns the part of a setting's value that counts in an untrusted file, and adds the other keys to w; ok is
// false if nothing counts.
func (s setting) withhold(n strictyaml.Node, w *trust.Waiting) (left strictyaml.Node, ok bool) {
	of := reflect.TypeFor[string]()
	if s.section != nil {
		of = reflect.TypeOf(s.section).Elem()
	}
	return n.Withhold(of, s.harmless, func(path, value string) {
		w.Wait(strings.TrimSuffix(s.name+"."+path, "."), value)
		if s.runs {
			w.Run(value)
		}
	})
}

// isNamed reports whether a flag or the environment has the setting, so that the file does not matter.
func (s setting) isNamed(src Sources) bool {
	if s.flag != "" && src.Flags != nil {
		if _, given := src.Flags(s.flag); given {
			return true
		}
	}
	_, variable := s.inEnv(src)
	return variable != ""
}

// Waiting returns the part of the settings file that waits until a person trusts it; it has no keys if nothing waits.
func (c Config) Waiting() trust.Waiting { return c.waiting }

// Decided returns an error if an untrusted file sets the model, the place or the sandbox of the process, which then has
// no alternative. keys are those that the caller needs; none means all. Errors: InvalidArgument, with the command that
// trusts the file.
func (c Config) Decided(keys ...string) error {
	open := slices.DeleteFunc(slices.Clone(c.undecided), func(name string) bool { return keys != nil && !slices.Contains(keys, name) })
	if len(open) == 0 {
		return nil
	}
	return team.Errorf(team.InvalidArgument, "%s sets %s, and no person has trusted that file as it stands", c.waiting.File, strings.Join(open, ", ")).
		WithHint("look what it sets and trust it: %s", c.waiting.Command())
}

// WaitingIn returns the part of a settings file that waits until a person trusts it; nil if nothing waits. Errors:
// InvalidArgument for a file that is not a settings file.
func WaitingIn(path string, data []byte) (*trust.Waiting, error) {
	table := settings(new(Config), filepath.Dir(path))
	entries, err := entriesOf(path, path, data, table, false)
	if err != nil {
		return nil, err
	}
	w := trust.OfUser().Judge(path, path, data)
	for _, s := range table {
		if e, ok := entries[s.name]; ok && e.origin != "" && w != nil {
			s.withhold(e.node, w)
		}
	}
	return w, nil
}

// HarmlessKeys returns the keys of a settings file that count before a person has trusted a repository's file, each
// with its tag of the allowed values; see [strictyaml.Node.Withhold].
func HarmlessKeys() (rows [][2]string) {
	for _, s := range settings(new(Config), "") {
		if s.harmless != "" {
			rows = append(rows, [2]string{s.name, s.harmless})
		} else if s.section != nil {
			for _, key := range strictyaml.Harmless(reflect.TypeOf(s.section).Elem()) {
				rows = append(rows, [2]string{fmt.Sprintf("%s.%s", s.name, key[0]), key[1]})
			}
		}
	}
	return rows
}
