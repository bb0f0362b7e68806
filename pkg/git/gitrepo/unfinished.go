package gitrepo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"agentteam/pkg/team"
	"agentteam/pkg/tool/command"
)

// Unfinished is a member's uncommitted work in its tree, as commits of the repository: Files without ignored files, and Whole with
// them on top of it. The two are the same if there are none.
type Unfinished struct{ Files, Whole Hash }

// Save commits all files of the tree, ignored ones in a second commit, inside the member's sandbox, and returns them as a bundle
// for [Repo.ImportUnfinished]; nil if there is nothing to store. The tree stays as it is. The bundle has files of at most
// [Limits].Bundle bytes, the smallest first and an ignored folder as a whole; leftOut names the others.
//
// Errors: those of [Tree.Commit].
func (t *Tree) Save(ctx context.Context, in command.Runner, m Message) (bundle []byte, leftOut []string, err error) {
	if err := m.check(); err != nil {
		return nil, nil, err
	}
	word, rest, err := t.run(ctx, in, nil, mostNames, "list", string(t.Base))
	if err != nil {
		return nil, nil, fmt.Errorf("list the tree %s: %w", t.name, err)
	}
	if size, ok := strings.CutPrefix(word, "list "); !ok || size != strconv.Itoa(len(rest)) {
		return nil, nil, fmt.Errorf("list the tree %s: the sandbox answers %.80q", t.name, word)
	}
	n, err := t.read()
	if err != nil {
		return nil, nil, err
	}
	all, err := t.weigh(fields(rest), n.UserFiles, func(string) bool { return false })
	if err != nil || len(all) == 0 {
		return nil, nil, err
	}
	var out []string // of the bundle
	for _, name := range n.UserFiles {
		out = append(out, "i"+name, "i"+name+"/")
	}
	tooMuch := surplus(all, t.repo.limits)
	for _, w := range tooMuch {
		out, leftOut = append(out, w.kind()+w.name), append(leftOut, w.String())
	}
	if len(tooMuch) == len(all) {
		return nil, leftOut, nil
	}
	bundle, _, err = t.bundle(ctx, in, m, "save", t.repo.limits.Bundle*int64(unfinished.bundle), out...)
	return bundle, leftOut, err
}

// weight is a file that differs from the tree's commit, or an ignored folder.
type weight struct {
	name    string // from the tree's root; a folder ends with a slash
	ignored bool
	bytes   int64
	files   int
	cannot  string // why no commit may have it
}

// kind returns the letter with which the script lists it.
func (w weight) kind() string {
	if w.ignored {
		return "i"
	}
	return "c"
}

func (w weight) String() string {
	why := w.cannot
	switch {
	case why != "":
	case w.bytes < 1<<20:
		why = fmt.Sprintf("%d KiB", (w.bytes+1<<10-1)>>10)
	default:
		why = fmt.Sprintf("%d MiB", (w.bytes+1<<20-1)>>20)
	}
	if w.cannot == "" && w.files > 1 {
		why += fmt.Sprintf(" in %d files", w.files)
	}
	return fmt.Sprintf("%s (%s)", team.OneLine(team.Escaped(w.name)), why)
}

// surplus returns the part of all that the commits of unfinished work leave out: files that no commit may have, and the largest
// of the others, so that the rest fits into the limits. Ignored files are left out first.
func surplus(all []weight, l Limits) (out []weight) {
	slices.SortStableFunc(all, func(a, b weight) int {
		if a.ignored != b.ignored {
			if b.ignored {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.bytes, b.bytes)
	})
	bytes, files := int64(0), 0
	for _, w := range all {
		if w.cannot == "" && bytes+w.bytes <= l.Bundle && files+w.files <= l.Files {
			bytes, files = bytes+w.bytes, files+w.files
			continue
		}
		out = append(out, w)
	}
	return out
}

// weigh measures the files of a list of the script, except those lent by the user and those that but reports. It follows no link
// of the tree.
func (t *Tree) weigh(listed, lent []string, but func(name string) bool) (all []weight, err error) {
	root, err := os.OpenRoot(t.Root)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	seen := map[string]bool{}
	for _, name := range lent {
		seen[name], seen[name+"/"] = true, true
	}
	shut := unread(listed, lent)
	for _, l := range listed {
		name := l[min(1, len(l)):]
		below := func(s string) bool { return strings.HasPrefix(name, s+"/") && name != s+"/" }
		if name == "" || l[0] == 'u' || seen[name] || slices.ContainsFunc(shut, below) {
			continue
		}
		seen[name] = true
		w := weight{name: name, ignored: l[0] == 'i'}
		within := func(s string) bool {
			return s == name || strings.HasSuffix(name, "/") && strings.HasPrefix(s+"/", name)
		}
		if l[0] == 's' {
			w.cannot = "files of a submodule"
		} else if slices.ContainsFunc(shut, within) {
			w.cannot, shut = cannotRead, slices.DeleteFunc(shut, within)
		} else if !w.ignored && strings.HasSuffix(name, "/") {
			w.cannot = "a separate git repository"
		} else if err := w.add(root, strings.TrimSuffix(name, "/"), func(at string) bool { return slices.Contains(lent, at) || but(at) }); err != nil {
			return nil, err
		}
		all = append(all, w)
	}
	for _, name := range shut {
		all = append(all, weight{name: name, cannot: cannotRead})
	}
	return all, nil
}

// unread returns the files and folders in a list of the script that cannot be read.
func unread(listed, lent []string) (names []string) {
	for _, l := range listed {
		if name, ok := strings.CutPrefix(l, "u"); ok && !slices.ContainsFunc(lent, func(of string) bool { return strings.HasPrefix(name+"/", of+"/") }) {
			names = append(names, name)
		}
	}
	return names
}

const cannotRead = "it cannot be read"

// add adds a file or folder and all below it. A deleted file is a change, too.
func (w *weight) add(root *os.Root, name string, but func(name string) bool) error {
	if info, err := root.Lstat(name); errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
		w.one(name, info)
		return nil
	}
	return fs.WalkDir(root.FS(), name, func(at string, d fs.DirEntry, err error) error {
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			w.cannot = cannotRead
		}
		switch {
		case err != nil || w.cannot != "":
			return fs.SkipAll
		case but(at) && d.IsDir():
			return fs.SkipDir
		case but(at):
			return nil
		case d.IsDir():
			w.one(at, nil)
			return nil
		}
		info, err := d.Info()
		if err == nil { // else it is gone
			w.one(at, info)
		}
		return nil
	})
}

// one adds a file; info is nil for a folder, and for a deleted file.
func (w *weight) one(name string, info fs.FileInfo) {
	if err := checkPath(name); err != nil {
		w.cannot = "no commit may have its name, or one in it"
		if path.Base(name) == ".git" {
			w.cannot = "a git repository is in it"
		}
	}
	if info != nil {
		w.files, w.bytes = w.files+1, w.bytes+info.Size()
	}
}

// ImportUnfinished takes a bundle of [Tree.Save] on base, a commit of the integration branch, into the repository, as [Repo.Import]
// does for work to merge. Symbolic links may lead anywhere: only the next holder gets these files, and none is merged.
//
// Errors: those of [Repo.Import].
func (r *Repo) ImportUnfinished(ctx context.Context, bundle []byte, base Hash) (Unfinished, error) {
	all, err := r.takeIn(ctx, bundle, base, unfinished)
	if err != nil {
		return Unfinished{}, err
	}
	return Unfinished{all[0], all[len(all)-1]}, nil
}

// marker matches the first line of a conflict in a file, as git merge-tree writes it: with the names of commits.
const marker = "^<{7} [0-9a-f]{40}$"

// Marked returns the files that differ between base and commit, and that still have conflict markers of [Repo.Merge].
func (r *Repo) Marked(ctx context.Context, base, commit Hash) ([]string, error) {
	files, err := r.Files(ctx, base, commit)
	if err != nil || len(files) == 0 {
		return nil, err
	}
	changed := map[string]bool{}
	for _, f := range files {
		changed[f.Path] = true
	}
	g := r.git("grep", "-z", "--name-only", "-I", "-E", "-e", marker, string(commit))
	g.within = slow
	out, err := g.run(ctx)
	if err != nil && exitCode(err) != 1 {
		return nil, r.gone(err)
	}
	var marked []string
	for _, name := range fields(out) {
		if name = strings.TrimPrefix(name, string(commit)+":"); changed[name] {
			marked = append(marked, name)
		}
	}
	return marked, nil
}
