package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agentteam/pkg/team"
)

// Sizes of the file systems in memory, in bytes; no limit of a command counts them.
const (
	temporary = "1073741824"
	shared    = "268435456" // /dev/shm
)

// bubblewrap returns bubblewrap's options for a command that starts in dir, and the files that they copy from descriptors beginning
// with fd. The options are passed in a file: the list of processes does not show the environment.
func (v view) bubblewrap(dir string, fd int) (options, copied []string, err error) {
	options = []string{
		"--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent", "--new-session",
		"--cap-drop", "ALL", "--seccomp", "3",
	}
	system, copied := tree(fd)
	options = append(options, system...)
	options = append(options, "--size", shared, "--tmpfs", "/dev/shm")
	if v.temp != "/tmp" {
		options = append(options, "--perms", "1777", "--size", temporary, "--tmpfs", "/tmp")
	}
	var hidden []string // folders
	for _, p := range v.mounts() {
		switch p.access {
		case writes:
			options = append(options, "--bind-try", p.from, p.path)
		case reads:
			options = append(options, "--ro-bind-try", p.from, p.path)
		case hides:
			info, err := os.Lstat(p.path)
			// A command must not create it. If this process cannot create it, no command can.
			if errors.Is(err, fs.ErrNotExist) && os.Mkdir(p.path, 0o700) == nil {
				info, err = os.Lstat(p.path)
			}
			switch {
			case errors.Is(err, fs.ErrNotExist):
			case err != nil:
				return nil, nil, fmt.Errorf("hide %s: %w", p.path, err)
			case info.IsDir():
				options, hidden = append(options, "--tmpfs", p.path), append(hidden, p.path)
			case info.Mode()&os.ModeSymlink == 0: // the end of a link is not there, untouched has seen that
				options = append(options, "--ro-bind", "/dev/null", p.path)
			}
		}
	}
	for _, path := range append([]string{"/dev", "/"}, hidden...) { // what was made for mount points is in memory
		options = append(options, "--remount-ro", path)
	}
	options = append(options, "--chdir", dir, "--clearenv")
	for _, entry := range v.env {
		name, value, _ := strings.Cut(entry, "=")
		options = append(options, "--setenv", name, value)
	}
	if i := slices.IndexFunc(options, func(o string) bool { return strings.ContainsRune(o, 0) }); i >= 0 {
		return nil, nil, team.Errorf(team.InvalidArgument, "a path or a variable of a command holds a zero byte: %q", options[i])
	}
	return options, copied, nil
}

// mounts returns the places, and the folders between a writable place and a read-only one in it: a mount point cannot be renamed, the
// folder around it could be.
func (v view) mounts() []place {
	all := slices.Clone(v.places)
	var held []string
	for _, p := range v.places {
		if p.access == reads && p.from == p.path {
			held = append(held, p.path)
		}
	}
	for _, dir := range v.having(writes) {
		for _, path := range held {
			if _, err := os.Lstat(path); err != nil || !below(path, dir) {
				continue
			}
			for at := filepath.Dir(path); below(at, dir) && at != dir; at = filepath.Dir(at) {
				if !slices.ContainsFunc(all, func(p place) bool { return p.path == at }) && !slices.ContainsFunc(held, func(r string) bool { return below(at, r) }) {
					all = append(all, place{at, writes, at})
				}
			}
		}
	}
	slices.SortStableFunc(all, func(a, b place) int { return cmp.Compare(a.path, b.path) })
	return all
}
