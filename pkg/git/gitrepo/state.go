package gitrepo

import (
	"context"
	"os"
	"path/filepath"
)

// State is the state of git in a folder of the user.
type State struct {
	Checkout
	Version string // as git prints it
	Unfit   error  // why no trees can be made for the folder; nil: they can
	Under   string // the operation under way in the work tree, such as "a merge"; "" = none
	Super   string // the work tree of which the folder's repository is a submodule; "" = of none
	Unnamed bool   // git knows no name or no address of the user for a commit here
}

// under lists files of a git dir, each with the operation that is under way while the file exists.
var under = []struct{ file, what string }{
	{"MERGE_HEAD", "a merge"}, {"rebase-merge", "a rebase"}, {"rebase-apply", "a rebase"}, {"CHERRY_PICK_HEAD", "a cherry-pick"}, {"REVERT_HEAD", "a revert"}, {"BISECT_LOG", "a bisect"},
}

// StateOf returns the state of git in a folder. It runs no program of the folder's repository. Errors: Unavailable without a git
// that is new enough.
func StateOf(ctx context.Context, dir string) (s State, err error) {
	if err := NeedGit(ctx); err != nil {
		return s, err
	}
	if s.Version, err = (git{args: []string{"version"}}).line(ctx); err != nil {
		return s, err
	}
	for _, name := range []string{"GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT"} {
		g := git{args: []string{"var", name}, dir: dir, whole: append(os.Environ(), "LC_ALL=C")}
		if _, err := g.line(ctx); err != nil {
			s.Unnamed = true
		}
	}
	if s.Checkout, s.Unfit = Inspect(ctx, dir); s.Unfit != nil {
		if s.Checkout, err = locate(ctx, dir); err != nil {
			return s, nil // there is no more to see
		}
	}
	for _, u := range under {
		if _, err := os.Lstat(filepath.Join(s.dir, u.file)); err == nil {
			s.Under = u.what
			break
		}
	}
	s.Super, _ = inside(dir, "rev-parse", "--show-superproject-working-tree").line(ctx) // "" of none
	return s, nil
}
