package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agentteam/pkg/strictyaml"
	"agentteam/pkg/team"
)

// fileName is the settings file of the working folder or of the nearest folder above it.
const fileName = "team.yaml"

// findFile returns the path of the settings file that counts: the one that is named, else the
// nearest one up the tree, as with the cluster file; that of src.Dir if there is none. shown is how
// errors and origins name it, as seen from there.
func (src Sources) findFile() (path, shown string) {
	dir := src.Dir
	if src.File != "" {
		if path = src.File; !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		return path, src.File
	}
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
	modelsKey       = "models"
	defaultModelKey = "default_model" // in the file only
)

// entry is one setting as it is in the file; the zero value is one that is not there.
type entry struct {
	value  string // of a setting that is a single value
	origin string // "team.yaml:3"
	node   strictyaml.Node
}

// readFile reads the settings file at path; if there is none, nothing is set. It holds a
// mapping from the names in table to single values and sections; anything else is
// refused with its place, for a misspelt setting that is silently ignored is one that
// nobody finds. What is in a section is not read yet.
//
// Relative paths in the file are taken from its folder. shown is its name in errors, data all
// that the file holds.
func readFile(path, shown string, table []setting) (entries map[string]entry, data []byte, err error) {
	data, err = os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, team.Errorf(team.InvalidArgument, "%s: %w", shown, err)
	}
	var all map[string]strictyaml.Node
	root, err := strictyaml.Format{File: shown, Kind: "settings file"}.Decode(data, &all)
	if err != nil {
		return nil, nil, err
	}
	entries = map[string]entry{}
	for name, node := range root.Entries() {
		i := slices.IndexFunc(table, func(s setting) bool { return s.name == name })
		if i < 0 {
			return nil, nil, node.AtKey(strictyaml.UnknownKey(name, "the settings file", names(table)))
		}
		s, e := table[i], entry{origin: node.Origin(), node: node}
		switch {
		case s.secret:
			return nil, nil, node.AtKey(fmt.Errorf("%s is read from the environment only: set %s", name, s.env[0]))
		case node.IsNull():
			continue
		case s.section == nil:
			if node.Decode(&e.value) != nil {
				return nil, nil, node.At(fmt.Errorf("%s is not %s", name, s.allowed))
			}
			if e.value = strings.TrimSpace(e.value); s.folder && e.value != "" && !filepath.IsAbs(e.value) {
				e.value = filepath.Join(filepath.Dir(path), e.value)
			}
		}
		entries[name] = e
	}
	return entries, data, nil
}

// names lists the settings that may be in the file.
func names(table []setting) (list []string) {
	for _, s := range table {
		if !s.secret {
			list = append(list, s.name)
		}
	}
	return list
}
