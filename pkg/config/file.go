package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"agentteam/pkg/strictyaml"
	"agentteam/pkg/team"
)

// fileName is the settings file of the working folder or of the nearest folder above it.
const fileName = "team.yaml"

// findFile returns the path of the settings file that counts in dir: the nearest one up
// the tree, as with the cluster file; dir's own if there is none. shown is how errors and
// origins name it, as seen from dir.
func findFile(dir string) (path, shown string) {
	for at := dir; ; at = filepath.Dir(at) {
		path = filepath.Join(at, fileName)
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			if shown, err = filepath.Rel(dir, path); err != nil {
				shown = path
			}
			return path, shown
		}
		if at == filepath.Dir(at) {
			return filepath.Join(dir, fileName), fileName
		}
	}
}

const (
	modelsKey       = "models"        // the one setting of the file that is not a single value
	defaultModelKey = "default_model" // stands in the file only
)

// file is what stands in team.yaml.
type file struct {
	strictyaml.Reader
	folder  string
	entries map[string]entry
	models  *models // with its own reader: what is wrong there need not be so with the rest
}

// entry is one setting as it stands in the file.
type entry struct {
	value  string
	origin string     // "team.yaml:3"
	at     *yaml.Node // the value
}

// readFile reads the settings file at path; if there is none, nothing is set. It holds
// a mapping from the names in table to single values, and `models:`; anything else is
// refused with its place, for a misspelt setting that is silently ignored is one that
// nobody finds. What is wrong under `models:` is not part of the error, and what the
// aliases say of each other is not checked yet.
//
// Relative paths in the file are taken from its folder. shown is its name in errors.
func readFile(path, shown string, table []setting, env func(string) string) (*file, error) {
	f := &file{Reader: strictyaml.Reader{File: shown, Files: "settings"}, folder: filepath.Dir(path), entries: map[string]entry{}}
	f.models = &models{Reader: &strictyaml.Reader{File: shown, Files: "settings"}, env: env}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return nil, team.Errorf(team.InvalidArgument, "%s: %w", shown, err)
	}
	if root := f.Document(data); root != nil && root.Tag != "!!null" { // else it is empty, or comments only
		f.read(root, table)
	}
	return f, f.Err()
}

func (f *file) read(root *yaml.Node, table []setting) {
	if root.Kind != yaml.MappingNode {
		f.Fail(root, "want a mapping of settings, such as \"model: NAME\"")
		return
	}
	for i := 0; i < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		at := slices.IndexFunc(table, func(s setting) bool { return s.name == key.Value })
		switch _, twice := f.entries[key.Value]; {
		case twice:
			f.Fail(key, "%s is set twice", key.Value)
		case key.Value == modelsKey:
			if !isNull(value) {
				f.models.read(value)
			}
		case at < 0:
			f.Fail(key, "unknown setting %q; known are %s", key.Value, names(table))
		case table[at].secret:
			f.Fail(key, "%s is read from the environment only: set %s", key.Value, table[at].env[0])
		case value.Kind != yaml.ScalarNode:
			f.Fail(value, "%s is not %s", key.Value, table[at].allowed)
		}
		e := entry{origin: fmt.Sprintf("%s:%d", f.File, key.Line), at: value}
		if !isNull(value) {
			e.value = strings.TrimSpace(value.Value)
		}
		if at >= 0 && table[at].folder && e.value != "" && !filepath.IsAbs(e.value) {
			e.value = filepath.Join(f.folder, e.value)
		}
		f.entries[key.Value] = e
	}
}

// names lists the settings that may stand in the file.
func names(table []setting) string {
	list := []string{modelsKey}
	for _, s := range table {
		if !s.secret {
			list = append(list, s.name)
		}
	}
	return strings.Join(list, ", ")
}
