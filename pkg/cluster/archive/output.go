package archive

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"agentteam/pkg/team"
)

// output is a file under a temporary name, until it is complete.
type output struct {
	f    *os.File
	name string // its final name; "" once it has it
}

// create begins a file. Errors: Conflict if it exists.
func create(name string) (*output, error) {
	if _, err := os.Lstat(name); err == nil {
		return nil, thereAlready(name)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, coded(name, err)
	}
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".part-") // for the owner alone
	if err != nil {
		return nil, coded(name, err)
	}
	return &output{f, name}, nil
}

func thereAlready(name string) *team.Error {
	return team.Errorf(team.Conflict, "there is a file %s already", name).WithHint("name another, or remove it")
}

// keep gives the file its name, and returns its size. Errors: Conflict if a file of that name was
// made meanwhile.
func (o *output) keep() (size int64, err error) {
	if err := o.f.Sync(); err != nil {
		return 0, err
	}
	info, err := o.f.Stat()
	if err != nil {
		return 0, err
	}
	err = unix.Renameat2(unix.AT_FDCWD, o.f.Name(), unix.AT_FDCWD, o.name, unix.RENAME_NOREPLACE)
	switch {
	case errors.Is(err, unix.EEXIST):
		return 0, thereAlready(o.name)
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOSYS): // a file system that cannot
		err = os.Rename(o.f.Name(), o.name)
	}
	if err != nil {
		return 0, &fs.PathError{Op: "rename", Path: o.name, Err: err}
	}
	o.name = ""
	return info.Size(), nil
}

// drop closes the file, and removes it unless it was kept.
func (o *output) drop() error {
	err := o.f.Close()
	if o.name != "" {
		err = errors.Join(err, os.Remove(o.f.Name()))
	}
	return err
}
