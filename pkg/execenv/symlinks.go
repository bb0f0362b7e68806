package execenv

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agentteam/pkg/tool/safefs"
)

// way returns the steps of [safefs.Way] for a path of this machine.
func way(path string) (steps []string) {
	steps, _ = safefs.Way(os.Readlink, path)
	return steps
}

// realOf returns where an absolute path leads, even if the target is missing.
func realOf(path string) string {
	steps := way(path)
	return steps[len(steps)-1]
}

// resolve returns the path of name in dir, or in the user's home, without resolving "..": [way] follows links first.
func resolve(dir, name string) string {
	if rest, ok := strings.CutPrefix(name, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			return home + "/" + rest
		}
	}
	if filepath.IsAbs(name) {
		return name
	}
	return dir + "/" + name
}

// isRelative reports whether [resolve] needs a folder.
func isRelative(name string) bool { return !filepath.IsAbs(name) && !strings.HasPrefix(name, "~/") }

// parent returns a path without its last part, otherwise unchanged.
func parent(path string) string {
	path = strings.TrimRight(path, "/")
	return cmp.Or(strings.TrimRight(path[:strings.LastIndexByte(path, '/')+1], "/"), "/")
}

// in returns the places below dir, with names relative to it, through which one of the paths leads.
func in(dir string, paths ...string) (all []string) {
	real := realOf(dir)
	for _, path := range paths {
		if !filepath.IsAbs(path) {
			continue
		}
		for _, at := range way(path) {
			if at != real && below(at, real) {
				all = append(all, filepath.Join(dir, strings.TrimPrefix(at, real)))
			}
		}
	}
	return all
}

// fill creates the missing places below dir through which a path leads, an empty file at its end and folders otherwise: a command
// could create them. It creates nothing behind a link, which is refused.
func fill(root *os.Root, dir, path string, file bool) {
	places, end := in(dir, path), in(dir, realOf(path))
	for _, at := range places {
		if info, err := os.Lstat(at); err == nil && info.Mode()&os.ModeSymlink != 0 {
			return
		}
	}
	for _, at := range places {
		name := strings.TrimPrefix(at[len(dir):], "/")
		if !file || !slices.Contains(end, at) {
			_ = root.MkdirAll(name, 0o755)
			continue
		}
		_ = root.MkdirAll(filepath.Dir(name), 0o755)
		if f, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644); err == nil {
			f.Close() // nothing was written
		}
	}
}
