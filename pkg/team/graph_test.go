package team_test

import (
	"reflect"
	"slices"
	"testing"

	"agentteam/pkg/team"
)

func boardOf(tasks ...team.Task) []team.TaskView { return team.View(tasks) }

func node(id team.TaskID, s team.TaskStatus, title string, deps ...team.TaskID) team.Task {
	t := team.NewTask{Title: title, Dependencies: deps}.Task(id, "leader", at)
	t.Status = s
	return t
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

// places are the nodes of each depth in the order of their places, which are counted from 0.
func places(t *testing.T, g team.Graph) (layers [][]team.TaskID) {
	t.Helper()
	sizes := map[int]int{}
	for _, n := range g.Nodes {
		sizes[n.Depth]++
	}
	layers = make([][]team.TaskID, len(sizes))
	for _, n := range g.Nodes {
		if layers[n.Depth] == nil {
			layers[n.Depth] = make([]team.TaskID, sizes[n.Depth])
		}
		if n.Place >= sizes[n.Depth] || layers[n.Depth][n.Place] != "" {
			t.Fatalf("%s has place %d of %d at depth %d, which is another's", n.ID, n.Place, sizes[n.Depth], n.Depth)
		}
		layers[n.Depth][n.Place] = n.ID
	}
	return layers
}

// Nodes of one depth have places in the order of the board.
func TestGraphPlaces(t *testing.T) {
	g := team.GraphOf(boardOf(node("T-001", team.Pending, "a"), node("T-002", team.Pending, "b"), node("T-003", team.Pending, "c", "T-001")))
	if got, want := places(t, g), [][]team.TaskID{{"T-001", "T-002"}, {"T-003"}}; !reflect.DeepEqual(got, want) {
		t.Errorf("places %v, want %v", got, want)
	}
}

func BenchmarkGraphOf(b *testing.B) {
	var tasks []team.Task
	for n := 1; n <= 1000; n++ {
		var deps []team.TaskID
		for k := range min(n-1, 20) {
			deps = append(deps, team.MakeTaskID((n*31+k*53)%(n-1)+1))
		}
		slices.Sort(deps)
		tasks = append(tasks, node(team.MakeTaskID(n), team.Pending, "x", slices.Compact(deps)...))
	}
	views := boardOf(tasks...)
	for b.Loop() {
		team.GraphOf(views)
	}
}
