package toolchain

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// aged writes a file that was last used a while ago.
func aged(t *testing.T, name string, size int, ago time.Duration) {
	t.Helper()
	at := time.Now().Add(-ago)
	err := os.MkdirAll(filepath.Dir(name), 0o700)
	if err == nil {
		err = os.WriteFile(name, make([]byte, size), 0o600)
	}
	if err == nil {
		err = os.Chtimes(name, at, at)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func isThere(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

// A cache begins once as a copy of what the user has used last. What members do to it reaches nothing of the user's.
func TestCopies(t *testing.T) {
	t.Parallel()
	user, home, cache := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "builds")
	const unit = 100 << 10
	aged(t, user+"/p/new", unit, time.Hour)
	aged(t, user+"/p/sub/older", unit, 2*time.Hour)
	aged(t, user+"/p/oldest", unit, 3*time.Hour)
	aged(t, user+"/p/unfinished", unit, 0)
	aged(t, user+"/secret", 1, time.Hour)
	if err := os.Symlink(user+"/secret", user+"/p/link"); err != nil {
		t.Fatal(err)
	}
	g := Grant{home: home, cache: cache, folders: []string{"tool", "other"}, copies: []seed{{user + "/p", "tool/p", 5 * unit / 2}, {user + "/none", "tool/none", unit}}}
	var all sync.WaitGroup
	for range 4 { // processes of one repository
		all.Go(func() {
			if err := g.Populate(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for name, want := range map[string]bool{"tool/p/new": true, "tool/p/sub/older": true, "tool/p/oldest": false, "tool/p/unfinished": false, "tool/p/link": false, "other": true} {
		if isThere(filepath.Join(cache, name)) != want {
			t.Errorf("%s is there: %v, want %v", name, !want, want)
		}
	}
	if left, err := filepath.Glob(cache + "/.agentteam*"); len(left) > 0 || err != nil {
		t.Errorf("left: %q, %v", left, err)
	}
	if err := os.WriteFile(cache+"/tool/p/new", []byte("written"), 0o600); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(user + "/p/new"); err != nil || info.Size() != unit {
		t.Errorf("the user's file has changed: %v, %v", info, err)
	}
	aged(t, user+"/none/x", 1, time.Hour)
	if err := g.Populate(); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(cache + "/tool/p/new"); err != nil || string(text) != "written" || isThere(cache+"/tool/none/x") {
		t.Errorf("it is copied again: %.9q, %v", text, err)
	}
}

// A link that a member has put into the cache leads Populate and Trim nowhere else.
func TestCacheIsPlanted(t *testing.T) {
	t.Parallel()
	user, home, cache, outside := t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()
	aged(t, user+"/p/f", 1, time.Hour)
	aged(t, outside+"/victim", 10, 100*time.Hour)
	if err := os.Symlink(outside, cache+"/tool"); err != nil {
		t.Fatal(err)
	}
	g := Grant{home: home, cache: cache, folders: []string{"tool/x"}, copies: []seed{{user + "/p", "tool/p", 1 << 20}}}
	if err := g.Populate(); err == nil {
		t.Error("a link out of the cache is not reported")
	}
	if err := Trim(cache, 1, true); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(outside); err != nil || len(left) != 1 {
		t.Errorf("outside of the cache: %v, %v", left, err)
	}
}

// A cache that is full loses what was used longest ago, and nothing that may be in use.
func TestTrim(t *testing.T) {
	t.Parallel()
	const unit = 100 << 10
	full := func() string {
		cache := t.TempDir()
		aged(t, cache+"/go-build/00/old", unit, 50*time.Hour)
		aged(t, cache+"/npm/_cacache/older", unit, 60*time.Hour)
		aged(t, cache+"/ccache/0/new", unit, 3*time.Hour)
		aged(t, cache+"/go-build/01/now", unit, 0)
		aged(t, cache+"/mod/m@v1/a.go", unit, 90*time.Hour)
		aged(t, cache+"/mod/m@v1/b.go", unit, 90*time.Hour)
		if err := os.Chmod(cache+"/mod/m@v1", 0o500); err != nil {
			t.Fatal(err)
		}
		return cache
	}
	names := []string{"npm/_cacache/older", "go-build/00/old", "ccache/0/new", "go-build/01/now", "mod/m@v1/a.go"}
	for name, tt := range map[string]struct {
		most  int64
		alone bool
		left  string // of names, in order
	}{
		"not full":                    {7 * unit, true, "yyyyy"},
		"full":                        {6 * unit, false, "nnnyy"},
		"full, and alone":             {6 * unit, true, "nnnny"},
		"the rest is in use":          {2 * unit, false, "nnnyy"},
		"the rest is of use as whole": {4 * unit, true, "nnnnn"},
	} {
		cache := full()
		if err := Trim(cache, tt.most, tt.alone); err != nil {
			t.Fatal(err)
		}
		left := ""
		for _, n := range names {
			left += map[bool]string{true: "y", false: "n"}[isThere(filepath.Join(cache, n))]
		}
		if left != tt.left {
			t.Errorf("%s: %s left, want %s", name, left, tt.left)
		}
		_ = os.Chmod(cache+"/mod/m@v1", 0o700) // for the end of the test, if it is there
	}
	if err := Trim(t.TempDir()+"/none", 1, true); err == nil {
		t.Error("no cache is trimmed")
	}
}
