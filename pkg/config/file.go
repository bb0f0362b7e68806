package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"agentteam/pkg/team"

	"go.yaml.in/yaml/v3"
)

// fileName is the settings file, looked for in the working folder only: one found
// further up would change what a command does without a trace on the screen.
const fileName = "team.yaml"

// entry is one setting as it stands in team.yaml.
type entry struct {
	value  string
	origin string // "team.yaml:3"
}

// readFile reads the settings file at path, if there is one. It holds a mapping
// from the names in table to single values; anything else is refused with its line,
// for a misspelt setting that is silently ignored is one that nobody finds.
func readFile(path string, table []setting) (map[string]entry, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, team.Errorf(team.InvalidArgument, "%s: %w", fileName, err)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, team.Errorf(team.InvalidArgument, "%s: %w", fileName, err)
	}
	if len(doc.Content) == 0 { // empty, or comments only
		return nil, nil
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode {
		return nil, refuse(root, "want a mapping of settings, such as \"model: NAME\"")
	}
	entries := map[string]entry{}
	for i := 0; i < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		at := slices.IndexFunc(table, func(s setting) bool { return s.name == key.Value })
		switch _, twice := entries[key.Value]; {
		case at < 0:
			return nil, refuse(key, "unknown setting %q; known are %s", key.Value, names(table))
		case table[at].secret:
			return nil, refuse(key, "%s is read from the environment only: set %s", key.Value, table[at].env[0])
		case twice:
			return nil, refuse(key, "%s is set twice", key.Value)
		case value.Kind != yaml.ScalarNode:
			return nil, refuse(value, "%s is not %s", key.Value, table[at].allowed)
		}
		e := entry{origin: fmt.Sprintf("%s:%d", fileName, key.Line)}
		if value.Tag != "!!null" {
			e.value = strings.TrimSpace(value.Value)
		}
		entries[key.Value] = e
	}
	return entries, nil
}

func refuse(at *yaml.Node, format string, args ...any) error {
	return team.Errorf(team.InvalidArgument, "%s:%d: %s", fileName, at.Line, fmt.Sprintf(format, args...))
}

// names lists the settings that may stand in the file.
func names(table []setting) string {
	var list []string
	for _, s := range table {
		if !s.secret {
			list = append(list, s.name)
		}
	}
	return strings.Join(list, ", ")
}
