package gitrepo

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"agentteam/pkg/team"
)

const (
	mostLinked      = 512 << 20 // bytes that are copied into a tree
	mostLinkedFiles = 100_000
)

// CheckLinks refuses files or folders of the user that trees cannot get in addition to tracked ones. Errors: InvalidArgument;
// NotFound for an absent one; BudgetExceeded for one that is not mounted, and too large to copy.
func (c Checkout) CheckLinks(ctx context.Context, mounted bool, names ...string) error {
	var copies copying
	for _, name := range names {
		from, err := c.link(ctx, name)
		if err == nil && !mounted {
			err = copies.measure(from)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// link returns the full path of a file or folder of the user that trees get in addition to tracked ones; name is a path from
// the user's folder. Git must ignore it: else it would become part of commits.
func (c Checkout) link(ctx context.Context, name string) (string, error) {
	if c.Root == "" {
		return "", team.Errorf(team.InvalidArgument, "worktree_links: there is no checkout of the user here to take %s from", name)
	}
	if err := team.CheckLink(filepath.ToSlash(name)); err != nil {
		return "", err
	}
	rel := filepath.Join(filepath.FromSlash(c.Prefix), name)
	full, err := filepath.EvalSymlinks(filepath.Join(c.Root, rel))
	if err != nil {
		return "", team.Errorf(team.NotFound, "worktree_links: %w", err).WithHint("make it in your own folder first, or take it out")
	}
	top, err := filepath.EvalSymlinks(c.Root)
	if err != nil || !strings.HasPrefix(full, top+string(filepath.Separator)) {
		return "", team.Errorf(team.InvalidArgument, "worktree_links: %s is a link out of the repository", name).WithHint("put a copy into the folder")
	}
	if slices.ContainsFunc(strings.Split(full[len(top):], string(filepath.Separator)), dotGit) {
		return "", team.Errorf(team.InvalidArgument, "worktree_links: %s is a link into a .git", name).WithHint("put a copy into the folder")
	}
	_, err = inside(c.Root, append(c.ignoring(), "check-ignore", "--quiet", "--", rel)...).run(ctx)
	if exitCode(err) == 1 {
		return "", team.Errorf(team.InvalidArgument, "worktree_links: git does not ignore %s", name).
			WithHint("files that git has are in each tree; have .gitignore name others")
	}
	return full, err
}

// CopyUserFiles puts files and folders of the user into an export of the integration branch, as into trees ([Plan].Links). It returns
// the places that the sandbox must mount, each with its source. An existing file at a place stays, and nothing is put there.
//
// Errors: those of [Checkout.CheckLinks]; BudgetExceeded for a file or folder that is too large to copy.
func (c Checkout) CopyUserFiles(ctx context.Context, names []string, root string, mounted bool) (map[string]string, error) {
	_, mounts, err := c.copyUserFiles(ctx, names, root, mounted)
	return mountsIn(root, mounts), err
}

// copyUserFiles is [Checkout.Lend] with places from the root, and the list of all places that it has filled: with a copy, or an empty
// file or folder to mount on. It never makes a link: a write through a link would change the user's file.
func (c Checkout) copyUserFiles(ctx context.Context, names []string, dir string, mounted bool) (lent []string, mounts map[string]string, err error) {
	root, err := os.OpenRoot(dir) // a link of the repository must not lead us out
	if err != nil {
		return nil, nil, err
	}
	defer root.Close()
	mounts = map[string]string{}
	copies := copying{checkout: c.Root}
	for _, name := range names {
		from, err := c.link(ctx, name)
		if err != nil {
			return nil, nil, err
		}
		to := filepath.Join(filepath.FromSlash(c.Prefix), name)
		if occupied(root, to) {
			continue // by a commit: to show another in its place would be to change it
		}
		if err := root.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return nil, nil, err
		}
		info, err := os.Lstat(from)
		switch {
		case err != nil:
		case !mounted:
			err = copies.copy(from, root, to)
		case info.IsDir():
			mounts[to], err = from, root.Mkdir(to, 0o755)
		default:
			mounts[to], err = from, root.WriteFile(to, nil, 0o644)
		}
		if err != nil {
			return nil, nil, err
		}
		lent = append(lent, to)
	}
	return lent, mounts, nil
}

// occupied reports whether a tree has a file at a place, or anything but folders on the way there.
func occupied(root *os.Root, place string) bool {
	for at := place; at != "."; at = filepath.Dir(at) {
		if info, err := root.Lstat(at); err == nil {
			return at == place || !info.IsDir()
		}
	}
	return false
}

// mountsIn returns mounts with their places below a root.
func mountsIn(root string, mounts map[string]string) map[string]string {
	all := map[string]string{}
	for to, from := range mounts {
		all[filepath.Join(root, to)] = from
	}
	return all
}

// copying copies files of a checkout, within limits.
type copying struct {
	checkout string // its top
	bytes    int64  // so far
	files    int
}

// take counts one file or folder of the copy of from.
func (c *copying) take(from string, info fs.FileInfo) error {
	c.files++
	if c.bytes += info.Size(); c.bytes > mostLinked || c.files > mostLinkedFiles {
		return team.Errorf(team.BudgetExceeded, "worktree_links: %s is too large to copy into each tree: at most %d MiB in %d files", from, mostLinked>>20, mostLinkedFiles).
			WithHint("with the sandbox bubblewrap it can be mounted instead")
	}
	return nil
}

// measure counts a file or folder and its content, as copy does.
func (c *copying) measure(from string) error {
	return filepath.WalkDir(from, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		return c.take(from, info)
	})
}

// copy copies a file or folder; it skips special files.
func (c *copying) copy(from string, root *os.Root, to string) error {
	return filepath.WalkDir(from, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, name)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if err := c.take(from, info); err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		switch {
		case d.IsDir():
			return root.MkdirAll(target, 0o755)
		case info.Mode()&fs.ModeSymlink != 0:
			goal, err := os.Readlink(name)
			if err != nil {
				return err
			}
			return root.Symlink(c.goal(goal, from, to, target), target)
		case info.Mode().IsRegular():
			return copyInto(name, root, target, info)
		}
		return nil
	})
}

// goal returns the target for the copy of a symbolic link, at the place at in the tree. A link into the user's checkout gets
// the same place in the tree as its target: a write through it does not change the user's file. from is copied to the place to.
func (c *copying) goal(goal, from, to, at string) string {
	if !filepath.IsAbs(goal) {
		return goal // the tree has the same folders
	}
	leads := []string{goal}
	if real, err := filepath.EvalSymlinks(goal); err == nil {
		leads = append(leads, real)
	}
	for _, lead := range leads {
		for _, in := range []struct{ folder, place string }{{from, to}, {c.checkout, "."}, {resolved(c.checkout), "."}} {
			inside, err := filepath.Rel(in.folder, lead)
			if err != nil || !filepath.IsLocal(inside) {
				continue
			}
			if rel, err := filepath.Rel(filepath.Dir(at), filepath.Join(in.place, inside)); err == nil {
				return rel
			}
		}
	}
	return goal
}

// resolved returns a path without links, or path itself if it does not exist.
func resolved(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

// copyInto copies a regular file to a new one with the same time. Builds compare times, and git compares that of its index with
// those of files, to find files that changed within the second in which it was written.
func copyInto(from string, root *os.Root, to string, info fs.FileInfo) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := root.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm()|0o200)
	if err != nil {
		return err
	}
	_, err = out.ReadFrom(in) // shares the blocks where the file system can
	err = errors.Join(err, out.Close())
	if err != nil {
		return err
	}
	return root.Chtimes(to, info.ModTime(), info.ModTime())
}

// touched returns the present time of the file system.
func (r *Repo) touched() (time.Time, error) {
	f, err := os.CreateTemp(r.tmp(), "now-")
	if err != nil {
		return time.Time{}, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return time.Time{}, err
	}
	return info.ModTime(), nil
}
