package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agentteam/pkg/team"
	"agentteam/pkg/team/strictyaml"
)

// fileName is the settings file of the working folder or of the nearest folder above it.
const fileName = "team.yaml"

// findFile returns the path of the settings file: the named one, else the nearest one up the tree, as with the cluster
// file; that of src.Dir if there is none. shown is its name in errors and origins, relative to src.Dir.
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

// entry is one setting in the file; the zero value is a missing one.
type entry struct {
	value  string // of a setting that is a single value
	origin string // "team.yaml:3"
	node   strictyaml.Node
}

// readFile reads the settings file at path; if there is none, nothing is set. The file is a mapping from the names in
// table to single values and sections; anything else is refused with its place, since people would not find a misspelt
// setting that is silently ignored. It does not read the contents of sections.
//
// Relative paths in the file are relative to its folder. shown is its name in errors, data its content. With all the
// error joins all faults, and the entries are those without one.
func readFile(path, shown string, table []setting, all bool) (entries map[string]entry, data []byte, err error) {
	data, err = os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, team.Errorf(team.InvalidArgument, "%s: %w", shown, err)
	}
	entries, err = entriesOf(path, shown, data, table, all)
	return entries, data, err
}

// entriesOf is readFile for a file with the content data.
func entriesOf(path, shown string, data []byte, table []setting, all bool) (entries map[string]entry, err error) {
	var nodes map[string]strictyaml.Node
	root, err := strictyaml.Format{File: shown, Kind: "settings file", All: all}.Decode(data, &nodes)
	if err != nil && !all {
		return nil, err
	}
	entries = map[string]entry{}
	for name, node := range root.Entries() {
		e, fault := read(name, node, table, filepath.Dir(path))
		switch {
		case fault != nil && !all:
			return nil, fault
		case fault != nil:
			err = errors.Join(err, fault)
		case !node.IsNull():
			entries[name] = e
		}
	}
	return entries, err
}

// read reads one setting of a file in dir, without the contents of a section.
func read(name string, node strictyaml.Node, table []setting, dir string) (entry, error) {
	e := entry{origin: node.Origin(), node: node}
	i := slices.IndexFunc(table, func(s setting) bool { return s.name == name })
	if i < 0 {
		return e, node.AtKey(strictyaml.UnknownKey(name, "the settings file", names(table)))
	}
	switch s := table[i]; {
	case s.secret:
		return e, node.AtKey(fmt.Errorf("%s is read from the environment only: set %s", name, s.env[0]))
	case node.IsNull(), s.section != nil:
	case node.Decode(&e.value) != nil:
		return e, node.At(fmt.Errorf("%s is not %s", name, s.allowed))
	default:
		if e.value = strings.TrimSpace(e.value); s.folder && e.value != "" && !filepath.IsAbs(e.value) {
			e.value = filepath.Join(dir, e.value)
		}
	}
	return e, nil
}

// names returns the settings that may be in the file.
func names(table []setting) (list []string) {
	for _, s := range table {
		if !s.secret {
			list = append(list, s.name)
		}
	}
	return list
}
