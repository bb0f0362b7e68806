package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"agentteam/pkg/git/gitrepo"
	"agentteam/pkg/git/mergequeue"
	"agentteam/pkg/store/audit"
	"agentteam/pkg/team"
	"agentteam/pkg/team/blob"
	"agentteam/pkg/tool"
	"agentteam/pkg/tool/workspace"
)

// Where members share the workspace, changes by file tools are known from the accounts of their
// calls. Changes by commands are unknown.

// shares reports whether the work of a task, or of the team if id is "", was done in a folder that
// members share.
func (t *core) shares(ctx context.Context, id team.TaskID) (bool, error) {
	if id != "" {
		task, err := t.board.Get(ctx, id)
		if err != nil || task.Commit != "" {
			return false, err
		}
		record, err := t.record(ctx)
		return err == nil && !record.HasBranch(), err
	}
	_, err := mergequeue.New(t.team).Head(ctx)
	if errors.Is(err, team.NotFound) {
		return true, nil
	}
	return false, err
}

// changed is the change of a file by the selected calls: from its content before the first to its
// content after the last.
type changed struct {
	path  string
	first team.Change
	last  team.Change
	tasks []team.TaskID // that have changed it after the last
}

// stays reports whether the file, if it is there with this text, is as the last change left it.
func (c *changed) stays(text string, there bool) bool {
	return there && team.DigestOf(text) == c.last.After || !there && c.last.After == ""
}

// changes returns the files changed by calls of file tools for which of returns true, by path.
func (t *core) changes(ctx context.Context, of func(audit.Entry) bool) ([]*changed, error) {
	entries, err := audit.Read(ctx, t.team, audit.Query{})
	if err != nil {
		return nil, err
	}
	byPath := map[string]*changed{}
	var all []*changed
	for _, e := range entries {
		if e.Change == nil {
			continue
		}
		for _, made := range append([]team.Change{*e.Change}, e.Also...) {
			c := byPath[made.Path]
			switch {
			case of(e) && c == nil:
				c = &changed{path: made.Path, first: made, last: made}
				byPath[c.path], all = c, append(all, c)
			case of(e):
				c.last, c.tasks = made, nil
			case c != nil:
				c.tasks = append(c.tasks, e.Task)
			}
		}
	}
	slices.SortFunc(all, func(a, b *changed) int { return cmp.Compare(a.path, b.path) })
	return all, nil
}

// workplace is the folder that members share, on this machine.
type workplace struct {
	root  *os.Root
	tools *tool.Set // by which it is written: they obey what holds for members
	close func()
}

func (t *core) workplace(ctx context.Context) (workplace, error) {
	record, err := t.record(ctx)
	if err != nil {
		return workplace{}, err
	}
	ws, release, err := t.client.workspaces.Open(ctx, workspace.Work{Team: record}, workspace.Options{})
	if err != nil {
		return workplace{}, err
	}
	w := workplace{close: release}
	if w.root, err = os.OpenRoot(ws.Dir()); err == nil {
		w.close = func() { w.root.Close(); release() } // all is written through the tools
		w.tools, err = tool.NewSet(nil, ws.Tools()...)
	}
	if err != nil {
		w.close()
		return workplace{}, err
	}
	return w, nil
}

// now returns the content of a file; there is false if it does not exist.
func now(root *os.Root, path string) (text string, there bool, err error) {
	data, err := root.ReadFile(filepath.FromSlash(path))
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	}
	return string(data), err == nil, err
}

// before returns the earlier content of a file. Errors: InvalidState if it was not kept.
func (t *core) before(ctx context.Context, c team.Change) (string, error) {
	if c.New {
		return "", nil
	}
	if c.Before == "" {
		return "", team.Errorf(team.InvalidState, "what was in %s before was not kept", c.Path)
	}
	return blob.In(t.team.Files).Get(ctx, c.Before)
}

// diffOfFolder is [Branch.Diff] where members share the workspace: since the goal began, of one
// task or of one agent. A file that others have changed since, or that is missing, is shown by a
// line.
func (t Branch) diffOfFolder(ctx context.Context, o DiffOptions) (Diff, error) {
	d := Diff{Team: t.id(), Commits: []gitrepo.Entry{}, Files: []gitrepo.File{}}
	record, err := t.record(ctx)
	if err != nil {
		return d, err
	}
	all, err := t.changes(ctx, func(e audit.Entry) bool {
		switch {
		case o.Task != "":
			return e.Task == o.Task
		case o.Agent != "" && e.Agent != o.Agent:
			return false
		}
		return o.All || record.GoalAt == nil || !e.At.Before(*record.GoalAt)
	})
	if err != nil || len(all) == 0 {
		return d, err
	}
	w, err := t.workplace(ctx)
	if err != nil {
		return d, err
	}
	defer w.close()
	var b strings.Builder
	for _, c := range all {
		f, text := t.diffOfFile(ctx, w.root, c)
		if text == "" {
			continue
		}
		d.Files = append(d.Files, f)
		if o.Form == gitrepo.Stat {
			text = fmt.Sprintf(" %s | +%d -%d\n", inPatch(f.Path), f.Added, f.Deleted)
		}
		if d.Cut = d.Cut || b.Len()+len(text) > cmp.Or(o.Most, mostText); !d.Cut {
			b.WriteString(text)
		}
	}
	d.Text = b.String()
	return d, nil
}

// diffOfFile returns the diff of one file, "" if its content is as before; -1 lines if they cannot
// be counted.
func (t *core) diffOfFile(ctx context.Context, root *os.Root, c *changed) (gitrepo.File, string) {
	f := gitrepo.File{Path: c.path, Added: -1, Deleted: -1}
	old, err := t.before(ctx, c.first)
	if err != nil {
		return f, fmt.Sprintf("%s was changed: %s\n", inPatch(c.path), team.Line(err))
	}
	text, there, err := now(root, c.path)
	switch {
	case err == nil && there != c.first.New && text == old:
		return f, ""
	case err != nil || !c.stays(text, there):
		return f, fmt.Sprintf("%s was changed, and is another now\n", inPatch(c.path))
	}
	before, after := inPatch("a/"+c.path), inPatch("b/"+c.path)
	from := before
	if c.first.New {
		from = "/dev/null"
	}
	if !there {
		after = "/dev/null"
	}
	diff, err := udiff.ToUnified(from, after, old, udiff.Lines(old, text), 3)
	if err != nil {
		return f, fmt.Sprintf("%s was changed: %v\n", inPatch(c.path), err)
	}
	f.Added, f.Deleted = 0, 0
	_, hunks, _ := strings.Cut(diff, "\n@@")
	for l := range strings.Lines(hunks) {
		switch l[0] {
		case '+':
			f.Added++
		case '-':
			f.Deleted++
		}
	}
	return f, "diff --git " + before + " " + after + "\n" + diff
}

// inPatch returns a path as git writes it into a patch: between quotes and with escapes, if it has
// a character that would end its line or look like another.
func inPatch(path string) string {
	var b strings.Builder
	for _, c := range []byte(path) {
		switch i := strings.IndexByte("\a\b\t\n\v\f\r", c); {
		case i >= 0:
			b.WriteString(`\` + "abtnvfr"[i:i+1])
		case c == '"' || c == '\\':
			b.WriteString(`\` + string(c))
		case c < ' ' || c == 0x7f:
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	if b.Len() == len(path) {
		return path
	}
	return `"` + b.String() + `"`
}

// undoInFolder restores the files that a task has changed by file tools, all of them or none.
// Errors: InvalidState, with files and tasks, if others have changed them since, and if no change
// is known.
func (t Branch) undoInFolder(ctx context.Context, task team.Task, by team.AgentID) (team.Task, error) {
	all, err := t.changes(ctx, func(e audit.Entry) bool { return e.Task == task.ID })
	if err == nil && len(all) == 0 {
		err = team.Errorf(team.InvalidState, "%s has changed no file by write_file or edit_file: what commands change in a shared folder is not known", task.ID)
	}
	if err != nil {
		return task, err
	}
	w, err := t.workplace(ctx)
	if err != nil {
		return task, err
	}
	defer w.close()
	var later []string
	texts := make([]string, len(all))
	for i, c := range all {
		if texts[i], err = t.before(ctx, c.first); err != nil {
			return task, fmt.Errorf("undo %s: %w", task.ID, err)
		}
		text, there, err := now(w.root, c.path)
		if err != nil {
			return task, fmt.Errorf("undo %s: %w", task.ID, err)
		}
		switch {
		case c.stays(text, there):
		case there != c.first.New && text == texts[i]: // undone by a call that was killed
		case len(c.tasks) > 0:
			later = append(later, fmt.Sprintf("%s (%s)", c.path, strings.Join(team.Strings(slices.Compact(c.tasks)...), ", ")))
		default:
			later = append(later, c.path)
		}
	}
	if len(later) > 0 {
		return task, team.Errorf(team.InvalidState, "%s is not undone: changed since are %s", task.ID, strings.Join(later, ", ")).WithHint("undo the later tasks first, or change the files by hand")
	}
	for i, c := range all {
		if err := w.restore(ctx, c, texts[i]); err != nil {
			return task, fmt.Errorf("undo %s, of which a part is done: %w", task.ID, err)
		}
	}
	return t.noteUndone(ctx, task, by, team.InFolder, "its files in the folder are as they were before")
}

// restore restores the earlier content of a file.
func (w workplace) restore(ctx context.Context, c *changed, text string) error {
	if c.first.New {
		return w.remove(c.path)
	}
	arguments, err := json.Marshal(map[string]string{"path": c.path, "content": text})
	if err != nil {
		return err
	}
	if r := w.tools.Run(ctx, tool.Call{ID: "undo", Name: "write_file", Arguments: string(arguments)}); r.IsError {
		return team.Errorf(r.Code, "%s: %s", c.path, r.Content)
	}
	return nil
}

// remove removes a file, without following links.
func (w workplace) remove(name string) error {
	parts := strings.Split(name, "/")
	for i := range parts {
		at := filepath.Join(parts[:i+1]...)
		info, err := w.root.Lstat(at)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case info.Mode()&fs.ModeSymlink != 0:
			return team.Errorf(team.InvalidState, "%s is not removed: %s is a link now", name, at)
		}
	}
	return w.root.Remove(filepath.FromSlash(name))
}
