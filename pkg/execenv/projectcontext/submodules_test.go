package projectcontext

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Submodules without files are named from the workspace, those with files and what is outside of it are not.
func TestEmptySubmodules(t *testing.T) {
	top := t.TempDir()
	put := func(name, text string) {
		t.Helper()
		file := filepath.Join(top, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put(".git/HEAD", "ref: refs/heads/main\n")
	put("full/f", "x")
	put("app/full/f", "x")
	if err := os.MkdirAll(filepath.Join(top, "app/third party/库"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/", filepath.Join(top, "out")); err != nil {
		t.Fatal(err)
	}
	put(".gitmodules", `[submodule "a"]
	path = app/third party/库
	url = ../a
[submodule "b"]
path=app/gone
[submodule "c"]
	path = full
[submodule "d"]
	path = app/full
	path = "app/quo\"ted"
[submodule "e"]
	path = ../outside
	path = /abs
	path = out/gone
	path = other
# path = no
	path = line break
	path = `+strings.Repeat("long/", 50)+`
`)
	run := func(dir string) string {
		return strings.Join(Inspect(t.Context(), dir, bash(dir), nil).Submodules, "|")
	}
	for dir, want := range map[string]string{"": `app/third party/库|app/gone|app/quo"ted|other`, "app": `third party/库|gone|quo"ted`, "full": ""} {
		if got := run(filepath.Join(top, dir)); got != want {
			t.Errorf("in %q: %s, want %s", dir, got, want)
		}
	}
	put(".gitmodules", strings.Repeat("path = app/gone\n", 100))
	if n := strings.Count(run(top), "gone"); n != 20 {
		t.Errorf("%d are named", n)
	}
}
