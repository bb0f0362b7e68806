package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agentteam/pkg/team"
)

// The bounds of a walk. A larger or deeper folder is not a source tree; walking it would take the memory of the
// process.
const (
	maxEntries = 100_000 // of one folder
	maxDepth   = 200     // folders in folders
)

// walk is a walk through the tree below a folder.
type walk struct {
	w       *Workspace
	start   string
	fn      func(name string, d fs.DirEntry, in *os.Root) error
	ignored *ignored
	hides   func(path string) bool // nil: nothing is hidden
	hidden  int
	left    string // what was not looked at, for the answer; "" = nothing
}

// walk calls fn for start and everything below it, a folder before its contents, in the order of names, for a search by
// tool. Symbolic links are entries and are not followed, so a walk ends. It leaves out what .gitignore names, unless
// start lies in it, and paths with a rule ([Options].Hides). fn also gets the folder that contains name, nil for start,
// and may return [fs.SkipDir] and [fs.SkipAll]. left states what was too large to be searched.
func (w *Workspace) walk(ctx context.Context, tool, start string, fn func(name string, d fs.DirEntry, in *os.Root) error) (left string, err error) {
	start = filepath.ToSlash(start)
	info, err := w.root.Stat(start)
	if err != nil {
		return "", w.coded(start, err)
	}
	k := &walk{w: w, start: start, fn: fn, ignored: w.ignoredFrom(start)}
	if w.o.Hides != nil {
		if k.hides, err = w.o.Hides(ctx, tool, w.dir, w.abs(start)); err != nil {
			return "", err
		}
	}
	err = k.visit(ctx, start, fs.FileInfoToDirEntry(info), nil, 0)
	if errors.Is(err, fs.SkipAll) || errors.Is(err, fs.SkipDir) {
		err = nil
	}
	if k.hidden > 0 {
		k.left += fmt.Sprintf("\n[%d files or folders are not searched: rules of the permissions are about reading them]", k.hidden)
	}
	return k.left, err
}

// abs returns the absolute path of an entry of a walk.
func (w *Workspace) abs(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(w.dir, name)
}

// visit calls fn for name and everything below it. Errors: those of fn; [fs.SkipDir] if the siblings of name are not
// wanted; ctx's cause.
func (k *walk) visit(ctx context.Context, name string, d fs.DirEntry, in *os.Root, depth int) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case name == k.start:
	case d.IsDir() && d.Name() == ".git", d.Name() == team.ClusterDir, k.ignored.match(name, d.IsDir()):
		return nil
	case k.hides != nil && k.hides(k.w.abs(name)):
		k.hidden++
		return nil
	}
	if d.IsDir() {
		k.ignored.enter(name)
	}
	err := k.fn(name, d, in)
	switch {
	case d.IsDir() && errors.Is(err, fs.SkipDir):
		return nil
	case err != nil || !d.IsDir():
		return err
	case depth == maxDepth:
		k.leave("what lies deeper than %d folders, below %s, was left out", maxDepth, name)
		return nil
	}
	entries, below, err := k.entries(name)
	if err != nil || below == nil {
		return err
	}
	defer below.Close() // nothing was written
	prefix := ""
	if name != "." {
		prefix = name + "/"
	}
	for _, e := range entries {
		err := k.visit(ctx, prefix+e.Name(), e, below, depth+1)
		if errors.Is(err, fs.SkipDir) && !errors.Is(err, fs.SkipAll) {
			break
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// entries lists a folder in the order of names, and opens it; nil if it is unreadable. The caller closes it. Errors
// have codes.
func (k *walk) entries(name string) ([]fs.DirEntry, *os.Root, error) {
	entries, in, err := k.list(name)
	if err == nil {
		return entries, in, nil
	}
	if in != nil {
		in.Close() // nothing was written
	}
	if name == k.start {
		return nil, nil, k.w.coded(name, err)
	}
	return nil, nil, nil // closed to us, or another thing since its folder was read: a shared folder changes
}

func (k *walk) list(name string) (entries []fs.DirEntry, in *os.Root, err error) {
	dir, _, err := k.w.folder(name)
	if err != nil {
		return nil, nil, err
	}
	defer dir.Close() // it was only read
	if in, err = os.OpenRoot(descriptor(dir.Fd())); err != nil {
		return nil, nil, err
	}
	// Not dir itself: a folder opened by a root reads the metadata of each entry.
	again, err := os.Open(descriptor(dir.Fd()))
	if err != nil {
		return nil, in, err
	}
	defer again.Close() // it was only read
	entries, err = again.ReadDir(maxEntries)
	if len(entries) == maxEntries {
		k.leave("%s has %d entries or more, and only these were looked at", name, maxEntries)
	}
	if len(entries) == 0 && !errors.Is(err, io.EOF) {
		return nil, in, err
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	return entries, in, nil
}

func (k *walk) leave(format string, args ...any) {
	if k.left == "" { // the first tells enough
		k.left = "\n[" + fmt.Sprintf(format, args...) + ": narrow the search]"
	}
}

// below returns name, which is below start, relative to start.
func below(start, name string) string { return strings.TrimPrefix(name, start+"/") }
