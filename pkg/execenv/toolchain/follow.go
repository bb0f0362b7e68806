package toolchain

import (
	"errors"
	"io/fs"
	"path"
	"strings"

	"agentteam/pkg/tool/safefs"
)

// follow returns where the links of an absolute path lead, and all paths on the way, name first and real last: a program may be asked
// for by each. Error: it is not there, or cannot be read.
func (h Host) follow(name string) (real string, names []string, err error) {
	_, names = safefs.Way(func(at string) (string, error) { return fs.ReadLink(h.FS, inFS(at)) }, path.Clean(name))
	real = names[len(names)-1]
	info, err := fs.Lstat(h.FS, inFS(real))
	if err == nil && info.Mode()&fs.ModeSymlink != 0 {
		err = errors.New(name + ": too many links")
	}
	return real, names, err
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
