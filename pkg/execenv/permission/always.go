package permission

import (
	"net/url"
	"path"
	"strings"

	"agentteam/pkg/team"
	"agentteam/pkg/tool"
)

// Always returns the rule that the answer "always" adds for a call: the exact command, the file of an edit, the host of a fetch, an
// MCP tool. It is "" if every rule would allow more than the call, as for a line of several commands.
func Always(req tool.Request) string {
	rule := ""
	switch kind := kindOf(req); {
	case kind == runs:
		if command := strings.TrimSpace(argument(req, "command")); command != "" {
			rule = "Bash(" + command + ")"
		}
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
	// In any case it has to be a valid rule that allows this call.
	r, warnings, err := Parse(team.Permissions{Allow: []string{rule}})
	if err != nil || len(warnings) > 0 || r.allow[0].tool == "bash" && !r.allow[0].command.exact() || r.Decide(req, "/workspace").Decision != Allow {
		return ""
	}
	return rule
}

// alwaysOf returns the rule for one file; "" for one that may be outside the workspace.
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
