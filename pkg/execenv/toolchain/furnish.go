package toolchain

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing/format/config"

	"agentteam/pkg/tool/safefs"
)

// Populate creates the member's home and the folders of the repository's cache, links the granted paths into the home, removes the
// links of former grants, and leaves all else. It may be called again, also by several processes concurrently. Error: the parts that
// could not be created; the others exist. No link of a member leads it out of home and cache.
func (g Grant) Populate() error {
	if !path.IsAbs(g.home) {
		return fmt.Errorf("populate the home %q: not an absolute path", g.home)
	}
	if err := os.MkdirAll(g.home, 0o700); err != nil {
		return err
	}
	home, err := os.OpenRoot(g.home)
	if err != nil {
		return err
	}
	defer home.Close()
	errs := []error{g.populateCache()}
	if err := populateFile(home, gitFile, g.git.text()); err != nil {
		errs = append(errs, fmt.Errorf("populate %s with %s: %w", g.home, gitFile, err))
	}
	for _, name := range everyLink() {
		if err := populateLink(home, name, g.links[name]); err != nil {
			errs = append(errs, fmt.Errorf("populate %s with %s: %w", g.home, name, err))
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

// populateLink makes name a link to target, or removes the link if target is "". A file that is not a link is the member's.
func populateLink(home *os.Root, name, target string) error {
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

// populateFile replaces a file in one step. The old one may be a pipe without a reader, a link, or a folder.
func populateFile(home *os.Root, name, text string) error {
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

// gitSettings are git's settings for a home that is not the user's.
type gitSettings struct {
	name, email string
	include     []string // files with more
}

// gitFile is git's system settings, below a member's home: those of a repository and of the member override them.
const gitFile = ".cache/agentteam/gitconfig"

// gitUser finds the user in whose name members commit.
func (f *finder) gitUser() {
	for _, file := range f.gitSettings() {
		var settings config.Config
		if err := config.NewDecoder(strings.NewReader(f.read(file))).Decode(&settings); err != nil {
			continue // git itself reports it, to its user
		}
		user := settings.Section("user")
		f.grant.git.name, f.grant.git.email = cmp.Or(f.grant.git.name, user.Option("name")), cmp.Or(f.grant.git.email, user.Option("email"))
	}
	for name, to := range map[string]*string{"GIT_AUTHOR_NAME": &f.grant.git.name, "GIT_AUTHOR_EMAIL": &f.grant.git.email} {
		if value, ok := f.lookup(name); ok {
			*to = value
		}
	}
}

// GitSettings returns the files of the user's git settings for all repositories; the first that has a setting counts.
func (h Host) GitSettings() []string { return newFinder(h, Member{}).gitSettings() }

func (f *finder) gitSettings() []string {
	if file, ok := f.lookup("GIT_CONFIG_GLOBAL"); ok {
		return []string{file}
	}
	files := []string{f.folder("", ".gitconfig"), f.folder("", ".config/git/config")}
	return slices.DeleteFunc(files, func(file string) bool { return file == "" })
}

// text returns the file. Programs started by the settings of another user's repository are confined as well.
func (g gitSettings) text() string {
	quote := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", " ").Replace
	text := "[include]\n\tpath = /etc/gitconfig\n[safe]\n\tdirectory = *\n[user]\n"
	text += fmt.Sprintf("\tname = \"%s\"\n\temail = \"%s\"\n", quote(cmp.Or(g.name, "agentteam")), quote(cmp.Or(g.email, "agentteam@localhost")))
	for _, file := range g.include {
		text += fmt.Sprintf("[include]\n\tpath = \"%s\"\n", quote(file))
	}
	return text
}

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

// populateCache creates the missing parts of the repository's cache. A copy is complete or absent.
func (g Grant) populateCache() error {
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
