package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Code that moves takes its mutants along, or they would be lost unnoticed until
// somebody runs them.
func TestPatchesApply(t *testing.T) {
	t.Chdir("..")
	all, err := load(patches)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := copyTree(dir); err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		t.Run(m.name, func(t *testing.T) {
			if err := m.plant(dir); err != nil {
				t.Fatal(err)
			}
			patch, err := filepath.Abs(m.patch)
			if err != nil {
				t.Fatal(err)
			}
			if out, err := command(t.Context(), dir, "git", "apply", "--reverse", patch).CombinedOutput(); err != nil {
				t.Fatalf("the patch cannot be taken back: %v\n%s", err, out)
			}
		})
	}
}

func TestJudge(t *testing.T) {
	m := mutant{test: "TestX"}
	for name, tt := range map[string]struct{ out, want string }{
		"failed":         {`{"Action":"output","Test":"TestX","Output":"x_test.go:1: two won\n"}` + "\n" + `{"Action":"fail","Test":"TestX"}`, ""},
		"passed":         {`{"Action":"pass","Test":"TestX"}`, "passes"},
		"another failed": {`{"Action":"fail","Test":"TestY"}`, "was not run"},
		"not there":      {`{"Action":"output","Output":"no tests to run\n"}` + "\n" + `{"Action":"pass"}`, "was not run"},
		"not built":      {`{"Action":"build-fail"}`, "was not run"},
		"hung": {`{"Action":"output","Test":"TestX","Output":"=== RUN\n"}` + "\n" + `{"Action":"output","Test":"TestX","Output":"panic: test timed out\n"}` +
			"\n" + `{"Action":"fail","Test":"TestX"}`, "hangs"},
	} {
		t.Run(name, func(t *testing.T) {
			err := m.judge([]byte(tt.out), errors.New("exit status 1"))
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("judge = %v, want one with %q", err, tt.want)
			}
		})
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	if _, err := load(dir); err == nil {
		t.Error("a folder without patches is taken")
	}
	if err := os.WriteFile(dir+"/a.patch", []byte("Bug: none\n--- a/x\n+++ b/x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := load(dir); err == nil || !strings.Contains(err.Error(), "no header") {
		t.Errorf("a patch that names no test: %v", err)
	}
}
