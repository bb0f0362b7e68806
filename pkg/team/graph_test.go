package team_test

import (
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

// Edges that would cross in the order of the ids do not in that of the places.
func TestGraphPlaces(t *testing.T) {
	g := team.GraphOf(boardOf(
		node("T-001", team.Pending, "a"), node("T-002", team.Pending, "b"), node("T-003", team.Pending, "c"),
		node("T-004", team.Pending, "after c", "T-003"), node("T-005", team.Pending, "after b", "T-002"), node("T-006", team.Pending, "after a", "T-001"),
		node("T-007", team.Pending, "after both ends", "T-004", "T-006"), node("T-008", team.Pending, "after a", "T-006"),
	))
	if crossed := crossings(g); crossed != 0 {
		t.Errorf("%d pairs of edges cross in %v", crossed, places(t, g))
	}
	if got := team.GraphOf(boardOf(node("T-001", team.Pending, "a"), node("T-002", team.Pending, "b"))); got.Nodes[1].Place != 1 {
		t.Errorf("without edges the places are %v", places(t, got))
	}
}

// crossings counts by comparing each pair of edges between neighbouring layers.
func crossings(g team.Graph) (n int) {
	at := map[team.TaskID]team.Node{}
	for _, node := range g.Nodes {
		at[node.ID] = node
	}
	for i, a := range g.Edges {
		for _, b := range g.Edges[i+1:] {
			af, at1, bf, bt := at[a.From], at[a.To], at[b.From], at[b.To]
			if af.Depth == bf.Depth && at1.Depth == bt.Depth && (af.Place-bf.Place)*(at1.Place-bt.Place) < 0 {
				n++
			}
		}
	}
	return n
}

// A board of a thousand tasks that wait for each other in a tangle is drawn with far fewer
// crossings than in the order of its ids, and each time alike.
func TestGraphOfManyIsArranged(t *testing.T) {
	var tasks []team.Task
	for n := 1; n <= 1000; n++ {
		var deps []team.TaskID
		if layer := (n - 1) / 50; layer > 0 {
			for k := range 3 {
				deps = append(deps, team.MakeTaskID((layer-1)*50+(n*37+k*2)%50+1))
			}
		}
		tasks = append(tasks, node(team.MakeTaskID(n), team.Pending, "x", deps...))
	}
	g := team.GraphOf(boardOf(tasks...))
	places(t, g)
	plain := team.Graph{Nodes: slices.Clone(g.Nodes), Edges: g.Edges}
	next := map[int]int{}
	for i, n := range plain.Nodes {
		plain.Nodes[i].Place = next[n.Depth]
		next[n.Depth]++
	}
	if before, after := crossings(plain), crossings(g); after*2 > before {
		t.Errorf("%d pairs of edges cross, of %d in the order of ids", after, before)
	}
	if !slices.Equal(team.GraphOf(boardOf(tasks...)).Nodes, g.Nodes) {
		t.Error("it is arranged differently the next time")
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
