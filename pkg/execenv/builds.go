package execenv

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"agentteam/pkg/execenv/toolchain"
	"agentteam/pkg/team"
)

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
