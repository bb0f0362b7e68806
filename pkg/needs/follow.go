package needs

import (
	"errors"
	"io/fs"
	"path"
	"strings"
)

// mostLinks is how many links one path may have, as for Linux.
const mostLinks = 40

// follow resolves the links of an absolute path. It returns where they lead, and all paths on the
// way, name itself first and real last: a program may be asked for by each of them. Error: it is
// not there, or cannot be read.
func (h Host) follow(name string) (real string, names []string, err error) {
	name = path.Clean(name)
	names = []string{name}
	real, rest := "/", strings.TrimPrefix(name, "/")
	for links := 0; rest != ""; {
		var part string
		part, rest, _ = strings.Cut(strings.TrimLeft(rest, "/"), "/")
		at := path.Join(real, part) // ".." of a link's target is of its folder's real path
		info, err := fs.Lstat(h.FS, inFS(at))
		if err != nil {
			return "", nil, err
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			real = at
			continue
		}
		if links++; links > mostLinks {
			return "", nil, errors.New(name + ": too many links")
		}
		target, err := fs.ReadLink(h.FS, inFS(at))
		if err != nil {
			return "", nil, err
		}
		if path.IsAbs(target) {
			real = "/"
		}
		// Not cleaned: its ".." may follow a link.
		rest = strings.TrimPrefix(strings.TrimSuffix(target+"/"+rest, "/"), "/")
		if !strings.Contains("/"+rest+"/", "/../") {
			names = append(names, path.Join(real, rest))
		}
	}
	if real != names[len(names)-1] {
		names = append(names, real)
	}
	return real, names, nil
}

// inFS returns an absolute path as package fs wants it.
func inFS(name string) string {
	if name = strings.TrimPrefix(path.Clean(name), "/"); name != "" {
		return name
	}
	return "."
}

// isDir reports whether a folder is there.
func (h Host) isDir(name string) bool {
	real, _, err := h.follow(name)
	if err != nil {
		return false
	}
	info, err := fs.Lstat(h.FS, inFS(real))
	return err == nil && info.IsDir()
}

// has reports whether one of names is in dir.
func (h Host) has(dir string, names ...string) bool {
	for _, name := range names {
		if _, err := fs.Lstat(h.FS, inFS(path.Join(dir, name))); err == nil {
			return true
		}
	}
	return false
}

// mostSettings is the most bytes that are read of a file of settings.
const mostSettings = 1 << 20

// read returns the text of a regular file, "" if there is none or it is far too large for settings.
func (h Host) read(name string) string {
	real, _, err := h.follow(name)
	if err != nil {
		return ""
	}
	info, err := fs.Lstat(h.FS, inFS(real))
	if err != nil || !info.Mode().IsRegular() || info.Size() > mostSettings {
		return ""
	}
	text, err := fs.ReadFile(h.FS, inFS(real))
	if err != nil {
		return ""
	}
	return string(text)
}
