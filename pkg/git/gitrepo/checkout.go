package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"agentteam/pkg/team"
)

// Checkout is a user's folder in a git repository, as [Inspect] has found it.
type Checkout struct {
	Root   string // the top of the work tree
	Prefix string // of the folder below Root, with slashes; "" for Root
	Head   Hash
	Branch string // "" for none

	dir    string   // the git dir of this work tree
	common string   // that of all work trees of the repository, which has the objects
	ignore string   // the user's own list of files to ignore; "" for none
	data   []string // settings of the repository that describe files, "name=value" each
}

// dataSettings are the settings of a repository's config that describe files and run nothing.
var dataSettings = []string{"core.autocrlf", "core.eol", "core.fileMode", "core.symlinks", "core.ignoreCase", "core.precomposeUnicode", "core.checkStat", "core.trustCtime"}

const shareHint = "with `isolation: shared` all members work in the folder itself"

// Inspect returns the checkout of a folder if trees can be made for it. It runs no program of the folder's repository.
//
// Errors: Unavailable without a git that is new enough; NotFound, with the reason, if the folder cannot have trees: no
// repository, no commit, ignored, a partial clone.
func Inspect(ctx context.Context, dir string) (Checkout, error) {
	if err := NeedGit(ctx); err != nil {
		return Checkout{}, err
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return Checkout{}, err
	}
	if _, err := os.Stat(dir); err != nil {
		return Checkout{}, team.Errorf(team.NotFound, "%w", err)
	}
	c, err := locate(ctx, dir)
	if err != nil {
		return Checkout{}, err
	}
	// Before any object is read: git would fetch a missing one with a program of the config.
	if err := c.refusePartial(ctx, dir); err != nil {
		return Checkout{}, err
	}
	head, err := inside(dir, "rev-parse", "--verify", "--quiet", "HEAD^{commit}").line(ctx)
	if err != nil {
		return Checkout{}, unfit("the git repository %s has no commit", c.Root).WithHint("make one, or not: %s", shareHint)
	}
	if c.Head, err = ParseHash(head); err != nil {
		return Checkout{}, unfit("the git repository %s names its objects by another hash than SHA-1", c.Root).WithHint(shareHint)
	}
	c.Branch, _ = inside(dir, "symbolic-ref", "--short", "--quiet", "HEAD").line(ctx) // "" without one
	c.ignore = userIgnore(ctx)
	for _, name := range dataSettings {
		if value, err := inside(dir, "config", "--get", name).line(ctx); err == nil {
			c.data = append(c.data, name+"="+value)
		}
	}
	if c.Prefix != "" {
		g := inside(c.Root, append(c.ignoring(), "check-ignore", "--quiet", "--", c.Prefix)...)
		if _, err := g.run(ctx); err == nil {
			return Checkout{}, unfit("%s is ignored by the git repository %s", dir, c.Root).WithHint(shareHint)
		} else if exitCode(err) != 1 {
			return Checkout{}, err
		}
	}
	return c, nil
}

func unfit(format string, args ...any) *team.Error {
	return team.Errorf(team.NotFound, format, args...)
}

// At returns the checkout with the commit that ref names there, a branch, a tag or a hash, as its HEAD. Errors: NotFound.
func (c Checkout) At(ctx context.Context, ref string) (Checkout, error) {
	out, err := inside(c.Root, "rev-parse", "--verify", "--quiet", "--end-of-options", ref+"^{commit}").line(ctx)
	if err == nil {
		c.Head, err = ParseHash(out)
	}
	if err != nil {
		return c, team.Errorf(team.NotFound, "%.60q names no commit of %s", ref, c.Root).WithHint("`git log` shows those of your branch")
	}
	return c, nil
}

// inside returns a command in a folder of the user.
func inside(dir string, args ...string) git { return git{args: args, dir: dir} }

// locate finds the repository of a folder, by its files only.
func locate(ctx context.Context, dir string) (Checkout, error) {
	ask := func(what ...string) (string, error) {
		return inside(dir, append([]string{"rev-parse", "--path-format=absolute"}, what...)...).line(ctx)
	}
	bare, err := ask("--is-bare-repository")
	switch {
	case messageOf(err, "not a git repository"):
		return Checkout{}, unfit("%s is in no git repository", dir).WithHint("make one with `git init` and a commit, or not: %s", shareHint)
	case err != nil:
		return Checkout{}, unfit("the git repository of %s cannot be used: %w", dir, err).WithHint("`git -C %s status` shows more; %s", dir, shareHint)
	case bare == "true":
		return Checkout{}, unfit("%s is a bare repository", dir).WithHint("name a folder with files")
	}
	var c Checkout
	for _, f := range []struct {
		to   *string
		what string
	}{{&c.Root, "--show-toplevel"}, {&c.Prefix, "--show-prefix"}, {&c.dir, "--git-dir"}, {&c.common, "--git-common-dir"}} {
		if *f.to, err = ask(f.what); err != nil {
			return Checkout{}, unfit("%s is not in the work tree of its git repository: %w", dir, err).WithHint("name a folder with files")
		}
	}
	c.Prefix = strings.TrimSuffix(filepath.ToSlash(c.Prefix), "/")
	// core.worktree can name any folder above, such as the user's home: all files there would count as files of the
	// project.
	if _, err := os.Lstat(filepath.Join(c.Root, ".git")); errors.Is(err, fs.ErrNotExist) {
		return Checkout{}, unfit("the git repository of %s says that its files are in %s, where no .git is", dir, c.Root).
			WithHint("take core.worktree out of its config")
	}
	return c, nil
}

// Exclude has git ignore a name in the work trees of dir's repository, by the repository's local list (info/exclude); not if
// git already ignores dir's file of that name, or dir is in no repository. Errors: Unavailable without a git; those of writing
// the list.
func Exclude(ctx context.Context, dir, name string) error {
	c, err := locate(ctx, dir)
	if errors.Is(err, team.NotFound) {
		return nil
	} else if err != nil {
		return err
	}
	c.ignore = userIgnore(ctx)
	if _, err := inside(dir, append(c.ignoring(), "check-ignore", "--quiet", "--no-index", "--", name)...).run(ctx); exitCode(err) != 1 {
		return err
	}
	root, err := os.OpenRoot(c.common) // a link of the repository must not lead us out
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.MkdirAll("info", 0o777); err != nil {
		return err
	}
	f, err := root.OpenFile("info/exclude", os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o666)
	if err != nil {
		return err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil {
		return err
	} else if last := make([]byte, 1); info.Size() > 0 {
		if _, err := f.ReadAt(last, info.Size()-1); err != nil {
			return err
		}
		if last[0] != '\n' {
			name = "\n" + name
		}
	}
	_, err = f.WriteString(name + "\n")
	return err
}

// Tracks reports whether dir's repository tracks a file, or a folder with files, of that name. It returns false without a
// repository, or without a git that could have made one.
func Tracks(ctx context.Context, dir, name string) bool {
	out, err := inside(dir, "ls-files", "--", ":(literal)"+name).run(ctx)
	return err == nil && len(out) > 0
}

// refusePartial returns an error for a clone that lacks objects.
func (c Checkout) refusePartial(ctx context.Context, dir string) error {
	_, err := inside(dir, "config", "--get-regexp", `^(extensions\.partialclone|remote\..*\.promisor|remote\..*\.partialclonefilter)$`).run(ctx)
	switch exitCode(err) {
	case 0:
		return unfit("%s is a partial clone, which lacks files of its history", c.Root).WithHint("use a clone without --filter; %s", shareHint)
	case 1:
		return nil
	}
	return unfit("the git repository of %s cannot be used: %w", dir, err).WithHint(shareHint)
}

// userIgnore returns the global ignore file of this process's user, "" without one. It is only read.
func userIgnore(ctx context.Context) string {
	home, config := os.Getenv("HOME"), os.Getenv("XDG_CONFIG_HOME")
	g := git{
		args:  []string{"config", "--global", "--includes", "--type=path", "--get", "core.excludesFile"},
		whole: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "XDG_CONFIG_HOME=" + config, "LC_ALL=C"},
	}
	if file, err := g.line(ctx); err == nil && filepath.IsAbs(file) {
		return file
	}
	if config == "" && home != "" {
		config = filepath.Join(home, ".config")
	}
	file := filepath.Join(config, "git", "ignore")
	if _, err := os.Stat(file); err != nil || config == "" {
		return ""
	}
	return file
}

// ignoring returns the options by which git ignores the files that the user's git ignores.
func (c Checkout) ignoring() []string {
	if c.ignore == "" {
		return nil
	}
	return []string{"-c", "core.excludesFile=" + c.ignore}
}

// uploadPack is the command with which git starts the other end of a fetch from a folder of this machine. git does not pass
// on settings from the environment, so they are repeated here.
var uploadPack = func() string {
	var b strings.Builder
	b.WriteString("git")
	for _, o := range overrides {
		b.WriteString(" -c '" + o + "'")
	}
	return b.String() + " upload-pack --strict"
}()

// fetched returns the ref that keeps a commit of the user, and its history.
func fetched(h Hash) string { return "refs/agentteam/from/" + string(h) }

// Fetch brings the checkout's HEAD, with its history, into the repository. It runs and changes nothing on the other side.
// Errors: NotFound if the repository or the commit is gone.
func (r *Repo) Fetch(ctx context.Context, c Checkout) error {
	if err := check(c.Head); err != nil {
		return err
	}
	kept := func() bool { // only a ref shows that the commit's history is there, too
		_, err := r.git("rev-parse", "--verify", "--quiet", fetched(c.Head)).run(ctx)
		return err == nil
	}
	if kept() {
		return nil
	}
	if _, err := os.Stat(c.common); errors.Is(err, fs.ErrNotExist) {
		return team.Errorf(team.NotFound, "the git repository %s is not there any more", c.common).WithHint("set the goal from a folder that is there")
	}
	g := r.git("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-gc", "--no-recurse-submodules", "--update-shallow",
		"--upload-pack="+uploadPack, "--", c.common, string(c.Head)+":"+fetched(c.Head))
	g.within = slow
	_, err := g.run(ctx)
	switch {
	case err == nil || kept(): // another process may have been quicker
		return nil
	case messageOf(err, "not our ref"):
		return team.Errorf(team.NotFound, "commit %s is not in %s any more", c.Head.Short(), c.Root).WithHint("look at the folder again")
	}
	return fmt.Errorf("fetch %s from %s: %w", c.Head.Short(), c.Root, r.gone(err))
}

// Next returns the commit at which the next goal begins: at, the checkout's HEAD or a snapshot of its files, merged with the
// commits of the integration branch that at lacks. No ref moves.
//
// Errors: Conflict, with the files, if the two do not merge; NotFound for an unknown commit.
func (r *Repo) Next(ctx context.Context, at Hash, m Message) (Hash, error) {
	if ok, err := r.Has(ctx, at); err != nil {
		return "", err
	} else if !ok {
		return "", team.Errorf(team.NotFound, "commit %s is not in the line's repository", at.Short())
	}
	head, err := r.Head(ctx)
	if errors.Is(err, team.NotFound) {
		return at, nil
	} else if err != nil {
		return "", err
	}
	for _, pair := range [][2]Hash{{at, head}, {head, at}} { // one of the two may have all
		if ok, err := r.Contains(ctx, pair[0], pair[1]); err != nil {
			return "", err
		} else if ok {
			return pair[0], nil
		}
	}
	merged, err := r.Merge(ctx, head, at)
	if err != nil {
		return "", err
	}
	if len(merged.Conflicts) > 0 {
		return "", team.Errorf(team.Conflict, "the checkout and the line %s have both changed %s", r.Branch(), paths(merged.Conflicts)).
			WithHint("merge the line's branch %s in your checkout first, and commit", r.Branch())
	}
	return r.Commit(ctx, merged.Tree, m, head, at)
}
