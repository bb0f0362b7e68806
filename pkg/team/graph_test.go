package team_test

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"agentteam/pkg/team"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func boardOf(tasks ...team.Task) []team.TaskView { return team.View(tasks) }

func node(id team.TaskID, s team.TaskStatus, title string, deps ...team.TaskID) team.Task {
	t := team.NewTask{Title: title, Dependencies: deps}.Task(id, "leader", at)
	t.Status = s
	return t
}

func TestGraph(t *testing.T) {
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
	for file, got := range map[string]string{"graph.dot": g.DOT(), "graph.mmd": g.Mermaid()} {
		golden := filepath.Join("testdata", file)
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

func TestGraphOfNothing(t *testing.T) {
	if g := team.GraphOf(nil); g.Nodes == nil || g.Edges == nil {
		t.Errorf("the graph of no task is %+v", g)
	}
}

// The board lets no cycle in; a bucket that was written to by hand may hold one.
func TestGraphOfCycle(t *testing.T) {
	g := team.GraphOf(boardOf(
		node("T-001", team.Pending, "a", "T-003"), node("T-002", team.Pending, "b", "T-001"), node("T-003", team.Pending, "c", "T-002", "T-003"),
	))
	if len(g.Nodes) != 3 || len(g.Edges) != 4 {
		t.Errorf("the graph is %+v", g)
	}
}

// Each task comes after all that it waits for, also where a short and a long way
// lead to it.
func TestGraphOrder(t *testing.T) {
	g := team.GraphOf(boardOf(
		node("T-001", team.Pending, "last", "T-002", "T-004"), node("T-002", team.Pending, "third", "T-003"),
		node("T-003", team.Pending, "second", "T-004"), node("T-004", team.Pending, "first"),
	))
	var order []team.TaskID
	for _, n := range g.Nodes {
		order = append(order, n.ID)
	}
	if want := []team.TaskID{"T-004", "T-003", "T-002", "T-001"}; !slices.Equal(order, want) {
		t.Errorf("the order is %v, want %v", order, want)
	}
}

func TestGraphOfChain(t *testing.T) {
	chain := []team.Task{node("T-001", team.Pending, "x")}
	for n := 2; n <= 1000; n++ {
		chain = append(chain, node(team.MakeTaskID(n), team.Pending, "x", team.MakeTaskID(n-1)))
	}
	g := team.GraphOf(boardOf(chain...))
	if last := g.Nodes[999]; last.ID != "T-1000" || last.Depth != 999 {
		t.Errorf("the last node is %+v", last)
	}
}
