package execenv

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"agentteam/pkg/execenv/sandbox"
	"agentteam/pkg/execenv/toolchain"
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

// acquire locks a folder for an open workspace until free is called, after cleaning it; alone: no workspace of any process has it.
func acquire(dir string, clean func(alone bool)) (free func()) {
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

// mostBuilds bounds the cache of a repository after trimming, in bytes.
const mostBuilds = 4 << 30

// builds creates and returns the cache of builds and downloads of a team's repository. All of this user's teams on it share one.
func (s *Source) builds(t team.Team) (string, error) {
	builds, err := s.cached("builds")
	if err != nil {
		return "", err
	}
	dir := filepath.Join(builds, s.repository(t))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", unmade("the cache of builds", builds, err)
	}
	now := time.Now()
	_ = os.Chtimes(dir, now, now) // else it is taken for unused a little earlier
	return dir, nil
}

// repository returns a name for a team's repository on this machine: from the folder with its git data, which linked worktrees share,
// else the workspace, or the team. A file in place of .git counts only if that repository made the worktree, so no folder can choose
// another's cache.
func (s *Source) repository(t team.Team) string {
	dir, err := s.Folder(t)
	if err == nil {
		dir, err = filepath.Abs(dir)
	}
	if err == nil {
		_, err = os.Stat(dir)
	}
	if err != nil {
		return t.Unique()
	}
	of := realOf(dir)
	switch r := repositoryOf(dir); len(r.dirs) {
	case 0:
	case 1:
		of = r.dirs[0]
	default: // a linked worktree
		of = realOf(r.dirs[1])
	}
	name := filepath.Base(strings.TrimSuffix(of, "/.git"))
	if s.o.Dir != "" && t.Workspace != dir {
		of += "\x00" + t.Workspace // the folder of this process serves teams of other repositories, too
	}
	sum := sha256.Sum256([]byte(of))
	return fmt.Sprintf("%.40s-%x", name, sum[:8])
}

// trim returns a function that bounds a cache, once an hour. The time of its lock is that of the last trimming.
func trim(dir string) func(alone bool) {
	return func(alone bool) {
		info, err := os.Stat(lockOf(dir))
		if now := time.Now(); err == nil && now.Sub(info.ModTime()) > sweepEach && os.Chtimes(lockOf(dir), now, now) == nil {
			_ = toolchain.Trim(dir, mostBuilds, alone) // it can be read, or the commands cannot use it either
		}
	}
}
