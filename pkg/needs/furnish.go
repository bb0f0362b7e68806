package needs

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
)

// Furnish puts into the member's home what programs look for there: links to what is granted, and
// who git commits as. It makes the home if it is absent, takes out the links of former grants,
// and leaves all else as the member left it. It may be called again.
//
// Error: what could not be made; the rest is there. The member writes this home: no link of its
// leads out of it.
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
	var errs []error
	for _, name := range everyLink() {
		if err := furnishLink(home, name, g.links[name]); err != nil {
			errs = append(errs, fmt.Errorf("furnish %s with %s: %w", g.home, name, err))
		}
	}
	if err := furnishFile(home, gitFile, g.git.text()); err != nil {
		errs = append(errs, fmt.Errorf("furnish %s with %s: %w", g.home, gitFile, err))
	}
	return errors.Join(errs...)
}

// everyLink returns all links that a grant may have.
func everyLink() []string {
	names := []string{".cargo/config.toml", ".cargo/config", ".cargo/registry", ".cargo/git", ".npm/_cacache", ".cache/pip/http", ".cache/pip/http-v2"}
	for _, v := range versionManagers {
		names = append(names, v.chosen...)
	}
	for _, name := range slices.Sorted(maps.Keys(credentials)) {
		names = append(names, credentials[name].files...)
	}
	return names
}

// furnishLink makes name a link to target, or no link if target is "". What is there and is no
// link is the member's.
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

// furnishFile replaces a file. What is there may be a pipe without a reader, or a link.
func furnishFile(home *os.Root, name, text string) error {
	if err := home.MkdirAll(path.Dir(name), 0o700); err != nil {
		return err
	}
	if err := home.RemoveAll(name); err != nil {
		return err
	}
	file, err := home.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	return errors.Join(err, file.Close())
}
