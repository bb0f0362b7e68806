package team

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Graph is the board as nodes and edges: which task waits for which.
type Graph struct {
	Nodes []Node `json:"nodes"` // each after those that it waits for
	Edges []Edge `json:"edges"`
}

// Node is a task of a Graph.
type Node struct {
	ID     TaskID `json:"id"`
	Title  string `json:"title"`
	Status string `json:"status"` // as people see it, see [TaskView.Shown]
	Depth  int    `json:"depth"`  // length of the longest way to a task without dependencies
}

// Edge leads from a dependency to the task that waits for it.
type Edge struct {
	From TaskID `json:"from"`
	To   TaskID `json:"to"`
}

// The statuses that people see of a task besides its own.
const (
	ShownBlocked = "blocked" // pending, and a dependency is not completed
	shownUnknown = "unknown" // a dependency whose record cannot be read
)

// Shown is the status as people see it: a pending task that waits for others is
// blocked.
func (v TaskView) Shown() string {
	if v.IsBlocked {
		return ShownBlocked
	}
	return string(v.Status)
}

// GraphOf makes the graph of tasks, which are all tasks of the board that can be
// read. A dependency that is not among them is a node without a title.
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
		g.Nodes = append(g.Nodes, Node{v.ID, v.Title, v.Shown(), depth(v.ID)})
		for _, dep := range v.Dependencies {
			g.Edges = append(g.Edges, Edge{dep, v.ID})
			if _, known := by[dep]; !known {
				by[dep] = TaskView{}
				g.Nodes = append(g.Nodes, Node{ID: dep, Status: shownUnknown})
			}
		}
	}
	slices.SortStableFunc(g.Nodes, func(a, b Node) int { return cmp.Compare(a.Depth, b.Depth) })
	return g
}

// looks is how a task of each status is drawn: filled with a colour, and in a shape
// of its own for those who do not see colours.
var looks = map[string]struct{ fill, dot, open, close string }{
	string(Pending):    {"#ffffff", "shape=box", "[", "]"},
	ShownBlocked:       {"#fff3c4", "shape=box", "[", "]"},
	string(InProgress): {"#cfe8ff", "shape=box", "[[", "]]"},
	string(Completed):  {"#d3f2d3", "shape=ellipse", "([", "])"},
	string(Failed):     {"#ffd0d0", "shape=octagon", "{{", "}}"},
	string(Cancelled):  {"#e6e6e6", "shape=note", "[/", "/]"},
	shownUnknown:       {"#e6e6e6", "shape=diamond", "{", "}"},
}

// DOT writes the graph in the language of Graphviz.
func (g Graph) DOT() string {
	var b strings.Builder
	b.WriteString("digraph tasks {\n  rankdir=LR;\n  node [style=filled];\n")
	quote := strings.NewReplacer(`\`, `\\`, `"`, `\"`)
	for _, n := range g.Nodes {
		look := looks[n.Status]
		fmt.Fprintf(&b, "  \"%s\" [label=\"%s %s\\n%s\", %s, fillcolor=\"%s\"];\n",
			quote.Replace(string(n.ID)), quote.Replace(string(n.ID)), n.Status, quote.Replace(oneLine(n.Title)), look.dot, look.fill)
	}
	for _, e := range g.Edges {
		fmt.Fprintf(&b, "  \"%s\" -> \"%s\";\n", quote.Replace(string(e.From)), quote.Replace(string(e.To)))
	}
	b.WriteString("}\n")
	return b.String()
}

// Mermaid writes the graph as a Mermaid flowchart.
func (g Graph) Mermaid() string {
	var b strings.Builder
	b.WriteString("graph LR\n")
	// Mermaid reads labels as HTML, in backquotes as Markdown, and has entities of its
	// own for what ends a label.
	quote := strings.NewReplacer("#", "#35;", `"`, "#quot;", "<", "#lt;", ">", "#gt;", "&", "#amp;", "`", "#96;")
	used := map[string]bool{}
	for _, n := range g.Nodes {
		look := looks[n.Status]
		used[n.Status] = true
		fmt.Fprintf(&b, "  %s%s\"%s %s<br/>%s\"%s:::%s\n", n.ID, look.open, n.ID, n.Status, quote.Replace(oneLine(n.Title)), look.close, n.Status)
	}
	for _, e := range g.Edges {
		fmt.Fprintf(&b, "  %s --> %s\n", e.From, e.To)
	}
	for _, s := range []string{string(Pending), ShownBlocked, string(InProgress), string(Completed), string(Failed), string(Cancelled), shownUnknown} {
		if used[s] {
			fmt.Fprintf(&b, "  classDef %s fill:%s,stroke:#666,color:#000\n", s, looks[s].fill)
		}
	}
	return b.String()
}

// oneLine takes out what would break a line, move a cursor, or turn the direction of
// writing.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case unicode.IsControl(r), r >= '\u202a' && r <= '\u202e', r >= '\u2066' && r <= '\u2069':
			return -1
		}
		return r
	}, s)
}
