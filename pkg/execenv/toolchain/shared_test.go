package toolchain

import (
	"os"
	"path/filepath"
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

// A link that a member has put into the cache leads Furnish and Trim nowhere else.
func TestCacheIsPlanted(t *testing.T) {
	t.Parallel()
	cache, outside := t.TempDir(), t.TempDir()
	aged(t, outside+"/victim", 10, 100*time.Hour)
	aged(t, cache+"/big", 10, time.Hour)
	if err := os.Symlink(outside, cache+"/tool"); err != nil {
		t.Fatal(err)
	}
	g := Grant{home: t.TempDir(), cache: cache, folders: []string{"tool/x"}}
	if err := g.Furnish(); err == nil {
		t.Error("a link out of the cache is not reported")
	}
	if err := Trim(cache, 1); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(outside); err != nil || len(left) != 1 {
		t.Errorf("outside of the cache: %v, %v", left, err)
	}
}

// A cache that is full is emptied, and no other.
func TestTrim(t *testing.T) {
	t.Parallel()
	const unit = 100 << 10
	for most, want := range map[int64]bool{2 * unit: true, 2*unit - 1: false} {
		cache := t.TempDir()
		aged(t, cache+"/go-build/00/old", unit, 50*time.Hour)
		aged(t, cache+"/mod/m@v1/a.go", unit, 90*time.Hour)
		if err := os.Chmod(cache+"/mod/m@v1", 0o500); err != nil { // as the go command leaves modules
			t.Fatal(err)
		}
		if err := Trim(cache, most); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"go-build", "mod/m@v1/a.go"} {
			if isThere(filepath.Join(cache, name)) != want {
				t.Errorf("at most %d bytes: %s is there: %v, want %v", most, name, !want, want)
			}
		}
		_ = os.Chmod(cache+"/mod/m@v1", 0o700) // for the end of the test, if it is there
	}
	if err := Trim(t.TempDir()+"/none", 1); err == nil {
		t.Error("no cache is trimmed")
	}
}
