package safefs

import (
	"path/filepath"
	"strings"
)

// mostLinks bounds the symbolic links on the way to a path, as the kernel does.
const mostLinks = 40

// Way resolves an absolute path as the kernel does; readlink is [os.Readlink], or that of another tree. steps are all
// paths on the way, each without links: the symbolic links, the folders that ".." leaves again, and at last the target.
// A process that can replace one of them can redirect the path. names are the other paths to the target: path itself,
// and for each link the path behind it. A missing entry counts as a folder.
func Way(readlink func(string) (string, error), path string) (steps, names []string) {
	at, links := "/", 0
	names = []string{filepath.Clean(path)}
	for rest := path; rest != ""; {
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		switch name {
		case "", ".":
			continue
		case "..":
			steps, at = append(steps, at), filepath.Dir(at)
			continue
		}
		at = filepath.Join(at, name)
		target, err := readlink(at)
		if err != nil || links == mostLinks {
			continue
		}
		links++
		steps = append(steps, at)
		if at = filepath.Dir(at); filepath.IsAbs(target) {
			at = "/"
		}
		rest = target + "/" + rest
		if !strings.Contains("/"+rest+"/", "/../") { // what that leads to is known only behind the links before it
			names = append(names, filepath.Join(at, rest))
		}
	}
	if at != names[len(names)-1] {
		names = append(names, at)
	}
	return append(steps, at), names
}
