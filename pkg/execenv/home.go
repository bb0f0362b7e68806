package execenv

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"agentteam/pkg/execenv/sandbox"
	"agentteam/pkg/team"
	"agentteam/pkg/tool/safefs"
	"agentteam/pkg/tool/workspace"
)

const (
	unused    = 30 * 24 * time.Hour // homes of a team, and caches of a repository, that no process has opened for so long go
	afterEnd  = 20 * time.Hour      // homes of a team that has ended go after this time
	sweepEach = time.Hour
)

// cached returns the folder of this process's "homes" of members, or "builds".
func (s *Source) cached(name string) (string, error) {
	if s.o.Cache != "" {
		return filepath.Join(s.o.Cache, name), nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", team.Errorf(team.InvalidState, "there is no folder for the homes of members: %w", err).WithHint("set HOME or XDG_CACHE_HOME")
	}
	return filepath.Join(cache, "agentteam", name), nil
}

// home creates and returns the home of a member, which later incarnations share. Teams of one name on several servers have different
// ones.
func (s *Source) home(w workspace.Work) (string, error) {
	homes, err := s.cached("homes")
	if err != nil {
		return "", err
	}
	of := filepath.Join(homes, w.Team.Unique())
	home := filepath.Join(of, string(w.Member.AgentID))
	if err := os.MkdirAll(home, 0o700); err != nil {
		return "", unmade("the home of "+string(w.Member.AgentID), homes, err)
	}
	now := time.Now()
	_ = os.Chtimes(of, now, now) // else it is taken for unused a little earlier
	s.sweep(now)
	return home, nil
}

func unmade(what, below string, err error) error {
	return team.Errorf(team.InvalidState, "%s: %w", what, err).WithHint("make %s writable for the user of this process, or set XDG_CACHE_HOME", below)
}

// occupy locks a folder for an open workspace until free is called, after cleaning it; alone: no workspace of any process has it.
func occupy(dir string, clean func(alone bool)) (free func()) {
	lock, err := os.OpenFile(lockOf(dir), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return func() {}
	}
	clean(syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil)
	_ = syscall.Flock(int(lock.Fd()), syscall.LOCK_SH) // waits while another cleans it; without the lock it may be cleaned too early
	return func() { lock.Close() }
}

func lockOf(dir string) string { return dir + ".lock" }

// clear returns a function that removes the temporary files of earlier commands with a home.
func clear(home string) func(alone bool) {
	return func(alone bool) {
		if alone {
			_ = remove(filepath.Dir(home), sandbox.Temp(filepath.Base(home))) // what stays is removed with the home
		}
	}
}

// Forget removes the homes of a deleted team, none of whose members runs. A failed removal is repeated later, as of an unused home.
func (s *Source) Forget(t team.Team) {
	homes, err := s.cached("homes")
	if err == nil {
		err = remove(homes, t.Unique())
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.o.Logger.Warn("homes of members were not removed", "team", t.ID, "err", err)
	}
}

// Ended marks the homes of a team for removal within a day, unless a process opens one again. It does not block.
func (s *Source) Ended(t team.Team) {
	homes, err := s.cached("homes")
	if err != nil {
		return
	}
	due := time.Now().Add(afterEnd - unused)
	if os.Chtimes(filepath.Join(homes, t.Unique()), due, due) == nil {
		time.AfterFunc(afterEnd+sweepEach, func() { s.sweep(time.Now()) }) // by this process, if it still runs
	}
}

// remove removes the entry of a folder with that name.
func remove(dir, name string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return safefs.RemoveAll(root, name)
}

// sweep removes, once an hour, the homes and caches that no process has opened for long.
func (s *Source) sweep(now time.Time) {
	last := s.swept.Load()
	due := now.Sub(time.Unix(last, 0)) >= sweepEach && s.swept.CompareAndSwap(last, now.Unix())
	for _, name := range []string{"homes", "builds"} {
		if dir, err := s.cached(name); err == nil && due {
			tidy(dir, now.Add(-unused))
		}
	}
}

// tidy removes the older folders in dir that no process has open, nor a folder in them.
func tidy(dir string, since time.Time) {
	all, _ := os.ReadDir(dir) // what cannot be read stays
	for _, d := range all {
		info, err := d.Info()
		if err != nil || !d.IsDir() || !info.ModTime().Before(since) {
			continue
		}
		at := filepath.Join(dir, d.Name())
		inner, _ := filepath.Glob(lockOf(filepath.Join(at, "*")))
		if !slices.ContainsFunc(append(inner, lockOf(at)), locked) {
			_ = errors.Join(remove(dir, d.Name()), os.RemoveAll(lockOf(at))) // the next process tries again
		}
	}
}

// locked reports whether a process holds a lock; a missing one is not held.
func locked(name string) bool {
	f, err := os.Open(name)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	defer f.Close()
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil
}
