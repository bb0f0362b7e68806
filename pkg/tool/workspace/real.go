package workspace

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"agentteam/pkg/team"
	"agentteam/pkg/tool/safefs"
)

// at returns the name of an open file or folder of the workspace without symbolic links. A check before opening proves
// nothing: a command may have put a link there meanwhile. Error: PermissionDenied for the files of the cluster, and
// outside the workspace.
func (w *Workspace) at(f *os.File) (string, error) {
	real, err := realPath(f)
	if err != nil {
		return "", err
	}
	name, inside := within(w.real, real)
	if !inside { // the workspace itself may have another name now
		root, err := w.root.Open(".")
		if err != nil {
			return "", err
		}
		defer root.Close() // it was only looked at
		dir, err := realPath(root)
		if err != nil {
			return "", err
		}
		name, inside = within(dir, real)
	}
	switch {
	case !inside:
		return "", team.Errorf(team.PermissionDenied, "%s is outside the workspace %s", real, w.dir)
	case slices.Contains(strings.Split(name, "/"), team.ClusterDir):
		return "", ofCluster(name)
	}
	return name, nil
}

// within returns name relative to dir, if it is dir or in it.
func within(dir, name string) (string, bool) {
	if name == dir {
		return ".", true
	}
	return strings.CutPrefix(name, strings.TrimSuffix(dir, "/")+"/")
}

// realPath returns the present path of an open file, as the kernel reports it.
func realPath(f *os.File) (string, error) {
	c, err := f.SyscallConn()
	if err != nil {
		return "", err
	}
	var path string
	if e := c.Control(func(fd uintptr) { path, err = os.Readlink(descriptor(fd)) }); e != nil {
		return "", e
	}
	return path, err
}

func descriptor(fd uintptr) string { return fmt.Sprintf("/proc/self/fd/%d", fd) }

// folder opens a folder of the workspace for listing, and returns its real name. The caller closes it. Errors have
// codes.
func (w *Workspace) folder(name string) (f *os.File, real string, err error) {
	if f, err = safefs.Dir(w.root, name); err != nil {
		return nil, "", w.coded(name, err)
	}
	if real, err = w.at(f); err != nil {
		f.Close() // nothing was written
		return nil, "", w.coded(name, err)
	}
	return f, real, nil
}

// parent opens the folder of a file that is to be written, so that links created later do not count, and returns the
// real name of the file. The caller closes it.
func (w *Workspace) parent(target string) (in *os.Root, real string, err error) {
	dir, base := path.Split(target)
	f, real, err := w.folder(cmp.Or(strings.TrimSuffix(dir, "/"), "."))
	if err != nil {
		return nil, "", err
	}
	defer f.Close() // nothing was written
	if in, err = os.OpenRoot(descriptor(f.Fd())); err != nil {
		return nil, "", w.coded(target, err)
	}
	return in, path.Join(real, base), nil
}

// names returns the number of hard links of a file.
func names(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Nlink)
	}
	return 1
}

// mayRead refuses a hard link of a file that not everybody may read: its other name may be that of a key outside the
// workspace. Git's objects and package stores are readable by everybody.
func mayRead(name string, info fs.FileInfo) error {
	if names(info) < 2 || info.Mode().Perm()&0o004 != 0 {
		return nil
	}
	return team.Errorf(team.PermissionDenied, "%s is a hard link, and its mode %v keeps others from reading it; its other name may lie outside the workspace", name, info.Mode().Perm()).
		WithHint("if it is meant to be read here, a person gives the workspace a copy of it")
}

// mayReplace refuses a hard link: the file would change under one of its names only.
func mayReplace(name string, info fs.FileInfo) error {
	if n := names(info); n > 1 {
		return team.Errorf(team.PermissionDenied, "%s is a hard link: the file has %d names, and it would change under this one only", name, n).
			WithHint("copy it first, if it is to differ: cp -p %s %s.new && mv %s.new %s", name, name, name, name)
	}
	return nil
}
