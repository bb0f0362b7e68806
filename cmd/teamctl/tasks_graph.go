package main

import (
	"context"
	"io"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
)

// The formats of a graph.
var graphFormats = []string{"text", "dot", "mermaid"}

func (a *app) tasksGraphCmd() *cobra.Command {
	var format string
	cmd := &cobra.Command{Use: "graph", Short: "Show which task waits for which", Args: atMost(0)}
	cmd.Flags().StringVar(&format, "format", "text", "text, dot (Graphviz) or mermaid")
	completeFlags(cmd, map[string]cobra.CompletionFunc{"format": fixed(graphFormats...)})
	cmd.RunE = func(*cobra.Command, []string) error {
		if !slices.Contains(graphFormats, format) {
			return team.Errorf(team.InvalidArgument, "--format %q is not known", format).WithHint("use text, dot or mermaid")
		}
		var b client.Board
		err := a.readTeam(func(ctx context.Context, t *client.Team) (err error) {
			b, err = t.Board(ctx)
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
		return a.print(g, nil, names, func(w io.Writer, _ bool) error {
			text := ""
			switch format {
			case "dot":
				text = g.DOT()
			case "mermaid":
				text = g.Mermaid()
			default:
				w, text = a.screen(), a.fitLines(g.Text(paintAs))
			}
			_, err := io.WriteString(w, text)
			return err
		})
	}
	return cmd
}

// paintAs gives text the colour of a status, or that of what is only looked at if
// need be.
func paintAs(status, text string) string {
	if status == "" {
		return faint.Render(text)
	}
	return paint(text)
}

// fitLines cuts each line to the width of the terminal.
func (a *app) fitLines(text string) string {
	width := a.width()
	if width == 0 {
		return text
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(ansi.Truncate(strings.TrimSuffix(line, "\n"), width, "…") + "\n")
	}
	return b.String()
}
