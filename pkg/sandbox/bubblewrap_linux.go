package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agentteam/pkg/team"
)

// Bytes of the file systems in memory, which no limit of a command counts.
const (
	temporary = "1073741824"
	shared    = "268435456" // /dev/shm
)

// mount is how a path gets into the file system of a command.
type mount struct {
	path    string
	options []string
}

// options returns the options of bubblewrap for a command that starts in dir, and the files that they have it copy from
// descriptors beginning with fd. They are handed over by a file: the list of processes does not show the environment.
//
// User namespaces are refused twice, here and by the filter of system calls.
func (r runner) options(dir string, env []string, fd int) (options, copied []string, err error) {
	mounts, err := r.box.mounts()
	if err != nil {
		return nil, nil, err
	}
	options = []string{
		"--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent", "--new-session",
		"--cap-drop", "ALL", "--seccomp", "3",
	}
	system, copied := tree(fd)
	options = append(options, system...)
	options = append(options, "--size", shared, "--tmpfs", "/dev/shm")
	for _, m := range mounts {
		options = append(options, m.options...)
	}
	// What was made for mount points is in memory.
	options = append(options, "--remount-ro", "/dev", "--remount-ro", "/")
	for _, path := range r.box.Hidden {
		if slices.Contains(options, path) && !isFile(path) {
			options = append(options, "--remount-ro", path)
		}
	}
	options = append(options, "--chdir", dir, "--clearenv")
	for _, entry := range env {
		name, value, _ := strings.Cut(entry, "=")
		options = append(options, "--setenv", name, value)
	}
	if i := slices.IndexFunc(options, func(o string) bool { return strings.ContainsRune(o, 0) }); i >= 0 {
		return nil, nil, team.Errorf(team.InvalidArgument, "a path or a variable of a command holds a zero byte: %q", options[i])
	}
	return options, copied, nil
}

// mounts returns what is the member's, parents before what is below them.
func (b Box) mounts() ([]mount, error) {
	var all []mount
	add := func(path string, options ...string) { all = append(all, mount{path, options}) }
	add("/tmp", b.tmp()...)
	for _, path := range b.writable() {
		if path != b.temp() || !b.ownTmp() {
			add(path, "--bind", path, path)
		}
	}
	for _, path := range b.ReadOnly {
		add(path, "--ro-bind-try", path, path)
	}
	for _, path := range b.holders() { // what is mounted cannot be renamed, but what holds it could be
		add(path, "--bind-try", path, path)
	}
	for place, from := range b.Shown {
		add(place, "--ro-bind-try", from, place)
	}
	for _, path := range b.Hidden {
		info, err := os.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) {
			// It must not be made by a command. Who cannot make it here cannot inside.
			if os.Mkdir(path, 0o700) != nil {
				continue
			}
			info, err = os.Lstat(path)
		}
		switch {
		case err != nil:
			return nil, fmt.Errorf("hide %s: %w", path, err)
		case info.IsDir():
			add(path, "--tmpfs", path)
		case info.Mode()&os.ModeSymlink == 0: // the end of a link is not there, untouched has seen that
			add(path, "--ro-bind", "/dev/null", path)
		}
	}
	slices.SortStableFunc(all, func(a, b mount) int { return cmp.Compare(a.path, b.path) })
	return all, nil
}

// holders returns the folders in which paths lie that must not be written, below those that commands may write.
func (b Box) holders() (all []string) {
	for _, dir := range b.writable() {
		for _, path := range b.ReadOnly {
			if _, err := os.Lstat(path); err != nil || !below(path, dir) {
				continue
			}
			for at := filepath.Dir(path); below(at, dir) && at != dir; at = filepath.Dir(at) {
				if !slices.Contains(all, at) && !slices.ContainsFunc(b.ReadOnly, func(r string) bool { return below(at, r) }) {
					all = append(all, at)
				}
			}
		}
	}
	return all
}

// ownTmp reports whether /tmp of the commands is the member's folder for temporary files.
// If a path of the box is below /tmp, that folder cannot be: commands may write it, so they
// could put a symbolic link where the next command's mount points are made.
func (b Box) ownTmp() bool {
	return !slices.ContainsFunc(slices.Concat(b.writable(), b.ReadOnly, b.Hidden, slices.Collect(maps.Keys(b.Shown))), func(path string) bool { return below(path, "/tmp") })
}

// tmp returns the options that make /tmp.
func (b Box) tmp() []string {
	if b.ownTmp() {
		return []string{"--bind", b.temp(), "/tmp"}
	}
	return []string{"--perms", "1777", "--size", temporary, "--tmpfs", "/tmp"}
}

func isFile(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && !info.IsDir()
}
