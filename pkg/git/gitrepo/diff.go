package gitrepo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"agentteam/pkg/team"
)

var timeZero = time.Unix(0, 0)

// Form is the format of a diff.
type Form string

// The forms.
const (
	Patch   Form = "patch"   // the changed lines
	Colours Form = "colours" // the changed lines, for a terminal
	Stat    Form = "stat"    // a line for each file, and a summary
)

var formOptions = map[Form][]string{
	Patch:   {"--patch"},
	Colours: {"--patch", "--color=always"},
	Stat:    {"--stat=120", "--summary"},
}

// Diff returns the difference between two commits, in all files or in those named, and whether it is complete: of a text of
// more than most bytes it returns the whole lines at its beginning. from is "" for the empty tree. The text contains content
// of files, with any characters that they have.
func (r *Repo) Diff(ctx context.Context, f Form, most int64, from, to Hash, paths ...string) (text string, whole bool, err error) {
	if from == "" {
		from = emptyTree
	}
	if err := check(from, to); err != nil {
		return "", false, err
	}
	options, ok := formOptions[f]
	if !ok {
		return "", false, team.Errorf(team.InvalidArgument, "%q is no form of a diff", f)
	}
	args := append([]string{"-c", "core.quotePath=false", "diff-tree", "-r", "--find-renames", "--no-ext-diff", "--no-textconv", "--no-commit-id"}, options...)
	g := r.git(append(append(args, "--end-of-options", string(from), string(to), "--"), paths...)...)
	g.env, g.within = []string{"GIT_LITERAL_PATHSPECS=1"}, slow
	g.most = max(most, 1) // 0 is the default, and no line fits into one byte
	out, err := g.run(ctx)
	if errors.Is(err, errTooMuch) {
		return string(out[:bytes.LastIndexByte(out, '\n')+1]), false, nil
	}
	return string(out), err == nil, r.gone(err)
}

// File is a file that differs between two commits.
type File struct {
	Path    string `json:"path"`
	Added   int    `json:"added"`   // lines; -1 for a binary file
	Deleted int    `json:"deleted"` // lines; -1 for a binary file
}

// Files returns the files that differ between two commits, by path; a renamed file is two. from is "" for the empty tree.
func (r *Repo) Files(ctx context.Context, from, to Hash) ([]File, error) {
	if from == "" {
		from = emptyTree
	}
	if err := check(from, to); err != nil {
		return nil, err
	}
	g := r.git("diff-tree", "-r", "-z", "--numstat", "--no-renames", "--no-ext-diff", "--no-textconv", "--end-of-options", string(from), string(to))
	g.within = slow
	out, err := g.run(ctx)
	if err != nil {
		return nil, r.gone(err)
	}
	var all []File
	for _, l := range fields(out) {
		f := strings.SplitN(l, "\t", 3)
		if len(f) < 3 {
			return nil, fmt.Errorf("git diff-tree prints %.80q", l)
		}
		all = append(all, File{Path: f[2], Added: lineCount(f[0]), Deleted: lineCount(f[1])})
	}
	return all, nil
}

func lineCount(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return -1
	}
	return n
}

// Export writes the files of a commit or a tree into dir, a new folder, without a .git. .gitattributes determines line ends;
// no filter runs, so LFS pointers stay pointers.
func (r *Repo) Export(ctx context.Context, files Hash, dir string) (err error) {
	if err := check(files); err != nil {
		return err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	index, err := os.MkdirTemp(r.tmp(), "export-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(index)
	g := r.git("read-tree", "-m", "-u", string(files))
	g.dir, g.within = dir, slow
	g.env = []string{"GIT_WORK_TREE=" + dir, "GIT_INDEX_FILE=" + filepath.Join(index, "index")}
	if _, err := g.run(ctx); err != nil {
		os.RemoveAll(dir)
		return fmt.Errorf("export %s: %w", files.Short(), r.gone(err))
	}
	return nil
}
