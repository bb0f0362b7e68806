package workspace

import (
	"io/fs"
	"os"
	"sync"

	"agentteam/pkg/team"
)

// seen are the files as the agent last read or wrote them. It keeps the agent from overwriting the changes of others.
// It is lost with the process; see [Current.Resume].
type seen struct {
	mu      sync.Mutex
	files   map[string]fs.FileInfo // by absolute path, links followed
	resumed bool
	failing string // the last report of an on_edit that could not be run
}

// know records the state of a file when the agent read or wrote it; nil removes the record.
func (w *Workspace) know(name string, info fs.FileInfo) {
	if target, err := w.follow(name); err == nil {
		name = target
	}
	name = w.real + "/" + name
	w.o.seen.mu.Lock()
	defer w.o.seen.mu.Unlock()
	if w.o.seen.files == nil {
		w.o.seen.files = map[string]fs.FileInfo{}
	}
	if w.o.seen.files[name] = info; info == nil {
		delete(w.o.seen.files, name)
	}
}

// fresh returns a conflict if a file, whose present state is info, differs from the agent's record, or must says that
// there must be a record after a restart and there is none. info is nil if there is no such file.
func (w *Workspace) fresh(name string, info fs.FileInfo, must bool) error {
	target, err := w.follow(name)
	if err != nil {
		return err
	}
	w.o.seen.mu.Lock()
	known, resumed := w.o.seen.files[w.real+"/"+target], w.o.seen.resumed
	w.o.seen.mu.Unlock()
	switch {
	case info == nil:
		return nil
	case known != nil && !same(known, info):
		return team.Errorf(team.Conflict, "%s has changed since you read it", name).WithHint("somebody else may work on it: read it again")
	case known == nil && resumed && must:
		return team.Errorf(team.Conflict, "%s is there, and your process was restarted since you may have read it", name).WithHint("read it first")
	}
	return nil
}

// same reports whether a file is unchanged.
func same(was, is fs.FileInfo) bool {
	return os.SameFile(was, is) && is.ModTime().Equal(was.ModTime()) && is.Size() == was.Size()
}
