package worktree_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"agentteam/pkg/git/mergequeue"
	"agentteam/pkg/git/worktree"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/team"
)

// A goal begins at the checkout's HEAD, and with the uncommitted changes only if that goal is to.
func TestDecideWithChanges(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte("[user]\n\tname = Ada\n\temail = ada@example.org\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	user := t.TempDir()
	cmd := exec.Command("bash", "-ec", "echo one > a.txt; git init -q; git add -A; git commit -qm first; echo two > a.txt; echo new > b.txt")
	cmd.Dir = user
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	storage, lines := brokertest.Team(t, "red"), t.TempDir()
	for goal, want := range []string{1: "one\n", 2: "two\n", 3: "two\n"} { // of a.txt; what the line has stays in it
		if goal == 0 {
			continue
		}
		record := team.Team{ID: "red", Goal: "go", GoalNumber: goal, WithChanges: 2}
		var site *mergequeue.Site
		decided, err := worktree.Decide(t.Context(), record, user, func(ctx context.Context) (_ *mergequeue.Site, err error) {
			site, err = mergequeue.At(ctx, lines, storage, record)
			return site, err
		})
		if err != nil || decided.Goal != goal || decided.Why != "" {
			t.Fatalf("goal %d: %+v, %v", goal, decided, err)
		}
		head, err := site.Bring(t.Context())
		if err != nil || string(head) != decided.Begun {
			t.Errorf("goal %d began at %s, the head is %s, %v", goal, decided.Begun, head, err)
		}
		dir := filepath.Join(t.TempDir(), "export")
		if err := site.Repo.Export(t.Context(), head, dir); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(dir, "a.txt"))
		_, added := os.Stat(filepath.Join(dir, "b.txt"))
		if err != nil || string(text) != want || (added == nil) != (want == "two\n") {
			t.Errorf("goal %d begins with %q, b.txt %v; want %q", goal, text, added, want)
		}
		if log, err := site.Repo.Log(t.Context(), head, head); err != nil || len(log) != 0 {
			t.Errorf("goal %d: %+v, %v", goal, log, err)
		}
	}
}
