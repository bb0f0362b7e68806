package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agentteam/pkg/team"
)

// Changes returns the names of the files of a checkout that differ from its HEAD, including new files; not ignored files or
// files that a cluster keeps, and nothing in submodules. It changes neither the index nor the files, and no filter of the
// checkout's config runs. HEAD must have been fetched.
func (r *Repo) Changes(ctx context.Context, c Checkout) ([]string, error) {
	s, err := r.survey(ctx, c)
	if err != nil {
		return nil, err
	}
	defer s.end()
	return s.changed, nil
}

// Snapshot makes a commit on the checkout's HEAD with the changes that Changes names; without any, it returns HEAD. No ref
// moves, here or there.
//
// Errors: InvalidState for a file that only a filter of its repository could store (LFS), for a merge under way, for a
// repository inside that is not a submodule.
func (r *Repo) Snapshot(ctx context.Context, c Checkout, m Message) (Hash, error) {
	s, err := r.survey(ctx, c)
	if err != nil {
		return "", err
	}
	defer s.end()
	if len(s.changed) == 0 {
		return c.Head, nil
	}
	if err := s.refuse(ctx); err != nil {
		return "", err
	}
	var there, gone []string
	for _, name := range s.changed {
		if s.behind(name) {
			gone = append(gone, name)
		} else {
			there = append(there, name)
		}
	}
	// Removed files come first: git keeps a file from taking the place of a folder that the index has.
	for _, take := range []struct {
		how   string
		names []string
	}{{"--force-remove", gone}, {"--remove", there}} {
		g := s.git("update-index", "-z", "--add", take.how, "--stdin")
		g.stdin, g.within = strings.NewReader(strings.Join(append(take.names, ""), "\x00")), slow
		if _, err := g.run(ctx); err != nil {
			return "", fmt.Errorf("take the changes of %s along: %w", c.Root, err)
		}
	}
	tree, err := s.git("write-tree").line(ctx)
	if err != nil {
		return "", fmt.Errorf("take the changes of %s along: %w", c.Root, err)
	}
	return r.Commit(ctx, Hash(tree), m, c.Head)
}

// Live makes a commit of the present files of a tree, on top of base, which it returns. The tree may be open in any process,
// and stays as it is. Errors: those of [Repo.Snapshot]; NotFound if there is no whole tree of that name.
func (r *Repo) Live(ctx context.Context, tree string, m Message) (base, at Hash, err error) {
	t := &Tree{repo: r, name: tree, Root: filepath.Join(r.trees(), tree)}
	n, err := t.read()
	if errors.Is(err, fs.ErrNotExist) {
		err = team.Errorf(team.NotFound, "there is no tree %s", tree)
	}
	if err != nil {
		return "", "", err
	}
	c := Checkout{Root: t.Root, Head: n.Base, dir: filepath.Join(t.Root, ".git")}
	if info, err := os.Lstat(c.dir); err != nil || !info.IsDir() { // its member may have put anything there
		return "", "", team.Errorf(team.InvalidState, "the git folder of the tree %s is gone", tree)
	}
	c.common = c.dir
	at, err = r.Snapshot(ctx, c, m)
	return n.Base, at, err
}

// survey compares the files of a checkout in our own repository, with a copy of the checkout's index, which saves reading
// all files.
type survey struct {
	repo    *Repo
	of      Checkout
	dir     string   // of the copy
	changed []string // paths from the root
}

func (s *survey) end() { os.RemoveAll(s.dir) }

// git returns a command on the files of the checkout. Its objects go to our repository.
func (s *survey) git(args ...string) git {
	var opts []string
	for _, d := range s.of.data {
		opts = append(opts, "-c", d)
	}
	g := git{args: slices.Concat(opts, s.of.ignoring(), args), dir: s.of.Root}
	g.env = []string{"GIT_DIR=" + s.repo.bare, "GIT_WORK_TREE=" + s.of.Root, "GIT_INDEX_FILE=" + filepath.Join(s.dir, "index"), "GIT_LITERAL_PATHSPECS=1"}
	return g
}

func (r *Repo) survey(ctx context.Context, c Checkout) (_ *survey, err error) {
	if ok, err := r.Has(ctx, c.Head); err != nil {
		return nil, err
	} else if !ok {
		return nil, team.Errorf(team.InvalidState, "commit %s was not fetched", c.Head.Short())
	}
	dir, err := os.MkdirTemp(r.tmp(), "survey-")
	if err != nil {
		return nil, err
	}
	s := &survey{repo: r, of: c, dir: dir}
	defer func() {
		if err != nil {
			s.end()
			err = fmt.Errorf("look at the changes of %s: %w", c.Root, err)
		}
	}()
	added, err := s.takeIndex(ctx)
	if err != nil {
		return nil, err
	}
	// Files that were only touched are not changes. It exits 1 if there are changes.
	refresh := s.git("update-index", "-q", "--ignore-submodules", "--refresh")
	refresh.within = slow
	if _, err := refresh.run(ctx); err != nil && exitCode(err) != 1 {
		return nil, err
	}
	// Not git add: that runs programs of the configs of submodules.
	tracked, err := s.list(ctx, "diff-files", "--name-only", "--ignore-submodules=all", "--no-ext-diff", "-z")
	if err != nil {
		return nil, err
	}
	others := []string{"ls-files", "--others", "--exclude-standard", "-z"}
	if exclude := filepath.Join(c.common, "info", "exclude"); regular(exclude) {
		others = append(others, "--exclude-from="+exclude)
	}
	untracked, err := s.list(ctx, others...)
	if err != nil {
		return nil, err
	}
	s.changed = slices.Compact(slices.Sorted(slices.Values(slices.Concat(added, tracked, untracked))))
	s.changed = slices.DeleteFunc(s.changed, func(name string) bool { return slices.Contains(strings.Split(name, "/"), team.ClusterDir) })
	return s, nil
}

// takeIndex copies the checkout's index and resets the copy to HEAD. It returns the existing files that were added to the
// index, ignored ones too.
func (s *survey) takeIndex(ctx context.Context) (added []string, err error) {
	index := filepath.Join(s.of.dir, "index")
	info, err := os.Lstat(index)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil // all files were taken out of it
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no regular file", index)
	}
	root, err := os.OpenRoot(s.dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if err := copyInto(index, root, "index", info); err != nil {
		return nil, err
	}
	unmerged, err := s.list(ctx, "ls-files", "--unmerged", "-z")
	switch {
	case messageOf(err, "sharedindex"):
		return nil, team.Errorf(team.InvalidState, "the index of %s is split", s.of.Root).WithHint("`git update-index --no-split-index` puts it together")
	case err != nil:
		return nil, err
	case len(unmerged) > 0:
		return nil, team.Errorf(team.InvalidState, "a merge is under way in %s", s.of.Root).WithHint("finish it, or `git merge --abort`")
	}
	staged, err := s.list(ctx, "diff-index", "--cached", "--name-only", "--diff-filter=A", "--no-renames", "--ignore-submodules=all", "-z", string(s.of.Head))
	if err != nil {
		return nil, err
	}
	for _, name := range staged {
		if info, err := os.Lstat(filepath.Join(s.of.Root, name)); err == nil && !info.IsDir() {
			added = append(added, name)
		}
	}
	// Its entries keep the times of the files; with -i it does not read the files.
	_, err = s.git("read-tree", "-m", "-i", string(s.of.Head)).run(ctx)
	return added, err
}

// list runs a command that prints NUL-terminated paths.
func (s *survey) list(ctx context.Context, args ...string) ([]string, error) {
	g := s.git(args...)
	g.within = slow
	out, err := g.run(ctx)
	if err != nil {
		return nil, err
	}
	return fields(out), nil
}

// fields splits NUL-terminated parts.
func fields(out []byte) []string {
	if len(out) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
}

// refuse returns an error for changes that cannot be stored without the programs of the repository.
func (s *survey) refuse(ctx context.Context) error {
	for _, name := range s.changed {
		if strings.HasSuffix(name, "/") {
			return team.Errorf(team.InvalidState, "%s in %s is a separate git repository", name, s.of.Root).
				WithHint("have .gitignore name it, or make it a submodule and commit that")
		}
	}
	g := s.git("check-attr", "-z", "--stdin", "filter")
	g.stdin = strings.NewReader(strings.Join(s.changed, "\x00") + "\x00")
	out, err := g.run(ctx)
	if err != nil {
		return err
	}
	all := fields(out) // path, attribute, value
	for i := 0; i+2 < len(all); i += 3 {
		name, value := all[i], all[i+2]
		if value == "unspecified" || value == "unset" || !regular(filepath.Join(s.of.Root, name)) {
			continue
		}
		return team.Errorf(team.InvalidState, "%s has changed, and git stores it through the filter %s, which is not run for agents", name, value).
			WithHint("commit that file yourself first")
	}
	return nil
}

// behind reports whether a folder on the way to a path is now a file or a symbolic link.
func (s *survey) behind(name string) bool {
	for i, r := range name {
		if r != '/' {
			continue
		}
		if info, err := os.Lstat(filepath.Join(s.of.Root, name[:i])); err == nil && !info.IsDir() {
			return true
		}
	}
	return false
}

// regular reports whether there is a regular file.
func regular(name string) bool {
	info, err := os.Lstat(name)
	return err == nil && info.Mode().IsRegular()
}
