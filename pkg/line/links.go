package line

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"agentteam/pkg/team"
)

const (
	mostLinked      = 512 << 20 // bytes that are copied into a tree
	mostLinkedFiles = 100_000
)

// link returns where a file or folder of the user is that trees get beside what git has, a
// path from the user's folder. Git must ignore it: else it would become part of commits.
func (c Checkout) link(ctx context.Context, name string) (string, error) {
	if c.Root == "" {
		return "", team.Errorf(team.InvalidArgument, "worktree_links: there is no checkout of the user here to take %s from", name)
	}
	if !filepath.IsLocal(name) || filepath.Clean(name) == "." || dotGit(strings.Split(filepath.ToSlash(filepath.Clean(name)), "/")[0]) {
		return "", team.Errorf(team.InvalidArgument, "worktree_links: %q leads out of the folder", name).WithHint("name what is below it, such as node_modules")
	}
	rel := filepath.Join(filepath.FromSlash(c.Prefix), name)
	full, err := filepath.EvalSymlinks(filepath.Join(c.Root, rel))
	if err != nil {
		return "", team.Errorf(team.NotFound, "worktree_links: %w", err).WithHint("make it in your own folder first, or take it out")
	}
	if top, err := filepath.EvalSymlinks(c.Root); err != nil || !strings.HasPrefix(full, top+string(filepath.Separator)) {
		return "", team.Errorf(team.InvalidArgument, "worktree_links: %s is a link out of the repository", name).WithHint("put a copy into the folder")
	}
	_, err = inside(c.Root, append(c.ignoring(), "check-ignore", "--quiet", "--", rel)...).run(ctx)
	if exitCode(err) == 1 {
		return "", team.Errorf(team.InvalidArgument, "worktree_links: git does not ignore %s", name).
			WithHint("files that git has are in each tree; have .gitignore name others")
	}
	return full, err
}

// link puts one of the user's files or folders into a tree: a copy, or a place to mount it. It
// is never a link: what is written through one is written to the user's.
func (t *Tree) link(n note, from, to, fresh string, mounted bool) ([]Mount, error) {
	rel, err := filepath.Rel(fresh, to)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(fresh) // a link of the repository must not lead us out
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if err := root.MkdirAll(filepath.Dir(rel), 0o755); err != nil {
		return nil, err
	}
	c := copying{left: mostLinked, files: mostLinkedFiles}
	info, err := os.Lstat(from)
	switch {
	case err != nil:
		return nil, err
	case mounted && info.IsDir():
		err = root.Mkdir(rel, 0o755)
	case mounted:
		err = root.WriteFile(rel, nil, 0o644)
	default:
		return n.Mounts, c.copy(from, root, rel)
	}
	if err != nil {
		return nil, err
	}
	return append(n.Mounts, Mount{From: from, To: filepath.Join(t.Root, rel)}), nil
}

// copying copies files, within limits.
type copying struct {
	left  int64
	files int
}

// copy copies a file or folder; what is neither, nor a symbolic link, is left out.
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
		c.files--
		if c.left -= info.Size(); c.left < 0 || c.files < 0 {
			return team.Errorf(team.BudgetExceeded, "worktree_links: %s is too large to copy into each tree: at most %d MiB in %d files", from, mostLinked>>20, mostLinkedFiles).
				WithHint("with the sandbox bubblewrap it can be mounted instead")
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
			return root.Symlink(goal, target)
		case info.Mode().IsRegular():
			return copyInto(name, root, target, info)
		}
		return nil
	})
}

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
	return root.Chtimes(to, info.ModTime(), info.ModTime()) // builds compare them
}

// touched returns the time of the file system.
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
