package toolchain

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"agentteam/pkg/tool/safefs"
)

// seed is a folder of the user's, absolute, whose copy is the beginning of one in the repository's cache.
type seed struct {
	from, to string
	most     int64 // bytes; the newest files are taken
}

const (
	mostCopied = 256 << 20        // bytes of one store
	settled    = time.Minute      // a younger file of the user's may still be written
	lately     = 2 * time.Hour    // what commands have used since may be in use
	block      = 4 << 10          // bytes that an empty file takes, too
	unfinished = ".agentteam-new" // begins the name of a copy that is being made
)

// furnishCache creates the missing parts of the repository's cache. A copy is complete or absent.
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
	for _, s := range g.copies {
		if _, err := cache.Lstat(s.to); err == nil {
			continue
		}
		if err := s.copy(cache); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("copy %s: %w", s.from, err))
		}
		errs = append(errs, cache.MkdirAll(s.to, 0o700)) // the user's is not looked at again
	}
	for _, name := range g.folders {
		errs = append(errs, cache.MkdirAll(name, 0o700))
	}
	return errors.Join(errs...)
}

// found is a file of a cache.
type found struct {
	name string
	size int64
	used time.Time
}

// filesIn returns the regular files below a folder, the most recently used first.
func filesIn(root *os.Root, dir string) (all []found) {
	_ = fs.WalkDir(root.FS(), dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil // what cannot be read is no file of the cache
		}
		if info, err := d.Info(); err == nil {
			all = append(all, found{name, info.Size() + block, info.ModTime()})
		}
		return nil
	})
	slices.SortFunc(all, func(a, b found) int { return b.used.Compare(a.used) })
	return all
}

// copy makes the copy, unless another process is faster. Error: fs.ErrNotExist if the user has nothing there.
func (s seed) copy(cache *os.Root) error {
	from, err := os.OpenRoot(s.from)
	if err != nil {
		return err
	}
	defer from.Close()
	next := unfinished + rand.Text()
	defer cache.RemoveAll(next) // it is not there, or not missed
	if err := cache.MkdirAll(next, 0o700); err != nil {
		return err
	}
	left := s.most
	for _, f := range filesIn(from, ".") {
		if time.Since(f.used) < settled {
			continue
		}
		if left -= f.size; left < 0 {
			break
		}
		if err := copyFile(cache, path.Join(next, f.name), from, f); err != nil {
			return err
		}
	}
	if err := cache.MkdirAll(path.Dir(s.to), 0o700); err != nil {
		return err
	}
	if err := cache.Rename(next, s.to); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// copyFile copies a file that this user may read, if it still exists.
func copyFile(to *os.Root, name string, from *os.Root, f found) error {
	in, _, err := safefs.File(from, f.name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil
	}
	if err != nil {
		return err
	}
	defer in.Close()
	if err := to.MkdirAll(path.Dir(name), 0o700); err != nil {
		return err
	}
	out, err := to.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close(), to.Chtimes(name, f.used, f.used))
}

// Trim halves a repository's cache of more than most bytes: the least recently used files go first. alone: no command uses the cache.
// Otherwise it keeps recently used files, and folders that are useful only as a whole, such as that of modules. Error: the cache
// cannot be read.
func Trim(cache string, most int64, alone bool) error {
	root, err := os.OpenRoot(cache)
	if err != nil {
		return err
	}
	defer root.Close()
	var total int64
	var single, whole []found // files that stand alone, and folders
	for _, f := range filesIn(root, ".") {
		total += f.size
		top, _, _ := strings.Cut(f.name, "/")
		i := slices.IndexFunc(whole, func(w found) bool { return w.name == top })
		switch {
		case !slices.Contains(wholes, top):
			single = append(single, f)
		case i < 0:
			whole = append(whole, found{top, f.size, f.used})
		default:
			whole[i].size += f.size
		}
	}
	if total <= most {
		return nil
	}
	slices.Reverse(single)
	if !alone {
		whole, single = nil, slices.DeleteFunc(single, func(f found) bool { return time.Since(f.used) < lately })
	}
	for _, f := range append(single, whole...) {
		if total > most/2 && safefs.RemoveAll(root, f.name) == nil {
			total -= f.size
		}
	}
	return nil
}

// wholes are the folders of a repository's cache whose files need each other.
var wholes = func() (names []string) {
	for _, t := range toolchains {
		if t.whole {
			names = append(names, t.name(""))
		}
	}
	return names
}()
