package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// The bounds of a walk. A folder with more entries, or so deep, is no source tree; a walk
// through it would take the memory of the process.
const (
	maxEntries = 100_000 // of one folder
	maxDepth   = 200     // folders in folders
)

// walk is one way through the tree below a folder.
type walk struct {
	w       *Workspace
	start   string
	fn      func(name string, d fs.DirEntry) error
	ignored *ignored
	left    string // what was not looked at, for the answer; "" = nothing
}

// walk calls fn for start and for all below it, a folder before what it holds,
// in the order of names. Symbolic links are entries, never followed, so a walk
// ends. What .gitignore names is left out, unless start lies in it. fn may return
// [fs.SkipDir] and [fs.SkipAll]. left says what was too much to be looked at.
func (w *Workspace) walk(ctx context.Context, start string, fn func(name string, d fs.DirEntry) error) (left string, err error) {
	start = filepath.ToSlash(start)
	info, err := w.root.Stat(start)
	if err != nil {
		return "", w.coded(start, err)
	}
	k := &walk{w: w, start: start, fn: fn, ignored: w.ignoredFrom(start)}
	err = k.visit(ctx, start, fs.FileInfoToDirEntry(info), 0)
	if errors.Is(err, fs.SkipAll) || errors.Is(err, fs.SkipDir) {
		err = nil
	}
	return k.left, err
}

// visit calls fn for name and for all below it. Errors: those of fn; [fs.SkipDir] if what else
// lies beside name is not wanted; ctx's cause.
func (k *walk) visit(ctx context.Context, name string, d fs.DirEntry, depth int) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case name == k.start:
	case d.IsDir() && (d.Name() == ".git" || d.Name() == clusterDir), k.ignored.match(name, d.IsDir()):
		return nil
	}
	if d.IsDir() {
		k.ignored.enter(name)
	}
	err := k.fn(name, d)
	switch {
	case d.IsDir() && errors.Is(err, fs.SkipDir):
		return nil
	case err != nil || !d.IsDir():
		return err
	case depth == maxDepth:
		k.leave("what lies deeper than %d folders, below %s, was left out", maxDepth, name)
		return nil
	}
	entries, err := k.entries(name)
	if err != nil {
		return err
	}
	for _, e := range entries {
		err := k.visit(ctx, path.Join(name, e.Name()), e, depth+1)
		if errors.Is(err, fs.SkipDir) && !errors.Is(err, fs.SkipAll) {
			break
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// entries lists a folder in the order of names. Errors have codes.
func (k *walk) entries(name string) ([]fs.DirEntry, error) {
	dir, _, err := k.w.folder(name)
	if err == nil {
		defer dir.Close() // it was only read
		var entries []fs.DirEntry
		entries, err = dir.ReadDir(maxEntries)
		if len(entries) == maxEntries {
			k.leave("%s has %d entries or more, and only these were looked at", name, maxEntries)
		}
		if len(entries) > 0 || errors.Is(err, io.EOF) {
			slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
			return entries, nil
		}
	}
	if name == k.start {
		return nil, k.w.coded(name, err)
	}
	return nil, nil // closed to us, or another thing since its folder was read: a shared folder changes
}

func (k *walk) leave(format string, args ...any) {
	if k.left == "" { // the first tells enough
		k.left = "\n[" + fmt.Sprintf(format, args...) + ": narrow the search]"
	}
}

// below returns name, which is below start, relative to start.
func below(start, name string) string { return strings.TrimPrefix(name, start+"/") }
