package runtime

import (
	"log/slog"
	"regexp"
	"strings"
	"testing"

	"agentteam/pkg/agent"
	"agentteam/pkg/agent/teamtool"
	"agentteam/pkg/config/role"
	"agentteam/pkg/execenv/projectcontext"
	"agentteam/pkg/model/tokens"
	"agentteam/pkg/team"
	"agentteam/pkg/tool/job"
	"agentteam/pkg/tool/workspace"
)

// most is how many tokens a request may begin with: of who has neither subagents nor the background,
// and of who has all.
var most = map[bool]map[team.AgentID]int{
	false: {team.Leader: 3200, "coder-1": 3200},
	true:  {team.Leader: 4200, "coder-1": 3300},
}

// What every request begins with is paid for with every request: the system message
// without the role's own text and the project's instructions, and the tools.
func TestPromptBudget(t *testing.T) {
	t.Run("all on", func(t *testing.T) { promptBudget(t, true, nil) })
	t.Run("without", func(t *testing.T) {
		promptBudget(t, false, []string{"read_file", "write_file", "edit_file", "glob", "grep"})
	})
}

func promptBudget(t *testing.T, all bool, tools []string) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir()) // without the roles of whoever runs this
	loaded, err := role.Load(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := projectcontext.Place{Workspace: "/home/somebody/projects/shop", Platform: "linux/amd64", Date: "2026-11-22", Git: "branch main, 12 files changed or new"}
	for name, kind := range map[team.AgentID]string{team.Leader: team.LeaderRole, "coder-1": "coder"} {
		jobs := job.New(job.Options{})
		defer jobs.Close()
		m := &member{jobs: jobs, Options: Options{Member: team.Member{AgentID: name, Role: kind}, Role: team.Role{Tools: tools}, Aliases: []string{"big", "small"}, Logger: slog.New(slog.DiscardHandler)}}
		for _, dialect := range []team.Dialect{team.Native, team.Claude} {
			m.Record = team.Team{ID: "default", Roles: loaded.All, Policies: team.Policies{Dialect: dialect}}
			set, _, err := m.tools(workspace.Follow(nil, nil, workspace.Options{Begin: m.begin}), nil, &agent.Conversation{})
			if err != nil {
				t.Fatal(err)
			}
			trees := m.Record
			trees.Branch = &team.GoalBranch{}
			system := agent.System(m.Record, m.Member, team.Role{}, at)
			texts, told := system, map[string]bool{}
			n := max(tokens.Count(system), tokens.Count(agent.System(trees, m.Member, team.Role{}, at)))
			for _, s := range set.Specs() {
				n += tokens.Count(s.Name) + tokens.Count(s.Description) + tokens.Count(string(s.Schema))
				texts, told[s.Name] = texts+"\n"+s.Description+" "+string(s.Schema), true
			}
			// What it is told of is there, by that name.
			for _, name := range toolNames(append(new(workspace.Current).Tools(), teamtool.New(teamtool.Options{})...)) {
				if strings.Contains(name, "_") && !told[name] && regexp.MustCompile(`\b`+name+`\b`).MatchString(texts) {
					t.Errorf("%s, %s: is told of %s, which is not among its tools", name, dialect, name)
				}
			}
			if strings.Contains(texts, "teamctl") {
				t.Errorf("%s, %s: is told of commands that it does not have", name, dialect)
			}
			if n > most[all][name] {
				t.Errorf("%s, %s: system message and tools have %d tokens, more than %d", name, dialect, n, most[all][name])
			}
			t.Logf("%s, %s: %d tokens", name, dialect, n)
		}
	}
}
