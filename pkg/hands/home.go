package hands

import (
	"os"
	"path/filepath"
	"time"

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

// tidy removes the homes of teams that no process has opened since.
func tidy(homes string, since time.Time) {
	teams, _ := os.ReadDir(homes) // what cannot be read stays
	for _, t := range teams {
		if info, err := t.Info(); err == nil && t.IsDir() && info.ModTime().Before(since) {
			_ = os.RemoveAll(filepath.Join(homes, t.Name())) // the next process tries again
		}
	}
}
