package workspace

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"agentteam/pkg/team"
	"agentteam/pkg/team/blob"
	"agentteam/pkg/tool/safefs"
)

// local returns the name below the root of a path as a model writes it: relative to the workspace or absolute. The root
// handles links that lead out.
func (w *Workspace) local(path string) (string, error) {
	switch {
	case path == "" || strings.ContainsRune(path, 0):
		return "", team.Errorf(team.InvalidArgument, "path: %q is not a path", path)
	case blob.IsRef(path):
		return "", team.Errorf(team.InvalidArgument, "path: %.100q is a stored text and no file", path).WithHint("only read_file reads one, and nothing changes it; copy what you need of it into a file")
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(w.dir, path)
	}
	for _, dir := range []string{w.dir, w.real} {
		if name, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(name) {
			if w.leadsToCluster(name) {
				return "", ofCluster(name)
			}
			return name, nil
		}
	}
	return "", team.Errorf(team.PermissionDenied, "%s is outside the workspace %s", path, w.dir)
}

func ofCluster(name string) error {
	return team.Errorf(team.PermissionDenied, "%s belongs to the cluster that runs this team", name).WithHint("leave it alone")
}

// leadsToCluster reports whether a name leads to the folder of a cluster, by links or without. A file tool that wrote
// there would destroy the team itself. An open file is checked again, see [Workspace.at].
func (w *Workspace) leadsToCluster(name string) bool {
	its := func(name string) bool { return slices.Contains(strings.Split(name, "/"), team.ClusterDir) }
	name, err := w.follow(filepath.ToSlash(name))
	if err != nil {
		return false // the root refuses it
	}
	// A path that does not exist yet lies in its last existing folder.
	for dir := name; dir != "" && !its(name); dir, _ = path.Split(strings.TrimSuffix(dir, "/")) {
		if real, err := filepath.EvalSymlinks(w.real + "/" + dir); err == nil {
			return its(strings.TrimPrefix(real, w.real))
		}
	}
	return its(name)
}

// Regular opens a regular file of the workspace for download. The caller closes it. A file with several hard links is
// refused: it may have a name outside. Errors: NotFound; PermissionDenied outside the workspace and for hard links;
// InvalidArgument unless it is regular.
func (w *Workspace) Regular(path string) (*os.File, fs.FileInfo, error) {
	name, err := w.local(path)
	if err != nil {
		return nil, nil, err
	}
	f, info, err := w.openRegular(name)
	if err != nil {
		return nil, nil, err
	}
	if s, ok := info.Sys().(*syscall.Stat_t); ok && s.Nlink > 1 {
		f.Close() // it was only read
		return nil, nil, team.Errorf(team.PermissionDenied, "%s has several hard links, of which one may be outside of the workspace", path).WithHint("copy it to another name")
	}
	return f, info, nil
}

// Entry is a file or a folder in a folder of the workspace.
type Entry struct {
	Path string      // from the workspace, with slashes
	Info fs.FileInfo // of what a link leads to; nil if that is outside or not there
}

// List returns at most limit entries of a folder, unordered, without the files of the cluster. Errors: those of
// Regular.
func (w *Workspace) List(path string, limit int) ([]Entry, error) {
	name, err := w.local(path)
	if err != nil {
		return nil, err
	}
	dir, _, err := w.folder(name)
	if err != nil {
		return nil, err
	}
	defer dir.Close() // it was only read
	found, err := dir.ReadDir(limit)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, w.coded(name, err)
	}
	list := make([]Entry, 0, len(found))
	for _, f := range found {
		name := filepath.Join(name, f.Name())
		if w.leadsToCluster(name) {
			continue
		}
		info, _ := w.root.Stat(name)
		list = append(list, Entry{filepath.ToSlash(name), info})
	}
	return list, nil
}

// openRegular opens a regular file for reading. The caller closes it.
func (w *Workspace) openRegular(name string) (*os.File, fs.FileInfo, error) {
	root, below, at := w.root, name, w.at
	if place, rest := w.shows(filepath.ToSlash(name)); place != "" {
		from := w.shown[place]
		if rest == "." {
			from, rest = filepath.Split(from)
		}
		in, err := safefs.Root(from)
		if err != nil {
			return nil, nil, w.coded(name, err)
		}
		defer in.Close() // nothing is written through it
		root, below, at = in, rest, func(*os.File) (string, error) { return name, nil }
	}
	f, info, err := safefs.File(root, below)
	if err != nil {
		return nil, nil, w.coded(name, err)
	}
	if _, err = at(f); err == nil {
		err = mayRead(name, info)
	}
	if err != nil {
		f.Close() // nothing was written
		return nil, nil, w.coded(name, err)
	}
	return f, info, nil
}

// shows returns the place of the user's shown files that contains name, and the name relative to it; "" if none does.
func (w *Workspace) shows(name string) (place, rest string) {
	for place := range w.shown {
		if rest, is := within(place, name); is {
			return place, rest
		}
	}
	return "", ""
}

// openEntry opens a regular file directly in a folder of the workspace, which was checked when it was opened, for
// reading. The caller closes it.
func openEntry(in *os.Root, name string) (*os.File, fs.FileInfo, error) {
	f, info, err := safefs.Entry(in, name)
	if err != nil {
		return nil, nil, err
	}
	if err := mayRead(name, info); err != nil {
		f.Close() // nothing was written
		return nil, nil, err
	}
	return f, info, nil
}

// coded adds a code to an error of the file system.
func (w *Workspace) coded(name string, err error) error {
	switch {
	case team.CodeOf(err) != "":
		return err
	case errors.Is(err, w.escapes):
		return team.Errorf(team.PermissionDenied, "%s leads out of the workspace by a symbolic link", name).
			WithHint("links inside the workspace must be relative")
	case errors.Is(err, fs.ErrNotExist):
		return team.Errorf(team.NotFound, "there is no %s", name)
	case errors.Is(err, fs.ErrPermission):
		return team.Errorf(team.PermissionDenied, "%s: %w", name, reason(err))
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ENAMETOOLONG), errors.Is(err, syscall.ELOOP):
		return team.Errorf(team.InvalidArgument, "%s: %w", name, reason(err))
	}
	return team.Errorf(team.Unavailable, "%s: %w", name, reason(err))
}

// reason returns err without the system call and the path: the caller names the path as the request did.
func reason(err error) error {
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &path):
		return path.Err
	case errors.As(err, &link):
		return link.Err
	}
	return err
}
