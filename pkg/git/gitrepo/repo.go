package gitrepo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"agentteam/pkg/team"
)

// Limits bound the data that a task may add to the integration branch. The zero value of each means its default.
type Limits struct {
	Bundle   int64 // bytes of its bundle; default 64 MiB
	Objects  int   // objects in that; default 100,000
	Unpacked int64 // bytes of all objects unpacked, and of all files changed; default 1 GiB
	Files    int   // files changed; default 50,000
}

func (l Limits) withDefaults() Limits {
	l.Bundle = cmp.Or(l.Bundle, 64<<20)
	l.Objects = cmp.Or(l.Objects, 100_000)
	l.Unpacked = cmp.Or(l.Unpacked, 1<<30)
	l.Files = cmp.Or(l.Files, 50_000)
	return l
}

// received bounds data from another host of the team, including the user's history.
var received = Limits{Bundle: 16 << 30, Objects: 50_000_000, Unpacked: 1 << 40, Files: 1_000_000}

// Repo is a team's bare repository on this host, and the folder around it with its trees and temporary files. Safe for
// concurrent use, by several processes too.
type Repo struct {
	dir    string // of all that belongs to it
	bare   string // the repository
	team   team.TeamID
	limits Limits
}

// attributes takes precedence over the attributes of any tree. git reads no attributes of trees in a bare repository; this is
// for a later git that does.
const attributes = "* !merge !diff !export-subst !export-ignore\n"

// Open opens the repository of a team in dir, a separate folder on a file system with room for the trees, and makes missing
// parts. Errors: Unavailable without a git that is new enough; those of os.
func Open(ctx context.Context, dir string, t team.TeamID, l Limits) (*Repo, error) {
	if _, err := team.ParseTeamID(string(t)); err != nil {
		return nil, err
	}
	if err := NeedGit(ctx); err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if strings.ContainsAny(dir, ":\n\"") { // git has lists of folders with these between them
		return nil, team.Errorf(team.InvalidArgument, "the folder %q cannot hold a line", dir).WithHint("choose one without : and quotes in its path")
	}
	r := &Repo{dir: dir, bare: filepath.Join(dir, "line.git"), team: t, limits: l.withDefaults()}
	return r, r.Ensure(ctx)
}

// Ensure makes the missing parts of the repository and its folders, for example after a person has emptied the cache folder.
// Errors: those of git and os.
func (r *Repo) Ensure(ctx context.Context) error {
	for _, d := range []string{r.dir, r.trees(), r.tmp()} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return err
		}
	}
	_, err := os.Stat(r.bare)
	if errors.Is(err, fs.ErrNotExist) {
		if err = r.make(ctx); err != nil {
			err = fmt.Errorf("make the line's repository: %w", err)
		}
	}
	return err
}

// make makes the whole bare repository, or nothing.
func (r *Repo) make(ctx context.Context) error {
	fresh, err := os.MkdirTemp(r.tmp(), "repo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(fresh)
	bare := filepath.Join(fresh, "line.git")
	_, err = git{args: []string{"init", "--quiet", "--bare", "--template=", "--initial-branch=" + r.Branch(), "--object-format=sha1", bare}}.run(ctx)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(bare, "info"), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(bare, "info", "attributes"), []byte(attributes), 0o600); err != nil {
		return err
	}
	if err := os.Rename(bare, r.bare); err != nil {
		if _, there := os.Stat(r.bare); there != nil {
			return err
		} // else another process was first
	}
	return nil
}

// Temporary returns a folder for files that are needed for a few minutes; older ones are removed.
func (r *Repo) Temporary() string { return r.tmp() }

func (r *Repo) trees() string   { return filepath.Join(r.dir, "trees") }
func (r *Repo) kept() string    { return filepath.Join(r.dir, "kept") }
func (r *Repo) tmp() string     { return filepath.Join(r.dir, "tmp") }
func (r *Repo) objects() string { return filepath.Join(r.bare, "objects") }
func (r *Repo) ref() string     { return "refs/heads/" + r.Branch() }

// Branch returns the name of the integration branch.
func (r *Repo) Branch() string { return "agentteam/" + string(r.team) }

// git returns a command in the bare repository.
func (r *Repo) git(args ...string) git {
	return git{args: append([]string{"--git-dir=" + r.bare}, args...), dir: r.dir}
}

// gone returns NotFound instead of err if the repository no longer exists.
func (r *Repo) gone(err error) error {
	if err == nil {
		return nil
	}
	if _, stat := os.Stat(r.bare); errors.Is(stat, fs.ErrNotExist) {
		return team.Errorf(team.NotFound, "the line's repository %s is not there any more", r.bare).
			WithHint("set the goal again: the line begins at the checkout's HEAD then")
	}
	return err
}

// Head returns the head of the integration branch. Errors: NotFound if there is no branch yet, or no repository.
func (r *Repo) Head(ctx context.Context) (Hash, error) {
	out, err := r.git("rev-parse", "--verify", "--quiet", r.ref()+"^{commit}").line(ctx)
	if exitCode(err) == 1 {
		return "", team.Errorf(team.NotFound, "the line %s has no commit yet", r.Branch())
	} else if err != nil {
		return "", r.gone(err)
	}
	return ParseHash(out)
}

// Has reports whether the commit is in the repository.
func (r *Repo) Has(ctx context.Context, h Hash) (bool, error) {
	if err := check(h); err != nil {
		return false, err
	}
	_, err := r.git("cat-file", "-e", string(h)+"^{commit}").run(ctx)
	switch exitCode(err) {
	case 0:
		return true, nil
	case 1, 128:
		return false, r.gone(nil)
	}
	return false, r.gone(err)
}

// Contains reports whether ancestor is h or in the history of h.
func (r *Repo) Contains(ctx context.Context, h, ancestor Hash) (bool, error) {
	if err := check(h, ancestor); err != nil {
		return false, err
	}
	_, err := r.git("merge-base", "--is-ancestor", string(ancestor), string(h)).run(ctx)
	if code := exitCode(err); code == 1 || messageOf(err, "Not a valid commit name") {
		return false, nil
	}
	return err == nil, r.gone(err)
}

// Move moves the head of the integration branch from one commit to another, which must have it in its history; from is "" for
// the first. Of concurrent calls one moves it. A head that is already at to is not an error.
//
// Errors: Conflict, naming the present head, if that is not from, or if to lacks from in its history.
func (r *Repo) Move(ctx context.Context, from, to Hash) error {
	from = cmp.Or(from, nothing)
	if err := check(from, to); err != nil {
		return err
	}
	if from != nothing {
		if ok, err := r.Contains(ctx, to, from); err != nil {
			return err
		} else if !ok {
			return team.Errorf(team.Conflict, "the line is not moved to %s, which lacks its head %s", to.Short(), from.Short())
		}
	}
	_, err := r.git("update-ref", "--no-deref", r.ref(), string(to), string(from)).run(ctx)
	if err == nil {
		return nil
	}
	is, headErr := r.Head(ctx)
	switch {
	case headErr == nil && is == to:
		return nil
	case headErr == nil && is != from:
		return team.Errorf(team.Conflict, "the line's head is %s, not %s", is.Short(), from.Short()).
			WithHint("merge on its present head")
	}
	return fmt.Errorf("move the line to %s: %w", to.Short(), r.gone(err))
}

// tree returns the tree of a commit.
func (r *Repo) tree(ctx context.Context, h Hash) (Hash, error) {
	out, err := r.git("rev-parse", "--verify", "--quiet", string(h)+"^{tree}").line(ctx)
	if err != nil {
		return "", r.gone(fmt.Errorf("commit %s: %w", h.Short(), err))
	}
	return ParseHash(out)
}

// Before returns the parent of a task's commit. Errors: InvalidState for a commit without exactly one parent.
func (r *Repo) Before(ctx context.Context, h Hash) (Hash, error) {
	if err := check(h); err != nil {
		return "", err
	}
	out, err := r.git("rev-list", "--parents", "--max-count=1", string(h)).line(ctx)
	if err != nil {
		return "", r.gone(err)
	}
	all := strings.Fields(out) // itself, then its parents
	if len(all) != 2 {
		return "", team.Errorf(team.InvalidState, "commit %s is no task's", h.Short())
	}
	return Hash(all[1]), nil
}

// Remove removes the folder of a team's repository, with its trees. Nothing may use it.
func Remove(dir string) error { return removeAll(dir) }
