package workspace

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"agentteam/pkg/team"
	"agentteam/pkg/tool"
	"agentteam/pkg/tool/command"
	"agentteam/pkg/tool/dialect"
	"agentteam/pkg/tool/safefs"
)

// Options of a workspace; the zero value is the default.
type Options struct {
	// Stored opens a stored text by its reference for read_file, which then takes one
	// as a path. Errors: not_found, invalid_argument, unavailable. Default: there is none.
	Stored func(ctx context.Context, ref string) (io.ReadCloser, error)

	// Keep stores the whole of an output that is too long to be shown and returns its
	// reference, for Stored. Errors: unavailable. Default: the middle is lost.
	Keep func(ctx context.Context, text string) (ref string, err error)

	// Writable returns why write_file and edit_file may not write a file, or nil. The name
	// is relative to the folder. Default: they may write all of them.
	Writable func(name string) error

	// Hides returns what reports of paths, absolute ones, that a rule is about reading them by a tool in the folder dir: a search
	// from start does not show them. nil, by default and as an answer: it may show all.
	Hides func(ctx context.Context, tool, dir, start string) (func(path string) bool, error)

	// Kept are files and folders, absolute, which no tool may write: what programs outside of the
	// sandbox execute or obey. What lies in a folder .git never may be.
	Kept []string

	// Shown is that of the [Tree].
	Shown map[string]string

	// Allowed is that of each command, see [command.Command].
	Allowed func() (until time.Time, moved <-chan struct{})

	// Begin runs what is given beside the agent's conversation: a command in the background, whose
	// output goes to out. run returns how that has ended, and ends soon after its context does. Errors: Busy;
	// Unavailable. Default: nothing runs in the background.
	Begin Begin

	// OnEdit returns the program, with arguments, that runs after each edit of a file tool, with the file's name for
	// {file}. Its output joins the result. Default: none does.
	OnEdit func() []string

	// MayRun returns why the member's commands may not be run at this time, or nil. Default: they may.
	MayRun func() error

	// Running is called when a command of the member begins, and what it returns when that has ended. Default: no one asks.
	Running func() (ended func())

	// Shared: others write in the same folder, and nothing else tells what a task has changed. What a
	// file tool replaces is kept, and noted in the account of its call.
	Shared bool

	// Own is what [Workspace.Commands] returns, for commands that no member has written, such as git for the line. Default: the runner
	// that the workspace is opened with.
	Own command.Runner

	// ReadOnly: the caller only looks at files, so the folder need not be writable.
	ReadOnly bool

	seen *seen           // of the member, whichever workspace it works in; nil: of this one
	gone <-chan struct{} // closed when the tree is given up; nil: it is none
}

// Workspace is an open folder. It is safe for concurrent use, also with other processes that work in the same folder.
type Workspace struct {
	dir     string // absolute
	real    string // dir without symbolic links, as commands print it
	root    *os.Root
	escapes error // what root answers to a name that leads out
	runner  command.Runner
	o       Options           // with defaults
	kept    []string          // names, relative to the folder
	shown   map[string]string // by the place, relative to the folder
	editing *sync.Mutex       // held from reading a file to replacing it
}

func (o Options) withDefaults() Options {
	if o.Writable == nil {
		o.Writable = func(string) error { return nil }
	}
	if o.seen == nil {
		o.seen = &seen{}
	}
	if o.OnEdit == nil {
		o.OnEdit = func() []string { return nil }
	}
	if o.MayRun == nil {
		o.MayRun = func() error { return nil }
	}
	if o.Running == nil {
		o.Running = func() func() { return func() {} }
	}
	return o
}

// Open opens dir, which must exist and be writable. All commands run through run. The caller closes the workspace when
// its tools are no longer called. A [Source] calls Open for the folder of a team.
//
// Errors: not_found; invalid_argument if dir is not a folder; invalid_state if it cannot be read or written.
func Open(dir string, run command.Runner, opts Options) (*Workspace, error) {
	w := &Workspace{runner: run, o: opts.withDefaults(), editing: &sync.Mutex{}, shown: map[string]string{}}
	var err error
	if w.dir, err = filepath.Abs(dir); err != nil {
		return nil, team.Errorf(team.InvalidArgument, "workspace %q: %w", dir, err)
	}
	w.root, err = safefs.Root(w.dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, team.Errorf(team.NotFound, "workspace %s: there is no such folder", w.dir).WithHint("create it, or name another one")
	case errors.Is(err, fs.ErrPermission):
		return nil, team.Errorf(team.InvalidState, "workspace %s: %w", w.dir, reason(err))
	case err != nil:
		return nil, team.Errorf(team.InvalidArgument, "workspace %s: %w", w.dir, reason(err))
	}
	if !opts.ReadOnly {
		err = w.probe()
	}
	if err == nil {
		if w.real, err = filepath.EvalSymlinks(w.dir); err != nil {
			err = team.Errorf(team.Unavailable, "workspace %s: %w", w.dir, reason(err))
		}
	}
	if err != nil {
		w.root.Close()
		return nil, err
	}
	for _, dir := range []string{w.dir, w.real} {
		for _, kept := range opts.Kept {
			if name, is := within(dir, kept); is {
				w.kept = append(w.kept, name)
			}
		}
		for place, from := range opts.Shown {
			if name, is := within(dir, place); is {
				w.shown[name] = from
			}
		}
	}

	// Package os does not export this error, so it is asked for once.
	var escape *fs.PathError
	if _, err := w.root.Lstat(".."); errors.As(err, &escape) {
		w.escapes = escape.Err
	}
	return w, nil
}

// probe creates a file and removes it. Only that shows whether the folder is writable: its mode does not cover
// read-only mounts, quotas and root.
func (w *Workspace) probe() error {
	name := temporaryName("")
	f, err := w.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		err = errors.Join(f.Close(), w.root.Remove(name))
	}
	if err != nil {
		return team.Errorf(team.InvalidState, "workspace %s is not writable: %w", w.dir, reason(err)).
			WithHint("change its owner or mode, or name another folder")
	}
	return nil
}

// Close closes the folder. It does not end running commands; the context of their call does.
func (w *Workspace) Close() error { return w.root.Close() }

// Commands returns the runner of commands that no member has written.
func (w *Workspace) Commands() command.Runner {
	if w.o.Own != nil {
		return w.o.Own
	}
	return w.runner
}

// Dir returns the absolute path of the folder.
func (w *Workspace) Dir() string { return w.dir }

// Tools returns the shell and the file tools. Their paths are relative to the folder, or absolute and inside it.
func (w *Workspace) Tools() []tool.Tool {
	return tools(func(context.Context) (*Workspace, func(), error) { return w, func() {}, nil }, w.o.Begin != nil)
}

// tools returns the tools for the workspace that use returns at each call; done is called after it. background: the
// model is shown that commands can run in the background.
func tools(use func(context.Context) (w *Workspace, done func(), err error), background bool) []tool.Tool {
	var hidden []string
	if !background {
		hidden = append(hidden, inBackground)
	}
	return dialect.Translate([]tool.Tool{
		tool.New("bash", bashDescription, shellOf(use, background), tool.Hidden(hidden...), tool.Traits{Writes: true, Yields: true, Bulky: true}),
		tool.New("read_file", readDescription, in(use, (*Workspace).read), tool.Traits{ReadOnly: true, Bulky: true, Terse: true, Reads: []string{"path"}}),
		tool.New("write_file", writeDescription, in(use, (*Workspace).write), tool.Traits{Writes: true, Bulky: true, Terse: true, Stored: []string{"content"}}),
		tool.New("edit_file", editDescription, in(use, (*Workspace).edit), tool.Hidden("edits", "patch"), tool.Traits{Writes: true, Bulky: true, Terse: true, Stored: []string{"old_string", "new_string", "edits", "patch"}}),
		tool.New("glob", globDescription, in(use, (*Workspace).glob), tool.Traits{ReadOnly: true, Bulky: true}),
		tool.New("grep", grepDescription, in(use, (*Workspace).grep), tool.Traits{ReadOnly: true, Bulky: true}),
	}, claude)
}

// in returns a tool's function that runs in the workspace that use returns.
func in[In any](use func(context.Context) (*Workspace, func(), error), run func(*Workspace, context.Context, In) (tool.Output, error)) func(context.Context, In) (tool.Output, error) {
	return func(ctx context.Context, args In) (tool.Output, error) {
		w, done, err := use(ctx)
		if err != nil {
			return tool.Output{}, err
		}
		defer done()
		return run(w, ctx, args)
	}
}
