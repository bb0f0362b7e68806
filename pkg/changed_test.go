package pkg

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What make check tests are the packages that differ from main and their direct importers,
// by tests too, but not those of whole clusters.
func TestChangedAndItsImporters(t *testing.T) {
	script, err := filepath.Abs("../.ci/changed")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run := func(name string, args ...string) string {
		t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOWORK=off", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
		}
		return strings.Join(strings.Fields(string(out)), " ")
	}
	write("go.mod", "module house\n\ngo 1.26\n")
	write("pkg/a/a.go", "package a\n")
	write("pkg/b/b.go", "package b\n\nimport _ \"house/pkg/a\"\n")
	write("pkg/c/c.go", "package c\n\nimport _ \"house/pkg/b\"\n")
	write("pkg/d/d.go", "package d\n")
	write("pkg/d/d_test.go", "package d_test\n\nimport _ \"house/pkg/a\"\n")
	write("e2e/e_test.go", "package e2e\n\nimport _ \"house/pkg/a\"\n")
	run("git", "init", "-q", "-b", "main")
	run("git", "add", "-A")
	run("git", "-c", "user.name=n", "-c", "user.email=e", "commit", "-qm", "all: begin")
	if got := run(script); got != "" {
		t.Errorf("nothing has changed, and it prints %s", got)
	}
	write("pkg/a/testdata/x.txt", "x\n")
	if got, want := run(script), "./pkg/a ./pkg/b ./pkg/d"; got != want {
		t.Errorf("after a change of a: %s, want %s", got, want)
	}
}
