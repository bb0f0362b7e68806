package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// divide returns what commands may write at level Confined. Landlock only allows, and what it allows for a
// folder holds for all below it. So where a path that must not be written lies in a folder of the box,
// that folder is divided: each other entry of it may be written, and the folder itself may not. In a divided
// folder nothing can be made, renamed or removed, hence no command can put another file at such a path.
//
// A symbolic link is no entry that may be written: what it leads to is judged where that lies.
func (b Box) divide() (write, divided []string, err error) {
	var keep []string
	for _, path := range b.ReadOnly {
		if _, err := os.Lstat(path); err == nil {
			keep = append(keep, path)
		}
	}
	for todo := b.writable(); len(todo) > 0; {
		path := todo[0]
		todo = todo[1:]
		if slices.Contains(keep, path) {
			continue
		}
		if !slices.ContainsFunc(keep, func(k string) bool { return below(k, path) }) {
			write = append(write, path)
			continue
		}
		entries, err := os.ReadDir(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, nil, err
		}
		divided = append(divided, path)
		for _, e := range entries {
			if e.Type()&fs.ModeSymlink == 0 {
				todo = append(todo, filepath.Join(path, e.Name()))
			}
		}
	}
	return write, divided, nil
}
