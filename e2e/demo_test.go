package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The demo is the same in every folder, whatever team that and the folder for temporary files have
// settings and roles for.
func TestDemoInAnyFolder(t *testing.T) {
	t.Parallel()
	temporary := t.TempDir()
	c := &cluster{t: t, dir: t.TempDir(), env: append(environ(), "AGENTTEAM_ISOLATION=worktree", "TMPDIR="+temporary)}
	if out, err := exec.Command("git", "init", "-q", c.dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	const settings = "isolation: worktree\nleader: {delegate: true}\nmodels:\n  own: {model: own, base_url: http://127.0.0.1:9/v1}\ndefault_model: own\n"
	if err := os.WriteFile(filepath.Join(temporary, "team.yaml"), []byte(settings), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"team.yaml":        settings,
		".agents/coder.md": "---\nname: coder\ndescription: Only reads.\ntools: [read_file]\n---\nYou read.\n",
		"src/x.go":         "package x\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(c.dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(c.dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	code, out, errs := exit(t, c.command("demo", "--timeout", limit.String(), "src"))
	if code != 0 || !strings.Contains(out, "the survey: "+filepath.Join(c.dir, "agentteam-demo", "SURVEY.md")) {
		t.Errorf("exit status %d\n%s\n%s", code, out, errs)
	}
}
