package trust_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"agentteam/pkg/execenv/trust"
	"agentteam/pkg/team"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// A file counts as it was trusted, with the files that its keys run, by whatever path its folder is reached.
func TestStore(t *testing.T) {
	config, dir := t.TempDir(), t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", config)
	s := trust.OfUser()
	file, hook := filepath.Join(dir, "team.yaml"), filepath.Join(dir, "scripts", "x.sh")
	write(t, file, "a")
	write(t, hook, "echo")
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	w := s.Judge(file, "team.yaml", []byte("a"))
	w.Wait("branch_hook", "sh scripts/x.sh")
	w.Run("cd scripts && sh scripts/x.sh; ./scripts/none.sh")
	if err := s.Add(t.Context(), *w, false); err != nil {
		t.Fatal(err)
	}
	waits := func(path, text string) bool { return s.Judge(path, "team.yaml", []byte(text)) != nil }
	for _, path := range []string{file, filepath.Join(link, "team.yaml")} {
		if waits(path, "a") || !waits(path, "b") {
			t.Errorf("%s does not count as it was trusted", path)
		}
	}
	if !waits(filepath.Join(dir, "other.yaml"), "a") {
		t.Error("another file of the same content counts")
	}
	write(t, hook, "evil")
	if !waits(file, "a") {
		t.Error("with another script it counts")
	}
	write(t, hook, "echo")
	write(t, filepath.Join(dir, "scripts", "none.sh"), "evil")
	if !waits(file, "a") {
		t.Error("with a script that was not there it counts")
	}
	if own := filepath.Join(config, "agentteam", "team.yaml"); waits(own, "a") != true { // it is not there
		t.Error("a file that is not there counts")
	} else if write(t, own, "a"); waits(own, "a") {
		t.Error("the user's own file waits")
	}
	if err := s.Remove(t.Context(), file); err != nil || !waits(file, "a") {
		t.Errorf("after it was removed it counts, %v", err)
	}
	if err := s.Remove(t.Context(), file); !errors.Is(err, team.NotFound) {
		t.Errorf("removed again: %v", err)
	}
}

// A list that others can write, or that cannot be read, trusts nothing.
func TestStoreOfOthers(t *testing.T) {
	config := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", config)
	s, file := trust.OfUser(), filepath.Join(t.TempDir(), "team.yaml")
	write(t, file, "a")
	stored := filepath.Join(config, "agentteam", "trusted.json")
	for name, spoil := range map[string]func() error{
		"writable by others": func() error { return os.Chmod(stored, 0o666) },
		"damaged":            func() error { return os.WriteFile(stored, []byte("{"), 0o600) },
	} {
		if err := s.Add(t.Context(), *s.Judge(file, file, []byte("a")), false); err != nil {
			t.Fatal(err)
		}
		if s.Judge(file, file, []byte("a")) != nil {
			t.Fatal("it is not trusted")
		}
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		if _, err := s.List(); !errors.Is(err, team.InvalidState) || team.HintOf(err) == "" || s.Judge(file, file, []byte("a")) == nil {
			t.Errorf("%s: %v, and it counts", name, err)
		}
		if err := os.Remove(stored); err != nil {
			t.Fatal(err)
		}
	}
}

// Of files that are trusted at the same time each one is in the list.
func TestStoreAtTheSameTime(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	s, dir := trust.OfUser(), t.TempDir()
	var wg sync.WaitGroup
	for _, name := range strings.Split("abcdefgh", "") {
		wg.Go(func() {
			if err := s.Add(t.Context(), *s.Judge(filepath.Join(dir, name), name, nil), name == "a"); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	list, err := s.List()
	if err != nil || len(list) != 8 || !slices.IsSortedFunc(list, func(a, b trust.Trusted) int { return strings.Compare(a.File, b.File) }) {
		t.Errorf("%d are listed, %v", len(list), err)
	}
	if w := s.Judge(filepath.Join(dir, "a"), "a", nil); w == nil || !w.Refused {
		t.Errorf("the one that was refused: %+v", w)
	}
}

// The command that trusts a file can be given to a shell, and a password in a value is not shown.
func TestWaiting(t *testing.T) {
	for name, want := range map[string]string{"team.yaml": "team.yaml", "my team.yaml": "'my team.yaml'", "it's": `"it's"`, "a\x1b": `$'a\x1b'`} {
		if got := (trust.Waiting{File: name}).Command(); got != "teamctl trust "+want {
			t.Errorf("%q: %s", name, got)
		}
	}
	if got := (trust.Key{Name: "server", Value: "nats://u:p@h:1"}).String(); got != "server: nats://...@h:1" {
		t.Error(got)
	}
}

// A shell takes a quoted name as it is, an interactive one too.
func TestQuoted(t *testing.T) {
	for name, want := range map[string]string{"team.yaml": "team.yaml", "a b": "'a b'", "x!!/it's.yaml": `'x!!/it'\''s.yaml'`} {
		if got := trust.Quoted(name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}
