package team

import (
	"cmp"
	"slices"
)

// Graph is the board as nodes and edges: the dependencies between tasks.
type Graph struct {
	Nodes []Node `json:"nodes"` // each after those that it waits for
	Edges []Edge `json:"edges"`
}

// Node is a task of a Graph.
type Node struct {
	ID     TaskID `json:"id"`
	Title  string `json:"title"`
	Status string `json:"status"` // as people see it, see [TaskView.Shown]
	Depth  int    `json:"depth"`  // length of the longest way to a task without dependencies: its layer in a drawing
	Place  int    `json:"place"`  // among those of the same depth, from 0
}

// Edge leads from a dependency to the task that waits for it.
type Edge struct {
	From TaskID `json:"from"`
	To   TaskID `json:"to"`
}

// The statuses that people see of a task in addition to its own.
const (
	ShownBlocked = "blocked" // pending, and a dependency is not completed
	shownMerging = "merging" // in progress, and its work waits to be in the line
	ShownUnknown = "unknown" // a dependency whose record cannot be read
)

// Shown returns the status as people see it: a pending task that waits for others is blocked, and a task
// whose work waits in the merge queue is merging.
func (v TaskView) Shown() string {
	switch {
	case v.IsBlocked:
		return ShownBlocked
	case v.Merging != nil:
		return shownMerging
	}
	return string(v.Status)
}

// GraphOf returns the graph of tasks, all readable tasks of the board. A dependency that is not among them is
// a node without a title.
func GraphOf(tasks []TaskView) Graph {
	g := Graph{Nodes: []Node{}, Edges: []Edge{}}
	by := make(map[TaskID]TaskView, len(tasks))
	for _, v := range tasks {
		by[v.ID] = v
	}
	depths := map[TaskID]int{}
	var depth func(id TaskID) int
	depth = func(id TaskID) int {
		if d, known := depths[id]; known {
			return d
		}
		depths[id] = 0 // the board lets no cycle in; a record from elsewhere must not hang the reader
		d := 0
		for _, dep := range by[id].Dependencies {
			d = max(d, depth(dep)+1)
		}
		depths[id] = d
		return d
	}
	for _, v := range tasks {
		g.Nodes = append(g.Nodes, Node{ID: v.ID, Title: v.Title, Status: v.Shown(), Depth: depth(v.ID)})
		for _, dep := range v.Dependencies {
			g.Edges = append(g.Edges, Edge{dep, v.ID})
			if _, known := by[dep]; !known {
				by[dep] = TaskView{}
				g.Nodes = append(g.Nodes, Node{ID: dep, Status: ShownUnknown})
			}
		}
	}
	slices.SortStableFunc(g.Nodes, func(a, b Node) int { return cmp.Compare(a.Depth, b.Depth) })
	for i := 1; i < len(g.Nodes); i++ {
		if before := g.Nodes[i-1]; before.Depth == g.Nodes[i].Depth {
			g.Nodes[i].Place = before.Place + 1
		}
	}
	return g
}
