package toolchain

import (
	"errors"
	"io/fs"
	"path"
	"strings"

	"agentteam/pkg/tool/safefs"
)

// follow returns where the links of an absolute path lead, and all paths on the way, name first and real last: programs may use any
// of them. Error: it is missing, or unreadable.
func (h Host) follow(name string) (real string, names []string, err error) {
	_, names = safefs.Way(func(at string) (string, error) { return fs.ReadLink(h.FS, inFS(at)) }, path.Clean(name))
	real = names[len(names)-1]
	info, err := fs.Lstat(h.FS, inFS(real))
	if err == nil && info.Mode()&fs.ModeSymlink != 0 {
		err = errors.New(name + ": too many links")
	}
	return real, names, err
}

// inFS returns an absolute path in the form of package fs.
func inFS(name string) string {
	if name = strings.TrimPrefix(path.Clean(name), "/"); name != "" {
		return name
	}
	return "."
}

// isDir reports whether a folder exists.
func (h Host) isDir(name string) bool {
	real, _, err := h.follow(name)
	if err != nil {
		return false
	}
	info, err := fs.Lstat(h.FS, inFS(real))
	return err == nil && info.IsDir()
}

// has reports whether dir contains one of names.
func (h Host) has(dir string, names ...string) bool {
	for _, name := range names {
		if _, err := fs.Lstat(h.FS, inFS(path.Join(dir, name))); err == nil {
			return true
		}
	}
	return false
}

// mostSettings bounds the bytes of a settings file that are read.
const mostSettings = 1 << 20

// read returns the text of a regular file, "" if there is none or it is too large for settings.
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
