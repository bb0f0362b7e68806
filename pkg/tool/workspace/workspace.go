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

	"agentteam/pkg/folder"
	"agentteam/pkg/team"
	"agentteam/pkg/tool"
)

// Options of a workspace; the zero value is the default.
type Options struct {
	// Environ is what bash's environment is taken from, see [Environ];
	// default os.Environ().
	Environ []string

	// Stored opens a stored text by its reference for read_file, which then takes one
	// as a path. Errors: not_found, invalid_argument, unavailable. Default: there is none.
	Stored func(ctx context.Context, ref string) (io.ReadCloser, error)

	// Writable returns why write_file and edit_file may not write a file, or nil. The name
	// is relative to the folder. Default: they may write all of them.
	Writable func(name string) error

	// Allowed returns until when commands may run, and a channel that is closed when that
	// moves. They end then although this process is frozen. Default: they may run on.
	Allowed func() (until time.Time, moved <-chan struct{})
}

// Workspace is an open folder. It is safe for concurrent use, also together with
// other processes that work in the same folder.
type Workspace struct {
	dir     string // absolute
	real    string // dir without symbolic links, as commands print it
	root    *os.Root
	escapes error    // what root answers to a name that leads out
	environ []string // of commands
	stored  func(ctx context.Context, ref string) (io.ReadCloser, error)
	allowed func() (time.Time, <-chan struct{}) // nil: always

	writable func(name string) error

	editing sync.Mutex // held from reading a file to replacing it
	seen    seen
}

// Open opens dir, which must exist and be writable. The caller closes the
// workspace when its tools are no longer called.
//
// Errors: not_found; invalid_argument if dir is not a folder; invalid_state
// if it cannot be read or written.
func Open(dir string, opts Options) (*Workspace, error) {
	w := &Workspace{stored: opts.Stored, allowed: opts.Allowed, writable: opts.Writable}
	if w.writable == nil {
		w.writable = func(string) error { return nil }
	}
	var err error
	if w.dir, err = filepath.Abs(dir); err != nil {
		return nil, team.Errorf(team.InvalidArgument, "workspace %q: %w", dir, err)
	}
	w.root, err = folder.Root(w.dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, team.Errorf(team.NotFound, "workspace %s: there is no such folder", w.dir).WithHint("create it, or name another one")
	case errors.Is(err, fs.ErrPermission):
		return nil, team.Errorf(team.InvalidState, "workspace %s: %w", w.dir, reason(err))
	case err != nil:
		return nil, team.Errorf(team.InvalidArgument, "workspace %s: %w", w.dir, reason(err))
	}
	if err := w.probe(); err != nil {
		w.root.Close()
		return nil, err
	}
	if w.real, err = filepath.EvalSymlinks(w.dir); err != nil {
		w.root.Close()
		return nil, team.Errorf(team.Unavailable, "workspace %s: %w", w.dir, reason(err))
	}
	environ := opts.Environ
	if environ == nil {
		environ = os.Environ()
	}
	w.environ = append(Environ(environ), "AGENTTEAM_WORKSPACE="+w.dir)

	// Package os does not export this error, so it is asked for once.
	var escape *fs.PathError
	if _, err := w.root.Lstat(".."); errors.As(err, &escape) {
		w.escapes = escape.Err
	}
	return w, nil
}

// probe makes a file and removes it. Only that tells whether the folder can be
// written: its mode knows nothing of read-only mounts, quotas and root.
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

// Close closes the folder. Commands that still run are not ended by it, but by
// the context of their call.
func (w *Workspace) Close() error { return w.root.Close() }

// Tools returns bash, read_file, write_file, edit_file, glob and grep. Their
// paths are relative to the folder, or absolute and inside it.
func (w *Workspace) Tools() []tool.Tool {
	return tool.Speak([]tool.Tool{
		tool.New("bash", bashDescription, w.bash, tool.Writes(), tool.Yields(), tool.Bulky()),
		tool.New("read_file", readDescription, w.read, tool.ReadOnly(), tool.Bulky()),
		tool.New("write_file", writeDescription, w.write, tool.Writes(), tool.Bulky("content")),
		tool.New("edit_file", editDescription, w.edit, tool.Writes(), tool.Bulky("old_string", "new_string")),
		tool.New("glob", globDescription, w.glob, tool.ReadOnly(), tool.Bulky()),
		tool.New("grep", grepDescription, w.grep, tool.ReadOnly(), tool.Bulky()),
	}, claude)
}
