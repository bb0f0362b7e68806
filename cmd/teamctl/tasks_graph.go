package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
)

// graph is the board as nodes and edges, as it is printed with -o json.
type graph struct {
	Nodes []node `json:"nodes"`
	Edges []edge `json:"edges"`
}

type node struct {
	ID     team.TaskID `json:"id"`
	Title  string      `json:"title"`
	Status string      `json:"status"` // as people see it: blocked is one
	Depth  int         `json:"depth"`  // length of the longest way to a task without dependencies
}

// edge leads from a dependency to the task that waits for it.
type edge struct {
	From team.TaskID `json:"from"`
	To   team.TaskID `json:"to"`
}

func (a *app) tasksGraphCmd() *cobra.Command {
	var format string
	cmd := &cobra.Command{Use: "graph", Short: "Show which task waits for which", Args: cobra.NoArgs}
	cmd.Flags().StringVar(&format, "format", "text", "text, dot (Graphviz) or mermaid")
	cmd.RunE = func(*cobra.Command, []string) error {
		write, ok := map[string]func(io.Writer, graph) error{"text": a.writeGraph, "dot": writeDot, "mermaid": writeMermaid}[format]
		if !ok {
			return team.Errorf(team.InvalidArgument, "--format %q is not known", format).WithHint("use text, dot or mermaid")
		}
		var tasks []team.TaskView
		err := a.readTeam(func(ctx context.Context, t *client.Team) (err error) {
			tasks, err = t.Tasks(ctx)
			return err
		})
		if err != nil {
			return err
		}
		g := graphOf(tasks)
		names := make([]string, len(g.Nodes))
		for i, n := range g.Nodes {
			names[i] = string(n.ID)
		}
		return a.print(g, nil, names, func(w io.Writer, _ bool) error { return write(w, g) })
	}
	return cmd
}

// graphOf orders the tasks so that each comes after what it waits for.
func graphOf(tasks []team.TaskView) graph {
	g := graph{Nodes: []node{}, Edges: []edge{}}
	by := map[team.TaskID]team.TaskView{}
	for _, v := range tasks {
		by[v.ID] = v
	}
	depths := map[team.TaskID]int{}
	var depth func(id team.TaskID) int
	depth = func(id team.TaskID) int {
		d, known := depths[id]
		if !known {
			for _, dep := range by[id].Dependencies {
				d = max(d, depth(dep)+1) // the board lets no cycle in
			}
			depths[id] = d
		}
		return d
	}
	for _, v := range tasks {
		g.Nodes = append(g.Nodes, node{v.ID, v.Title, shownStatus(v), depth(v.ID)})
		for _, dep := range v.Dependencies {
			g.Edges = append(g.Edges, edge{dep, v.ID})
		}
	}
	slices.SortStableFunc(g.Nodes, func(a, b node) int { return cmp.Compare(a.Depth, b.Depth) })
	return g
}

// writeGraph prints a task a line, indented by how many others come before it.
func (a *app) writeGraph(_ io.Writer, g graph) error {
	waits := map[team.TaskID][]team.TaskID{}
	for _, e := range g.Edges {
		waits[e.To] = append(waits[e.To], e.From)
	}
	w, width := a.screen(), a.width()
	for _, n := range g.Nodes {
		line := strings.Repeat("  ", n.Depth) + string(n.ID) + " " + paint(n.Status)
		if deps := waits[n.ID]; deps != nil {
			line += faint.Render(" ← " + joinIDs(deps))
		}
		line += "  " + printable(n.Title)
		if width > 0 {
			line = ansi.Truncate(line, width, "…")
		}
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}

func writeDot(w io.Writer, g graph) error {
	var b strings.Builder
	b.WriteString("digraph tasks {\n  rankdir=LR;\n  node [shape=box];\n")
	quote := strings.NewReplacer(`\`, `\\`, `"`, `\"`)
	for _, n := range g.Nodes {
		fmt.Fprintf(&b, "  \"%s\" [label=\"%s %s\\n%s\"];\n", n.ID, n.ID, n.Status, quote.Replace(printable(n.Title)))
	}
	for _, e := range g.Edges {
		fmt.Fprintf(&b, "  \"%s\" -> \"%s\";\n", e.From, e.To)
	}
	b.WriteString("}\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func writeMermaid(w io.Writer, g graph) error {
	var b strings.Builder
	b.WriteString("graph LR\n")
	// Mermaid reads labels as HTML and has entities of its own for what ends one.
	quote := strings.NewReplacer("#", "#35;", `"`, "#quot;", "<", "#lt;", ">", "#gt;", "&", "#amp;")
	for _, n := range g.Nodes {
		fmt.Fprintf(&b, "  %s[\"%s %s<br/>%s\"]\n", n.ID, n.ID, n.Status, quote.Replace(printable(n.Title)))
	}
	for _, e := range g.Edges {
		fmt.Fprintf(&b, "  %s --> %s\n", e.From, e.To)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
