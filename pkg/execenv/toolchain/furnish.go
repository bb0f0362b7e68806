package toolchain

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
)

// Furnish creates the member's home and the folders of the repository's cache, links the granted paths into the home, removes the
// links of former grants, and leaves all else. It may be called again, also by several processes concurrently. Error: the parts that
// could not be created; the others exist. No link of a member leads it out of home and cache.
func (g Grant) Furnish() error {
	if !path.IsAbs(g.home) {
		return fmt.Errorf("furnish the home %q: not an absolute path", g.home)
	}
	if err := os.MkdirAll(g.home, 0o700); err != nil {
		return err
	}
	home, err := os.OpenRoot(g.home)
	if err != nil {
		return err
	}
	defer home.Close()
	errs := []error{g.furnishCache()}
	if err := furnishFile(home, gitFile, g.git.text()); err != nil {
		errs = append(errs, fmt.Errorf("furnish %s with %s: %w", g.home, gitFile, err))
	}
	for _, name := range everyLink() {
		if err := furnishLink(home, name, g.links[name]); err != nil {
			errs = append(errs, fmt.Errorf("furnish %s with %s: %w", g.home, name, err))
		}
	}
	return errors.Join(errs...)
}

// everyLink returns all links that a grant may have.
func everyLink() []string {
	var names []string
	for _, t := range toolchains {
		names = append(names, t.links()...)
	}
	for _, name := range slices.Sorted(maps.Keys(known)) {
		names = append(names, known[name].files...)
	}
	return names
}

// furnishLink makes name a link to target, or removes the link if target is "". A file that is not a link is the member's.
func furnishLink(home *os.Root, name, target string) error {
	info, err := home.Lstat(name)
	switch {
	case err == nil && info.Mode()&fs.ModeSymlink == 0:
		return nil
	case err == nil:
		if is, err := home.Readlink(name); err == nil && is == target {
			return nil
		}
		if err := home.Remove(name); err != nil {
			return err
		}
	}
	if target == "" {
		return nil
	}
	if err := home.MkdirAll(path.Dir(name), 0o700); err != nil {
		return err
	}
	return home.Symlink(target, name)
}

// furnishFile replaces a file in one step. The old one may be a pipe without a reader, a link, or a folder.
func furnishFile(home *os.Root, name, text string) error {
	if err := home.MkdirAll(path.Dir(name), 0o700); err != nil {
		return err
	}
	next := name + "." + rand.Text()
	err := home.WriteFile(next, []byte(text), 0o600)
	if err == nil && home.Rename(next, name) != nil {
		err = errors.Join(home.RemoveAll(name), home.Rename(next, name))
	}
	if err != nil {
		_ = home.Remove(next) // it is not there, or not missed
	}
	return err
}
