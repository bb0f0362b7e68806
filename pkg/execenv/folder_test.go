package execenv_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentteam/pkg/execenv"
	"agentteam/pkg/execenv/toolchain"
	"agentteam/pkg/team"
	"agentteam/pkg/tool/workspace"
)

// No team works in a folder that is, holds, or lies in one of secrets: each row of the list, by its name and behind a link on
// either side, for whoever opens it, at each level.
func TestFoldersOfSecrets(t *testing.T) {
	base := t.TempDir()
	home := filepath.Join(base, "home")
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(base, "settings"))
	put(t, filepath.Join(base, "work", "main.go"), "package main\n")
	_, rows, ok := toolchain.This().Secrets()
	if len(rows) < 40 || !ok {
		t.Fatalf("there are %d rows", len(rows))
	}
	refused := func(how, dir string) {
		t.Helper()
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		for _, level := range []team.Sandbox{team.SandboxAuto, team.Unconfined} {
			s := execenv.New(execenv.Options{Sandbox: level, Cache: filepath.Join(base, "cache")})
			record := team.Team{ID: "crew", Workspace: dir}
			for who, m := range map[string]team.Member{"a reader": {}, "the leader": {AgentID: team.Leader}, "a member": {AgentID: "coder-1", Role: "coder"}} {
				ws, release, err := s.Open(t.Context(), workspace.Work{Team: record, Member: m}, workspace.Options{})
				if err == nil {
					ws.Close()
					release()
				}
				if !errors.Is(err, team.InvalidArgument) || !strings.Contains(err.Error(), "secrets") || !strings.Contains(team.HintOf(err), "--workspace DIR") {
					t.Errorf("%s: %s, sandbox %s, %s: %v", how, dir, level, who, err)
				}
			}
			if err := s.Check(t.Context(), team.Policy{Sandbox: level}, dir); !errors.Is(err, team.InvalidArgument) || !strings.Contains(err.Error(), "secrets") {
				t.Errorf("%s: a check of %s with sandbox %s: %v", how, dir, level, err)
			}
		}
	}
	for _, row := range rows {
		refused("is", row)
		refused("lies in", filepath.Join(row, "deep", "down"))
		refused("holds", filepath.Dir(row))
		link := filepath.Join(base, "link")
		if err := os.Symlink(row, link); err != nil {
			t.Fatal(err)
		}
		refused("a link to", link)
		refused("behind a link", filepath.Join(link, "deep"))
		elsewhere := filepath.Join(base, "elsewhere", "kept")
		if err := errors.Join(os.Remove(link), os.RemoveAll(row), os.MkdirAll(elsewhere, 0o700), os.Symlink(elsewhere, row)); err != nil {
			t.Fatal(err)
		}
		refused("is where the row leads", elsewhere)
		refused("holds where the row leads", filepath.Dir(elsewhere))
		if err := errors.Join(os.Remove(row), os.RemoveAll(elsewhere)); err != nil {
			t.Fatal(err)
		}
	}
	refused("is the home", home)
	for _, free := range []string{filepath.Join(base, "work"), filepath.Join(home, "src", "ssh"), filepath.Join(home, ".sshx"), filepath.Join(home, "src", ".claude", "worktrees", "one")} {
		if err := execenv.CheckFolder(free); err != nil {
			t.Errorf("%s: %v", free, err)
		}
	}
	for dir, want := range map[string]bool{"/home/other/.ssh": true, "/home/other/.aws/x": true, "/root/.config/gh": true, "/home/other/src": false, "/home/other": false, "/srv/.ssh": false} {
		if err := execenv.CheckFolder(dir); (err != nil) != want {
			t.Errorf("another user's %s: %v", dir, err)
		}
	}
}
