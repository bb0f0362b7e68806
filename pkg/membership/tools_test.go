package membership

import (
	"log/slog"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"agentteam/pkg/agent"
	"agentteam/pkg/place"
	"agentteam/pkg/subagent"
	"agentteam/pkg/team"
	"agentteam/pkg/tool"
	"agentteam/pkg/tool/job"
	"agentteam/pkg/tool/teamtool"
	"agentteam/pkg/tool/workspace"
)

// A model is told of its dialect's tools only, and the prompt names no others. The role's
// dialect goes before the team's.
func TestToolsOfDialect(t *testing.T) {
	for _, name := range []team.AgentID{"coder-1", team.Leader} {
		var want []string
		for _, t := range slices.Concat(new(workspace.Current).Tools(), []tool.Tool{subagent.Tool(subagent.Options{})}, new(job.Jobs).Tools(), teamtool.New(teamtool.Options{})) {
			if told := team.Claude.Tool(t.Name); told != "" && (name == team.Leader || !t.Traits.LeaderOnly) {
				want = append(want, told)
			}
		}
		slices.Sort(want)
		for _, o := range []Options{
			{Record: team.Team{Policies: team.Policies{Dialect: team.Claude}}},
			{Record: team.Team{Policies: team.Policies{Dialect: team.Native}}, Role: team.Role{Dialect: team.Claude}},
		} {
			o.Member, o.Logger = team.Member{AgentID: name}, slog.New(slog.DiscardHandler)
			set, err := (&member{Options: o}).tools(&workspace.Current{}, nil, &agent.Conversation{})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, s := range set.Specs() {
				got = append(got, s.Name)
				if i := ours.FindString(s.Name + " " + s.Description + string(s.Schema)); i != "" && !(i == "task_id" && strings.HasPrefix(s.Name, "Task")) { // TaskOutput has it
					t.Errorf("%s speaks of %s: %s %s", s.Name, i, s.Description, s.Schema)
				}
			}
			if slices.Sort(got); !slices.Equal(got, want) {
				t.Errorf("%s is told of %q, want %q", name, got, want)
			}
			if i := ours.FindString(agent.System(o.Record, o.Member, o.Role, place.Place{})); i != "" {
				t.Errorf("the prompt of %s speaks of %s", name, i)
			}
		}
	}
}

// ours are our names of what Claude calls otherwise.
var ours = regexp.MustCompile(`(?:read|write|edit)_file|(?:create|list|get|claim|update|release)_tasks?|task_id|send_message|finish_team|list_teammates|(?:spawn|remove)_teammate`)

// What holds for a tool's calls is known by its name in any dialect; of a tool that is not ours
// nothing is.
func TestTraits(t *testing.T) {
	for name, want := range map[string]tool.Traits{
		"finish_team": {LeaderOnly: true, Silent: true}, "TaskUpdate": {Silent: true}, "ExitPlanMode": {Ungated: true}, "mcp__far__look": {},
		"Read": {ReadOnly: true, Yields: true, Bulky: true, Terse: true, Reads: []string{"file_path", "path"}},
	} {
		if got := Traits(name); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}

// Roles written for other programs name tools that are not there, and tools of the
// team under other programs' names; neither keeps a member from starting, and
// neither gives it more than its role says.
func TestToolsOfRole(t *testing.T) {
	all := append(toolNames(new(workspace.Current).Tools()), "subagent", "task_output", "task_stop")
	for name, tt := range map[string]struct{ role, want []string }{
		"no list":                {nil, all},
		"everything":             {[]string{"*"}, all},
		"ours":                   {[]string{"bash", "read_file"}, []string{"bash", "read_file", "task_output", "task_stop"}},
		"another program's":      {[]string{"Read", "Grep", "WebSearch", "mcp__x__y"}, []string{"read_file", "grep"}},
		"none that is here":      {[]string{"WebSearch"}, nil},
		"the leader's by a name": {[]string{"Read", "TeamSpawn", "TeamDelete"}, []string{"read_file"}},
		"subagents, by a name":   {[]string{"Read", "Task"}, []string{"read_file", "subagent", "task_output", "task_stop"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := &member{Options: Options{
				Member: team.Member{AgentID: "coder-1", Role: "coder"}, Role: team.Role{Name: "coder", Tools: tt.role}, Logger: slog.New(slog.DiscardHandler),
			}}
			set, err := m.tools(&workspace.Current{}, nil, &agent.Conversation{})
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
			if !slices.Contains(crew, "update_task") || slices.Contains(crew, "claim_task") || slices.Contains(crew, "spawn_teammate") || slices.Contains(crew, "finish_team") {
				t.Errorf("tools of the team: %q", crew)
			}
		})
	}
}
