package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
	"agentteam/pkg/team/explain"
)

// graphFormats are the formats of a graph.
var graphFormats = []string{"text", "dot", "mermaid"}

func (a *app) tasksGraphCmd() *cobra.Command {
	drawing := "text"
	var all bool
	cmd := &cobra.Command{
		Use: "graph", Short: "Show which task waits for which", Args: atMost(0),
		Long: "graph shows the tasks with their dependencies, each below those that it comes after. The text leaves out cancelled\n" +
			"tasks that no other comes after, unless --all is given; Graphviz, Mermaid and -o json have all tasks.",
	}
	cmd.Flags().Var(choice[string]{&drawing, "format", graphFormats}, "format", "text, dot (Graphviz) or mermaid")
	cmd.Flags().BoolVar(&all, "all", false, "also cancelled tasks in the text")
	completeFlags(cmd, map[string]cobra.CompletionFunc{"format": fixed(graphFormats...)})
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if cmd.Flags().Changed("format") && !a.forPeople() {
			return team.Errorf(team.InvalidArgument, "--format %s and -o %s do not go together", drawing, a.output).WithHint("leave one of them out")
		}
		var b client.Snapshot
		none := func() error { return nil } // its graph is printed as any other
		err := a.readTeam(none, func(ctx context.Context, t *client.Team) (err error) {
			if b, err = t.Board().Snapshot(ctx); err == nil && len(b.Tasks)+len(b.Bad) == 0 {
				a.note("the board is empty")
			}
			if err == nil {
				err = t.Board().Merging(ctx, b.Tasks)
			}
			return err
		})
		if err != nil {
			return err
		}
		a.warnBad(b.Bad)
		g := team.GraphOf(b.Tasks)
		names := make([]string, len(g.Nodes))
		for i, n := range g.Nodes {
			names[i] = string(n.ID)
		}
		return a.print(g, names, func() {
			switch drawing {
			case "dot":
				fmt.Fprint(a.out, dot(g))
			case "mermaid":
				fmt.Fprint(a.out, mermaid(g))
			default:
				if !all {
					g.Nodes = worthShowing(g)
				}
				a.printGraph(g, statusesOf(b.Tasks))
			}
		})
	}
	return cmd
}

// worthShowing returns the nodes without cancelled tasks, except those on which one of the others depends.
func worthShowing(g team.Graph) []team.Node {
	deps := map[team.TaskID][]team.TaskID{}
	for _, e := range g.Edges {
		deps[e.To] = append(deps[e.To], e.From)
	}
	shown := map[team.TaskID]bool{}
	for _, n := range slices.Backward(g.Nodes) { // each comes after its dependencies
		if shown[n.ID] = shown[n.ID] || n.Status != string(team.Cancelled); shown[n.ID] {
			for _, d := range deps[n.ID] {
				shown[d] = true
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(g.Nodes), func(n team.Node) bool { return !shown[n.ID] })
}

// deepest limits a task's indentation, in steps.
const deepest = 16

// printGraph draws the graph with a line for each task, indented by the number of tasks before it.
func (a *app) printGraph(g team.Graph, status statuses) {
	if len(g.Nodes) == 0 {
		return
	}
	blocked := map[team.TaskID]bool{}
	for _, n := range g.Nodes {
		blocked[n.ID] = n.Status == team.ShownBlocked
	}
	after := map[team.TaskID][]string{}
	for _, e := range g.Edges {
		dep := string(e.From)
		if blocked[e.To] {
			dep = explain.Named(e.From, status.of)
		}
		after[e.To] = append(after[e.To], dep)
	}
	t := table{columns: []column{{head: "ID"}, {head: "STATUS"}, {head: "DEPENDENCIES", cut: true, drop: 1}, {head: "TITLE", cut: true}}}
	for _, n := range g.Nodes {
		t.add(strings.Repeat("  ", min(n.Depth, deepest))+string(n.ID), paint(n.Status), orDash(strings.Join(after[n.ID], ",")), printable(team.OneLine(n.Title)))
	}
	a.printTable(t)
}
