package workspace

import (
	"context"

	"agentteam/pkg/team"
	"agentteam/pkg/tool"
	"agentteam/pkg/tool/dialect"
)

// claude are the tools as Claude Code has them, and several edits in one call, which models are not shown: models that
// know such a tool may call it.
var claude = map[string][]dialect.Form{
	"bash": {{Name: "Bash", Dialect: team.Claude, Calls: inSeconds, Hidden: []string{"description"}, Own: []dialect.Argument{
		{Name: "timeout", Type: "integer", Description: "milliseconds (default 120000, at most 600000)"},
		{Name: "description", Type: "string"},
	}}},
	"read_file":  {{Name: "Read", Dialect: team.Claude, Names: filePath}},
	"write_file": {{Name: "Write", Dialect: team.Claude, Names: filePath}},
	"edit_file": {
		{Name: "Edit", Dialect: team.Claude, Names: filePath},
		{Name: "MultiEdit", Dialect: team.Claude, Names: filePath, Optional: single, Calls: atOnce},
		{Name: "multi_edit", Dialect: team.Native, Optional: single, Calls: atOnce},
		{Name: "apply_patch", Dialect: team.Native, Description: patchDescription, Names: map[string][]string{"patch": {"input"}},
			Own: []dialect.Argument{{Name: "input", Type: "string", Description: "the patch", Required: true}}, Hidden: []string{"path", "old_string", "new_string", "replace_all"},
			Optional: []string{"path", "old_string", "new_string"}, Calls: asPatch},
	},
	"glob": {{Name: "Glob", Dialect: team.Claude}},
	"grep": {{Name: "Grep", Dialect: team.Claude}},
}

// single are the arguments of a single edit.
var single = []string{"old_string", "new_string"}

// atOnce returns the call of edit_file for a call with a list of edits, which needs no single edit.
func atOnce(_ context.Context, given map[string]any) ([]map[string]any, error) {
	edits, listed := given["edits"].([]any)
	_, one := given["old_string"]
	switch {
	case listed && one:
		return nil, team.Errorf(team.InvalidArgument, "edits: given together with old_string").WithHint("put all into edits")
	case len(edits) == 0 && !one:
		return nil, tool.Missing("edits")
	}
	for _, name := range single {
		if _, ok := given[name]; !ok {
			given[name] = ""
		}
	}
	return []map[string]any{given}, nil
}

// asPatch returns the call of edit_file for a patch.
func asPatch(_ context.Context, given map[string]any) ([]map[string]any, error) {
	for _, name := range append([]string{"path"}, single...) {
		if _, ok := given[name]; !ok {
			given[name] = ""
		}
	}
	return []map[string]any{given}, nil
}

var filePath = map[string][]string{"path": {"file_path"}}

// inSeconds returns the call of bash for a call of Bash, which has its time in milliseconds and a description for
// watchers.
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
