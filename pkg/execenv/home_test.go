package execenv

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentteam/pkg/team"
	"agentteam/pkg/tool/workspace"
)

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A repository is the folder of its git data. A folder that only claims to be of a repository is another one.
func TestRepository(t *testing.T) {
	base := t.TempDir()
	at := func(name string) string { return filepath.Join(base, name) }
	write(t, at("main/.git/HEAD"), "ref: refs/heads/main\n")
	write(t, at("main/sub/f"), "")
	write(t, at("main/.git/worktrees/w/gitdir"), at("linked/.git")+"\n")
	write(t, at("linked/.git"), "gitdir: "+at("main/.git/worktrees/w")+"\n")
	write(t, at("liar/.git"), "gitdir: "+at("main/.git/worktrees/w")+"\n")
	write(t, at("plain/f"), "")
	write(t, at("plain/main/f"), "")
	write(t, at("link/f"), "")
	for link, to := range map[string]string{"link/.git": "main/.git", "alias": "main"} {
		if err := os.Symlink(at(to), at(link)); err != nil {
			t.Fatal(err)
		}
	}
	s := New(Options{Cache: at("cache")})
	in := func(dir string) string { return s.repository(team.Team{ID: "crew", Workspace: dir}) }
	main := in(at("main"))
	if !strings.HasPrefix(main, "main-") || len(main) != len("main-")+16 {
		t.Errorf("the main checkout: %s", main)
	}
	for _, same := range []string{"linked", "main/sub", "alias", "alias/sub"} {
		if got := in(at(same)); got != main {
			t.Errorf("%s is %s, want %s", same, got, main)
		}
	}
	others := []string{main}
	for _, other := range []string{"liar", "plain", "plain/main", "link", "gone"} {
		got := in(at(other))
		if slices.Contains(others, got) {
			t.Errorf("%s has the cache of another: %s in %q", other, got, others)
		}
		others = append(others, got)
	}
	if gone := team.Team(team.Team{ID: "crew", Workspace: at("gone"), CreatedAt: time.Unix(2, 0)}); s.repository(gone) == in(at("gone")) {
		t.Error("teams without a folder here share a cache")
	}
	pool := New(Options{Dir: at("main")})
	here, there := pool.repository(team.Team{Workspace: at("main")}), pool.repository(team.Team{Workspace: "/elsewhere/other"})
	if here != main || there == main || there == pool.repository(team.Team{Workspace: "/elsewhere/third"}) {
		t.Errorf("in a pool: %s, %s", here, there)
	}
}

// Homes of a team that has ended go within a day, those of another team later, and none that a process has open.
func TestHomesGo(t *testing.T) {
	cache := t.TempDir()
	s := New(Options{Cache: cache})
	home := func(id team.TeamID) string {
		dir, err := s.home(workspace.Work{Team: team.Team{ID: id}, Member: team.Member{AgentID: "coder-1"}})
		if err != nil {
			t.Fatal(err)
		}
		return dir
	}
	ended, paused, open, again := home("ended"), home("paused"), home("open"), home("again")
	builds, err := s.builds(team.Team{Workspace: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	free := acquire(open, clear(open))
	for _, id := range []team.TeamID{"ended", "open", "again"} {
		s.Ended(team.Team{ID: id})
	}
	s.Ended(team.Team{ID: "never-here"})
	home("again") // for its next goal
	there := func(when string, want ...string) {
		t.Helper()
		for _, dir := range []string{ended, paused, open, again, builds} {
			if _, err := os.Stat(dir); (err == nil) != slices.Contains(want, dir) {
				t.Errorf("%s: %s is there: %v", when, dir, err == nil)
			}
		}
	}
	s.sweep(time.Now())
	there("now", ended, paused, open, again, builds)
	s.swept.Store(0)
	s.sweep(time.Now().Add(24 * time.Hour))
	there("the next day", paused, open, again, builds)
	s.sweep(time.Now().Add(24*time.Hour + time.Minute)) // not again so soon
	other, err := os.Open(lockOf(open))
	if err != nil || syscall.Flock(int(other.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
		t.Errorf("the open home is not locked: %v", err)
	}
	other.Close()
	free()
	s.sweep(time.Now().Add(26 * time.Hour))
	there("once it is closed", paused, again, builds)
	s.sweep(time.Now().Add(31 * 24 * time.Hour))
	there("a month later")
	if left, err := filepath.Glob(filepath.Join(cache, "*", "*")); len(left) > 0 || err != nil {
		t.Errorf("left: %q, %v", left, err)
	}
}

// A cache of builds that is full is trimmed when a process opens it, and once in an hour at most.
func TestTrimWhenOpened(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "builds")
	write(t, filepath.Join(dir, "go-build", "00", "old-d"), "")
	old := time.Now().Add(-50 * time.Hour)
	file := filepath.Join(dir, "go-build", "00", "old-d")
	if err := os.Truncate(file, mostBuilds+1); err != nil { // it takes no room
		t.Fatal(err)
	}
	if err := os.Chtimes(file, old, old); err != nil {
		t.Fatal(err)
	}
	open := func() bool {
		acquire(dir, trim(dir))()
		_, err := os.Stat(file)
		return err == nil
	}
	if !open() {
		t.Error("it was trimmed although it was just made")
	}
	if err := os.Chtimes(lockOf(dir), old, old); err != nil {
		t.Fatal(err)
	}
	if open() {
		t.Error("a full cache is not trimmed")
	}
}
