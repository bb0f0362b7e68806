// Package safefs opens files in folders that agents write to, and never blocks there. A plain open of a named pipe
// blocks a thread of the process until a process writes to it; an open of a device may act on it. Package safefs opens
// only regular files and folders.
//
// Every path that a request can name is opened here. The caller decides who may see a file.
package safefs

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"agentteam/pkg/team"
)

// Root is [os.OpenRoot]. It returns an error of os also for a path that is not a folder.
func Root(dir string) (*os.Root, error) {
	return os.OpenRoot(dir + string(filepath.Separator) + ".") // which only a folder has
}

// File opens a regular file for reading; the caller closes it. Errors: those of os; InvalidArgument for anything else.
func File(root *os.Root, name string) (*os.File, fs.FileInfo, error) {
	f, info, err := open(root, name)
	if err != nil {
		return nil, nil, err
	}
	if err := Regular(name, info.Mode()); err != nil {
		f.Close() // nothing was written
		return nil, nil, err
	}
	return f, info, nil
}

// Entry opens a regular file directly in a folder, not through a symbolic link, for reading; the caller closes it.
// Errors: those of File; of os if it is replaced meanwhile.
func Entry(in *os.Root, name string) (*os.File, fs.FileInfo, error) {
	entry, err := in.Lstat(name)
	if err == nil {
		err = Regular(name, entry.Mode())
	}
	if err != nil {
		return nil, nil, err
	}
	f, err := in.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !os.SameFile(entry, info) { // by a link, maybe
		err = &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	if err != nil {
		f.Close() // nothing was written
		return nil, nil, err
	}
	return f, info, nil
}

// Dir opens a folder for listing; the caller closes it. Errors: those of os, also for a path that is not a folder.
func Dir(root *os.Root, name string) (*os.File, error) {
	return root.OpenFile(name, os.O_RDONLY|syscall.O_DIRECTORY, 0) // which is looked at before it is opened
}

// FS is [os.DirFS] for regular files and folders only. Errors: those of os; InvalidArgument for anything else.
type FS string

// Open implements [fs.FS].
func (dir FS) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	f, _, err := open(system(dir), name)
	if err != nil { // a nil *os.File would be no nil fs.File
		return nil, err
	}
	return f, nil
}

// system is a folder; links may lead out of it.
type system string

func (s system) Stat(name string) (fs.FileInfo, error) {
	return os.Stat(filepath.Join(string(s), name))
}

func (s system) OpenFile(name string, flag int, perm fs.FileMode) (*os.File, error) {
	return os.OpenFile(filepath.Join(string(s), name), flag, perm)
}

// opener is the part of a root that open needs; *os.Root implements it.
type opener interface {
	Stat(name string) (fs.FileInfo, error)
	OpenFile(name string, flag int, perm fs.FileMode) (*os.File, error)
}

// open opens a regular file or a folder.
func open(in opener, name string) (*os.File, fs.FileInfo, error) {
	info, err := in.Stat(name)
	if err == nil && !info.IsDir() {
		err = Regular(name, info.Mode()) // before it is opened: a device may act on that
	}
	if err != nil {
		return nil, nil, err
	}
	// Between the two an agent may have put a named pipe there.
	f, err := in.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	if info, err = f.Stat(); err == nil && !info.IsDir() {
		err = Regular(name, info.Mode())
	}
	if err != nil {
		f.Close() // nothing was written
		return nil, nil, err
	}
	return f, info, nil
}

// Regular returns InvalidArgument for anything but a regular file.
func Regular(name string, mode fs.FileMode) error {
	what := "is not a regular file"
	switch {
	case mode.IsRegular():
		return nil
	case mode.IsDir():
		what = "is a folder"
	case mode&fs.ModeNamedPipe != 0:
		what = "is a named pipe"
	case mode&fs.ModeDevice != 0:
		what = "is a device"
	case mode&fs.ModeSocket != 0:
		what = "is a socket"
	}
	return team.Errorf(team.InvalidArgument, "%s %s", name, what)
}

// RemoveAll removes the entry of root with a name, also with read-only folders, such as those of Go's module cache.
// Commands made it, so no link in it is followed. Errors: those of os.
func RemoveAll(root *os.Root, name string) error {
	if root.RemoveAll(name) == nil {
		return nil
	}
	_ = fs.WalkDir(root.FS(), name, func(name string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			_ = root.Chmod(name, 0o700) // the next line reports it
		}
		return nil
	})
	return root.RemoveAll(name)
}
