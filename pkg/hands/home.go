package hands

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"agentteam/pkg/sandbox"
	"agentteam/pkg/team"
	"agentteam/pkg/tool/workspace"
)

// unused is for how long a home is kept that no process has opened. It has caches of builds.
const unused = 30 * 24 * time.Hour

// homes is the folder below which the members of this process have their homes.
func (s *Source) homes() (string, error) {
	if s.o.Homes != "" {
		return s.o.Homes, nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", team.Errorf(team.InvalidState, "there is no folder for the homes of members: %w", err).WithHint("set HOME or XDG_CACHE_HOME")
	}
	return filepath.Join(cache, "agentteam", "homes"), nil
}

// home returns the home of a member, and makes it. A later incarnation on this machine has the
// same. Teams of one name on several servers have different ones, by when they were made.
func (s *Source) home(w workspace.Work) (string, error) {
	homes, err := s.homes()
	if err != nil {
		return "", err
	}
	of := filepath.Join(homes, w.Team.Unique())
	home := filepath.Join(of, string(w.Member.AgentID))
	if err := os.MkdirAll(home, 0o700); err != nil {
		return "", team.Errorf(team.InvalidState, "the home of %s: %w", w.Member.AgentID, err).
			WithHint("make %s writable for the user of this process, or set XDG_CACHE_HOME", homes)
	}
	now := time.Now()
	_ = os.Chtimes(of, now, now) // else it is taken for unused a little earlier
	s.tidy.Do(func() { tidy(homes, now.Add(-unused)) })
	return home, nil
}

// occupied is a home with open workspaces.
type occupied struct {
	workspaces int
	lock       *os.File // says so to other processes; nil: it could not be had
}

// occupy notes that a workspace is open with a home, until free is called. The first one of all
// processes removes what earlier commands have left of temporary files.
func (s *Source) occupy(home string) (free func()) {
	s.homesMu.Lock()
	defer s.homesMu.Unlock()
	o := s.occupied[home]
	if o == nil {
		o = &occupied{lock: enter(home)}
		s.occupied[home] = o
	}
	o.workspaces++
	return sync.OnceFunc(func() {
		s.homesMu.Lock()
		defer s.homesMu.Unlock()
		if o.workspaces--; o.workspaces == 0 {
			o.lock.Close() // of a lock that could not be had it is an error, which says nothing
			delete(s.occupied, home)
		}
	})
}

// enter locks a home for sharing, after removing temporary files if no other process has it: a member
// works with its home, and who merges its work runs its check with it.
func enter(home string) *os.File {
	lock, err := os.OpenFile(home+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil
	}
	if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
		_ = remove(filepath.Dir(home), sandbox.Temp(filepath.Base(home))) // what stays is removed with the home
	}
	if syscall.Flock(int(lock.Fd()), syscall.LOCK_SH) != nil { // waits while another process removes them
		lock.Close()
		return nil
	}
	return lock
}

// Forget removes the homes that members of a team have on this machine. The team is deleted, and
// none of them runs. What cannot be removed is removed as unused later.
func (s *Source) Forget(t team.Team) {
	homes, err := s.homes()
	if err == nil {
		err = remove(homes, t.Unique())
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.o.Logger.Warn("homes of members were not removed", "team", t.ID, "err", err)
	}
}

// remove removes what is in a folder under a name, also folders that may not be written, such as
// those of Go's cache of modules. Commands have made it, so no link in it is followed.
func remove(dir, name string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if root.RemoveAll(name) == nil {
		return nil
	}
	_ = fs.WalkDir(root.FS(), name, func(name string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			_ = root.Chmod(name, 0o700) // the next line reports it
		}
		return nil
	})
	return root.RemoveAll(name)
}

// tidy removes the homes of teams that no process has opened since.
func tidy(homes string, since time.Time) {
	teams, _ := os.ReadDir(homes) // what cannot be read stays
	for _, t := range teams {
		if info, err := t.Info(); err == nil && t.IsDir() && info.ModTime().Before(since) {
			_ = remove(homes, t.Name()) // the next process tries again
		}
	}
}
