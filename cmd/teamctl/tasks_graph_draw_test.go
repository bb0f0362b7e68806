package main

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"agentteam/pkg/team"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestDrawings(t *testing.T) {
	g := team.GraphOf(boardOf(
		node("T-001", team.Completed, "写一个测试 🚀"),
		node("T-002", team.Cancelled, `"quotes" <b> [x] (y) {z} \ #1 & %% 100%`),
		node("T-003", team.Pending, "waits for what is given up", "T-001", "T-002"),
		node("T-004", team.InProgress, "`code` and \x1b[31mcolour\x07 \u202eturned", "T-001"),
		node("T-005", team.Pending, "waits for what is under way", "T-004"),
		node("T-006", team.Failed, ""),
		node("T-007", team.Pending, "two\nlines\tand a tab"),
		node("T-008", team.Pending, "last", "T-003", "T-005", "T-006"),
		node("T-010", team.Pending, "its dependency cannot be read", "T-009"),
		node("T-1000", team.Completed, "done though it waited for what was given up", "T-002"),
	))
	for file, got := range map[string]string{"tasks.dot": dot(g), "tasks.mmd": mermaid(g)} {
		golden := filepath.Join("testdata", "graph", file)
		if *update {
			if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s is another (go test -update accepts it):\n%s", golden, got)
		}
	}
}
