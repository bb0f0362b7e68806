package safefs

import (
	"path/filepath"
	"strings"
)

// mostLinks bounds the symbolic links on the way to a path, as the kernel does.
const mostLinks = 40

// Way follows an absolute path as the kernel walks it; readlink is [os.Readlink], or that of another tree. steps is what leads there, each
// without links on its way: the symbolic links, the folders that are left again by "..", and at last where the path leads. Who could
// replace one of these would have the path lead elsewhere. names are the paths that lead there as well: the path itself, and, of each
// link, the path behind it. What is not there is taken for a folder.
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
