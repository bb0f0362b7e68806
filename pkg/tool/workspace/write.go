package workspace

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"agentteam/pkg/team"
	"agentteam/pkg/tool"
	"agentteam/pkg/tool/safefs"
)

const writeDescription = `Write a whole text file: make it, with its folders, or replace what is there, unless it has changed since you read it. To change a part of a file use edit_file.`

type writeArgs struct {
	Path    string `json:"path"`
	Content string `json:"content" jsonschema:"the whole of the file"`
}

// write is the tool write_file. Errors: permission_denied, invalid_argument (the path is a folder or goes through a
// file), conflict (the file has changed since the agent read it), unavailable (disk full).
func (w *Workspace) write(ctx context.Context, in writeArgs) (tool.Output, error) {
	name, err := w.local(in.Path)
	if err != nil {
		return tool.Output{}, err
	}
	if err := w.mayShadow(filepath.ToSlash(name)); err != nil { // what the folder has in its place is not what the agent knows
		return tool.Output{}, err
	}
	w.editing.Lock()
	defer w.editing.Unlock()
	now, err := w.root.Stat(name)
	if err != nil { // there is none, or replace says what is wrong
		now = nil
	}
	if err := w.fresh(name, now, true); err != nil {
		return tool.Output{}, err
	}
	old, known := "", false
	if now != nil && (now.Size() <= maxDiffed || w.o.Shared && now.Size() <= maxEdit) {
		// A file that has changed meanwhile is no problem: replace refuses it then.
		old, _, err = w.readWhole(name)
		known = err == nil
	}
	change := w.keeps(ctx, name, now, old, known)
	if err := w.replace(name, []byte(in.Content), now); err != nil {
		return tool.Output{}, err
	}
	change.note(ctx, in.Content)
	text := fmt.Sprintf("wrote %d bytes to %s", len(in.Content), name)
	if known {
		text += diff(old, in.Content)
	}
	return tool.Output{Value: text + w.onEdit(ctx, name), Effects: w.touched(name)}, nil
}

// touched returns the effect of a call on a file.
func (w *Workspace) touched(name string) tool.Effects {
	return tool.Effects{Touched: filepath.Join(w.dir, name)}
}

// replace replaces the content of a file with data atomically: readers see the old content or the new one. The mode
// stays; a symbolic link stays and its target is replaced. If seen is not nil, the file must still be that one,
// unchanged, else the error is conflict.
func (w *Workspace) replace(name string, data []byte, seen fs.FileInfo) error {
	target, err := w.follow(name)
	if err != nil {
		return err
	}
	if err := w.mayWrite(target); err != nil { // before a folder is made for it
		return err
	}
	if _, err := w.root.Lstat(target); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return w.coded(name, err)
	}
	if dir, _ := path.Split(target); dir != "" {
		if err := w.root.MkdirAll(strings.TrimSuffix(dir, "/"), 0o755); err != nil {
			return w.coded(name, err)
		}
	}
	in, real, err := w.parent(target)
	if err != nil {
		return err
	}
	defer in.Close() // nothing was written through it
	if err := w.mayWrite(real); err != nil {
		return err
	}
	if err := w.swap(in, path.Base(target), name, data, seen); err != nil {
		return w.coded(name, err)
	}
	written, _ := in.Lstat(path.Base(target)) // if it is gone already, nothing is known of it
	w.know(target, written)
	return nil
}

// mayWrite returns why a file may not be written, or nil. The name is without links.
func (w *Workspace) mayWrite(name string) error {
	if slices.Contains(strings.Split(name, "/"), ".git") {
		return team.Errorf(team.PermissionDenied, "%s belongs to git", name).WithHint("git itself changes what is in .git, by bash, where that may be written")
	}
	for _, kept := range w.kept {
		if _, is := within(kept, name); is {
			return team.Errorf(team.PermissionDenied, "%s is kept from members: programs outside of the sandbox go by it", name).WithHint("tell the user what is to be changed there")
		}
	}
	if err := w.mayShadow(name); err != nil {
		return err
	}
	return w.o.Writable(name)
}

// mayShadow refuses to write where files of the user are shown.
func (w *Workspace) mayShadow(name string) error {
	if place, _ := w.shows(name); place != "" {
		return team.Errorf(team.PermissionDenied, "%s is the user's, and shown here for reading", place).WithHint("if the task needs it changed, tell the user")
	}
	return nil
}

// swap is replace for a file in an open folder; name is the agent's name of the file.
func (w *Workspace) swap(in *os.Root, base, name string, data []byte, seen fs.FileInfo) error {
	old, err := in.Lstat(base)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		old = nil
	case err != nil:
		return err
	default:
		if err := safefs.Regular(name, old.Mode()); err != nil {
			return err
		}
		if err := mayReplace(name, old); err != nil {
			return err
		}
		if old.Mode().Perm()&0o222 == 0 { // a rename would not ask
			return team.Errorf(team.PermissionDenied, "%s is read-only", name)
		}
	}
	temporary := temporaryName("")
	err = writeNew(in, temporary, data, old)
	if err == nil && seen != nil && !unchanged(in, base, seen) {
		err = team.Errorf(team.Conflict, "%s was changed meanwhile", name).WithHint("read it again")
	}
	if err == nil {
		err = in.Rename(temporary, base)
	}
	if err == nil {
		return nil
	}
	if removeErr := in.Remove(temporary); removeErr != nil && !errors.Is(removeErr, fs.ErrNotExist) {
		err = fmt.Errorf("%w; %s stayed there: %w", err, temporary, reason(removeErr))
	}
	return err
}

// writeNew writes data to a new file, with the mode of old.
func writeNew(in *os.Root, name string, data []byte, old fs.FileInfo) error {
	f, err := in.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil && old != nil {
		err = f.Chmod(old.Mode().Perm()) // the umask has no say in a mode that was there
	}
	return errors.Join(err, f.Close())
}

// unchanged reports whether the file is still the one in seen. It is called right before the rename: of two agents that
// edit one file the later one gets an error, and the earlier one is not overwritten; a gap of microseconds is left.
func unchanged(in *os.Root, name string, seen fs.FileInfo) bool {
	now, err := in.Lstat(name)
	return err == nil && same(seen, now)
}

// follow returns the target of name if it is a symbolic link, or name. The root refuses names that lead out: they are
// joined as text and not cleaned, since ".." behind a linked folder means another place.
func (w *Workspace) follow(name string) (string, error) {
	target := name
	for range 40 { // as many as Linux follows
		info, err := w.root.Lstat(target)
		if err != nil || info.Mode()&fs.ModeSymlink == 0 {
			return target, nil // the error comes again where the name is used
		}
		to, err := w.root.Readlink(target)
		if err != nil {
			return "", w.coded(name, err)
		}
		if path.IsAbs(to) {
			return "", w.coded(name, w.escapes)
		}
		dir, _ := path.Split(target)
		target = dir + to
	}
	return "", w.coded(name, syscall.ELOOP)
}

func temporaryName(dir string) string { return dir + ".agentteam-" + rand.Text() + ".tmp" }
