package main

import (
	"fmt"
	"strings"

	"agentteam/pkg/team"
)

// polls is how a task of each status is drawn: with a colour, and in a shape of its own for people who do not
// see colours.
var polls = map[string]struct{ fill, dot, open, close string }{
	string(team.Pending):    {"#ffffff", "shape=box", "[", "]"},
	team.ShownBlocked:       {"#fff3c4", "shape=box", "[", "]"},
	string(team.InProgress): {"#cfe8ff", "shape=box", "[[", "]]"},
	"merging":               {"#b8dcff", "shape=box", "[[", "]]"},
	string(team.Completed):  {"#d3f2d3", "shape=ellipse", "([", "])"},
	string(team.Failed):     {"#ffd0d0", "shape=octagon", "{{", "}}"},
	string(team.Cancelled):  {"#e6e6e6", "shape=note", "[/", "/]"},
	team.ShownUnknown:       {"#e6e6e6", "shape=diamond", "{", "}"},
}

// dot returns the graph in Graphviz's language.
func dot(g team.Graph) string {
	var b strings.Builder
	b.WriteString("digraph tasks {\n  rankdir=LR;\n  node [style=filled];\n")
	quote := strings.NewReplacer(`\`, `\\`, `"`, `\"`)
	for _, n := range g.Nodes {
		look := polls[n.Status]
		fmt.Fprintf(&b, "  \"%s\" [label=\"%s %s\\n%s\", %s, fillcolor=\"%s\"];\n",
			quote.Replace(string(n.ID)), quote.Replace(string(n.ID)), n.Status, quote.Replace(printable(team.OneLine(n.Title))), look.dot, look.fill)
	}
	for _, e := range g.Edges {
		fmt.Fprintf(&b, "  \"%s\" -> \"%s\";\n", quote.Replace(string(e.From)), quote.Replace(string(e.To)))
	}
	b.WriteString("}\n")
	return b.String()
}

// mermaid returns the graph as a Mermaid flowchart.
func mermaid(g team.Graph) string {
	var b strings.Builder
	b.WriteString("graph LR\n")
	// Mermaid reads labels as HTML, in backquotes as Markdown, and has entities of its
	// own for what ends a label.
	quote := strings.NewReplacer("#", "#35;", `"`, "#quot;", "<", "#lt;", ">", "#gt;", "&", "#amp;", "`", "#96;")
	used := map[string]bool{}
	for _, n := range g.Nodes {
		look := polls[n.Status]
		used[n.Status] = true
		fmt.Fprintf(&b, "  %s%s\"%s %s<br/>%s\"%s:::%s\n", n.ID, look.open, n.ID, n.Status, quote.Replace(printable(team.OneLine(n.Title))), look.close, n.Status)
	}
	for _, e := range g.Edges {
		fmt.Fprintf(&b, "  %s --> %s\n", e.From, e.To)
	}
	for _, s := range []string{string(team.Pending), team.ShownBlocked, string(team.InProgress), "merging", string(team.Completed), string(team.Failed), string(team.Cancelled), team.ShownUnknown} {
		if used[s] {
			fmt.Fprintf(&b, "  classDef %s fill:%s,stroke:#666,color:#000\n", s, polls[s].fill)
		}
	}
	return b.String()
}
