package toolchain

import (
	"errors"
	"io/fs"
	"os"

	"agentteam/pkg/tool/safefs"
)

// furnishCache makes the folders of the repository's cache.
func (g Grant) furnishCache() error {
	if g.cache == "" {
		return nil
	}
	if err := os.MkdirAll(g.cache, 0o700); err != nil {
		return err
	}
	cache, err := os.OpenRoot(g.cache)
	if err != nil {
		return err
	}
	defer cache.Close()
	var errs []error
	for _, name := range g.folders {
		errs = append(errs, cache.MkdirAll(name, 0o700))
	}
	return errors.Join(errs...)
}

// Trim empties a repository's cache that has more than most bytes. No command uses it. Error: it cannot be read.
func Trim(cache string, most int64) error {
	root, err := os.OpenRoot(cache)
	if err != nil {
		return err
	}
	defer root.Close()
	var total int64
	_ = fs.WalkDir(root.FS(), ".", func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				total += info.Size()
			}
		}
		return nil // what cannot be read is no file of the cache
	})
	if total <= most {
		return nil
	}
	all, err := fs.ReadDir(root.FS(), ".")
	for _, d := range all {
		err = errors.Join(err, safefs.RemoveAll(root, d.Name()))
	}
	return err
}
