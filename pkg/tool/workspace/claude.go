package workspace

import (
	"context"

	"agentteam/pkg/team"
	"agentteam/pkg/tool"
)

// claude are the tools as Claude Code has them.
var claude = map[string][]tool.Form{
	"bash": {{Name: "Bash", Dialect: team.Claude, Calls: inSeconds, Hidden: []string{"description"}, Own: []tool.Argument{
		{Name: "timeout", Type: "integer", Description: "milliseconds (default 120000, at most 600000)"},
		{Name: "description", Type: "string"},
	}}},
	"read_file":  {{Name: "Read", Dialect: team.Claude, Names: filePath}},
	"write_file": {{Name: "Write", Dialect: team.Claude, Names: filePath}},
	"edit_file":  {{Name: "Edit", Dialect: team.Claude, Names: filePath}},
	"glob":       {{Name: "Glob", Dialect: team.Claude}},
	"grep":       {{Name: "Grep", Dialect: team.Claude}},
}

var filePath = map[string][]string{"path": {"file_path"}}

// inSeconds is the call of bash for one of Bash, which has its time in milliseconds and a
// description that is for whoever watches.
func inSeconds(_ context.Context, given map[string]any) ([]map[string]any, error) {
	delete(given, "description")
	if ms, ok := given["timeout"].(float64); ok {
		if ms < 0 || ms > maxTimeout*1000 {
			return nil, team.Errorf(team.InvalidArgument, "timeout: %v, want milliseconds from 1 to %d", ms, maxTimeout*1000)
		}
		given["timeout"] = (int(ms) + 999) / 1000
	}
	return []map[string]any{given}, nil
}
