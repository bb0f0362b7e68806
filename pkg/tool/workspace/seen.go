package workspace

import (
	"io/fs"
	"os"
	"sync"

	"agentteam/pkg/team"
)

// seen are the files as the agent knows them: as it has read or written them last. It keeps
// the agent from overwriting what another has written meanwhile. It is lost with the
// process; see [Current.Resume].
type seen struct {
	mu      sync.Mutex
	files   map[string]fs.FileInfo // by absolute path, links followed
	resumed bool
}

// know notes how a file was when the agent read or wrote it; with nil it is forgotten.
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

// fresh returns a conflict if a file, which is now as info says, is another than the agent
// knows, or if the agent must know it after a restart and does not. info is nil if there is
// no such file.
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

// same reports whether a file is as it was.
func same(was, is fs.FileInfo) bool {
	return os.SameFile(was, is) && is.ModTime().Equal(was.ModTime()) && is.Size() == was.Size()
}
