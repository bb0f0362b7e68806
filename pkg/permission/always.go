package permission

import (
	"net/url"
	"path"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"agentteam/pkg/team"
	"agentteam/pkg/tool"
)

// Always returns the rule that "always" writes for a call, such as Bash(git push origin main): the
// exact command, the file of an edit, the host of a fetch, an MCP tool. It is "" where every rule
// would allow more than the call, as for a command line of several commands.
func Always(req tool.Request) string {
	rule := ""
	switch kind := kindOf(req); {
	case kind == runs:
		rule = alwaysRuns(argument(req, "command"))
	case kind == edits:
		rule = alwaysOf("Edit", argument(req, "path"))
	case kind == reads && req.Tool == "read_file": // others may look at a folder, and the rule would open all that is in it
		rule = alwaysOf("Read", argument(req, "path"))
	case kind == fetches:
		if u, err := url.Parse(argument(req, "url")); err == nil {
			rule = "WebFetch(domain:" + strings.ToLower(u.Hostname()) + ")"
		}
	case strings.HasPrefix(req.Tool, "mcp__"):
		rule = req.Tool
	}
	// Whatever it is, it has to be a rule, and to allow this call.
	r, warnings, err := Parse(team.Permissions{Allow: []string{rule}})
	if err != nil || len(warnings) > 0 || r.Decide(req, anyDir).Decision != Allow {
		return ""
	}
	return rule
}

// anyDir is a workspace, where it does not matter which.
const anyDir = "/workspace"

// alwaysRuns is the rule for a line of one command; "" for others.
func alwaysRuns(src string) string {
	l := read(src, anyDir, "/")
	if len(l.doubts) > 0 || len(l.calls) != 1 || len(l.files) > 0 || l.calls[0].expand || l.calls[0].glob {
		return ""
	}
	f, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(src), "")
	if err != nil || len(f.Stmts) != 1 {
		return ""
	}
	c, simple := f.Stmts[0].Cmd.(*syntax.CallExpr)
	if !simple {
		return ""
	}
	var words []word
	for _, arg := range c.Args {
		words = append(words, wordOf(arg))
	}
	said, ok := quoted(words)
	if !ok {
		return ""
	}
	return "Bash(" + said + ")"
}

// alwaysOf is the rule for one file; "" for one that is not known to be in the workspace.
func alwaysOf(name, file string) string {
	if file == "" {
		return ""
	}
	clean := path.Clean(file)
	if clean == "." || clean == ".." || strings.HasPrefix(clean, "../") {
		return ""
	}
	return name + "(/" + strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(clean) + ")"
}
