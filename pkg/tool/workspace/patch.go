package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"agentteam/pkg/team"
	"agentteam/pkg/tool"
	"agentteam/pkg/tool/patch"
)

const patchDescription = `Change files by a patch: all of them or none. It is refused if a file has changed since you read it. Format:
*** Begin Patch
*** Update File: path
*** Move to: new path (optional)
@@ a line above the place, such as a function (optional)
 an unchanged line
-a removed line
+an added line
*** Add File: path
+each of its lines
*** Delete File: path
*** End Patch
Give three unchanged lines before and after each change.`

// patched is what a patch makes of one file.
type patched struct {
	name     string
	info     fs.FileInfo // before; nil: there is none
	mode     fs.FileMode // of a file that is made; 0: the default
	old, now string
	gone     bool
}

// patch is edit_file with a patch. Errors: those of an edit and of [patch.Parse] and [patch.File.Apply]. All files are
// judged before the first is written; if a write fails, the files that were written become as they were.
func (w *Workspace) patch(ctx context.Context, text string) (tool.Output, error) {
	files, err := patch.Parse(text)
	if err != nil {
		return tool.Output{}, err
	}
	w.editing.Lock()
	defer w.editing.Unlock()
	var all []patched
	for _, f := range files {
		of, err := w.patchOf(f)
		if err != nil {
			return tool.Output{}, err
		}
		all = append(all, of...)
	}
	if len(all) == 0 {
		return tool.Output{}, team.Errorf(team.InvalidArgument, "patch: it names no file")
	}
	var made []team.Change
	said := &strings.Builder{}
	for i, p := range all {
		c := w.keeps(ctx, p.name, p.info, p.old, p.info != nil)
		if err := w.put(p); err != nil {
			return tool.Output{}, w.takeBack(all[:i], err)
		}
		if c != nil && !p.gone {
			c.After = team.DigestOf(p.now)
		}
		if c != nil {
			made = append(made, team.Change(*c))
		}
		fmt.Fprintf(said, "%s %s%s\n", p.what(), p.name, diff(p.old, p.now))
	}
	if len(made) > 0 {
		tool.Note(ctx, func(a *team.Account) { a.Change, a.Also = &made[0], made[1:] })
	}
	var written []string
	for _, p := range all {
		if !p.gone {
			written = append(written, p.name)
		}
	}
	return tool.Output{Value: strings.TrimSuffix(said.String(), "\n") + w.onEdit(ctx, written...), Effects: w.touched(all[0].name)}, nil
}

func (p patched) what() string {
	switch {
	case p.gone:
		return "deleted"
	case p.info == nil:
		return "made"
	}
	return "changed"
}

// patchOf returns what f makes of its file, and of the file at its new path.
func (w *Workspace) patchOf(f patch.File) (all []patched, err error) {
	if f.New {
		p, err := w.absent(f.Path)
		p.now = f.Text
		return []patched{p}, err
	}
	p := patched{gone: f.Gone || f.To != ""}
	if p.name, err = w.local(f.Path); err != nil {
		return nil, err
	}
	if p.old, p.info, err = w.readWhole(p.name); err != nil {
		return nil, err
	}
	if err := errors.Join(w.fresh(p.name, p.info, false), w.mayPut(p.name)); err != nil {
		return nil, err
	}
	if f.Gone {
		return []patched{p}, nil
	}
	if p.now, err = f.Apply(p.old); err != nil || f.To == "" {
		return []patched{p}, err
	}
	to, err := w.absent(f.To)
	to.now, to.mode, p.now = p.now, p.info.Mode().Perm(), ""
	return []patched{to, p}, err // the new one first: nothing is lost between
}

// absent returns the patch of a file that must not exist.
func (w *Workspace) absent(at string) (p patched, err error) {
	if p.name, err = w.local(at); err != nil {
		return p, err
	}
	if _, err := w.root.Lstat(p.name); err == nil {
		return p, team.Errorf(team.Conflict, "%s is there already", p.name).WithHint("update it, or write it whole by write_file")
	}
	return p, w.mayPut(p.name)
}

// mayPut returns why a file may not be written, or nil; replace asks again right before the write.
func (w *Workspace) mayPut(name string) error {
	target, err := w.follow(filepath.ToSlash(name))
	if err != nil {
		return err
	}
	return w.mayWrite(target)
}

// put makes one change of a patch.
func (w *Workspace) put(p patched) error {
	if !p.gone {
		if err := w.replace(p.name, []byte(p.now), p.info); err != nil || p.mode == 0 {
			return err
		}
		if err := w.root.Chmod(p.name, p.mode); err != nil {
			return w.coded(p.name, err)
		}
		return nil
	}
	in, real, err := w.parent(filepath.ToSlash(p.name))
	if err != nil {
		return err
	}
	defer in.Close() // nothing was written through it
	if err := w.mayWrite(real); err != nil {
		return err
	}
	if !unchanged(in, path.Base(real), p.info) {
		return team.Errorf(team.Conflict, "%s was changed meanwhile, or is a link", p.name).WithHint("read it again")
	}
	if err := in.Remove(path.Base(real)); err != nil {
		return w.coded(p.name, err)
	}
	w.know(p.name, nil)
	return nil
}

// takeBack undoes the changes that a patch has made before err, and returns err with those that could not be.
func (w *Workspace) takeBack(made []patched, err error) error {
	var left []string
	for _, p := range made {
		now, statErr := w.root.Lstat(p.name)
		back := patched{name: p.name, now: p.old, gone: p.info == nil, info: now}
		if p.gone {
			back.mode = p.info.Mode().Perm()
		}
		if p.gone != errors.Is(statErr, fs.ErrNotExist) || w.put(back) != nil {
			left = append(left, p.name)
		}
	}
	if len(left) > 0 {
		return team.Errorf(team.CodeOf(err), "%w; these files of the patch are changed all the same: %s", err, strings.Join(left, ", "))
	}
	return team.Errorf(team.CodeOf(err), "%w; no file of the patch was changed", err).WithHint("%s", team.ModelHintOf(err))
}
