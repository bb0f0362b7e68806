package membership

import (
	"log/slog"
	"slices"
	"testing"

	"agentteam/pkg/team"
	"agentteam/pkg/tool/workspace"
)

// Roles written for other programs name tools that are not there, and tools of the
// team under other programs' names; neither keeps a member from starting, and
// neither gives it more than its role says.
func TestToolsOfRole(t *testing.T) {
	ws, err := workspace.Open(t.TempDir(), workspace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ws.Close() })
	all := toolNames(ws.Tools())
	for name, tt := range map[string]struct{ role, want []string }{
		"no list":                {nil, all},
		"everything":             {[]string{"*"}, all},
		"ours":                   {[]string{"bash", "read_file"}, []string{"bash", "read_file"}},
		"another program's":      {[]string{"Read", "Grep", "WebSearch", "mcp__x__y"}, []string{"read_file", "grep"}},
		"none that is here":      {[]string{"WebSearch"}, nil},
		"the leader's by a name": {[]string{"Read", "Task", "TeamDelete"}, []string{"read_file"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := &member{Options: Options{
				Member: team.Member{AgentID: "coder-1", Role: "coder"}, Role: team.Role{Name: "coder", Tools: tt.role}, Logger: slog.New(slog.DiscardHandler),
			}}
			set, err := m.tools(ws, nil)
			if err != nil {
				t.Fatal(err)
			}
			var files, crew []string
			for _, s := range set.Specs() {
				if slices.Contains(all, s.Name) {
					files = append(files, s.Name)
				} else {
					crew = append(crew, s.Name)
				}
			}
			if !slices.Equal(files, tt.want) {
				t.Errorf("tools of the workspace: %q, want %q", files, tt.want)
			}
			if !slices.Contains(crew, "claim_task") || slices.Contains(crew, "spawn_teammate") || slices.Contains(crew, "finish_team") {
				t.Errorf("tools of the team: %q", crew)
			}
		})
	}
}
