package membership

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"agentteam/pkg/approval"
	"agentteam/pkg/command"
	"agentteam/pkg/team"
	"agentteam/pkg/tool"
	"agentteam/pkg/tool/workspace"
)

// A subagent has what its role has of the tools of its owner, and never more.
func TestToolsOfSubagent(t *testing.T) {
	all := []string{"bash", "read_file", "write_file", "edit_file", "glob", "grep"}
	looks := []string{"read_file", "glob", "grep"}
	for name, tt := range map[string]struct {
		owner []string // its tools
		role  team.Role
		want  []string
	}{
		"all":                                {all, team.Role{}, all},
		"by its role":                        {all, team.Role{Tools: []string{"Read", "Grep", "Glob"}}, looks},
		"the deliverable is its owner's":     {all, team.Role{Tools: []string{"read_file", "glob", "grep", "write_file" + team.OnlyDeliverable}}, looks},
		"of an owner that only looks":        {looks, team.Role{}, looks},
		"the same, by a role":                {looks, team.Role{Tools: []string{"*"}}, looks},
		"what its role and its owner share":  {looks, team.Role{Tools: []string{"bash", "grep"}}, []string{"grep"}},
		"none":                               {nil, team.Role{}, nil},
		"no one would approve a plan of its": {all, team.Role{PlanMode: true}, looks},
		"the tools of the team are not":      {all, team.Role{Tools: []string{"grep", "send_message", "subagent"}}, []string{"grep"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := &member{names: tt.owner, Options: Options{Member: team.Member{AgentID: "coder-1"}, Logger: slog.New(slog.DiscardHandler)}}
			m.current = workspace.Follow(workspace.Shared{Dir: t.TempDir(), Runner: command.Plain{}}, func() workspace.Work { return workspace.Work{} }, workspace.Options{})
			defer m.current.Close()
			m.asks = (&approval.Plans{}).Permissions(m.Member, nil, func(context.Context, tool.Request) (approval.Judgement, error) {
				return approval.Judgement{Answer: approval.Allow}, nil
			})
			set, changes, err := m.subagentTools(tt.role, team.Native)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, s := range set.Specs() {
				got = append(got, s.Name)
			}
			if !slices.Equal(got, tt.want) || changes != slices.Contains(tt.want, "bash") {
				t.Errorf("it has %q and changes something: %v; want %q", got, changes, tt.want)
			}
			for _, called := range []string{"subagent", "Task", "Agent"} {
				r := set.Run(t.Context(), tool.Call{Name: called, Arguments: `{"prompt":"go","description":"more"}`})
				if r.Code != team.PermissionDenied || !strings.Contains(r.Content, "a subagent starts no subagents") {
					t.Errorf("%s: %s", called, r.Content)
				}
			}
		})
	}
}
