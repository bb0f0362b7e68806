package membership

import (
	"log/slog"
	"regexp"
	"strings"
	"testing"

	"agentteam/pkg/agent"
	"agentteam/pkg/place"
	"agentteam/pkg/role"
	"agentteam/pkg/team"
	"agentteam/pkg/tokens"
	"agentteam/pkg/tool/teamtool"
	"agentteam/pkg/tool/workspace"
)

// What every request begins with is paid for with every request: the system message
// without the role's own text and the project's instructions, and the tools.
func TestPromptBudget(t *testing.T) {
	const most = 3200                        // tokens
	t.Setenv("XDG_CONFIG_HOME", t.TempDir()) // without the roles of whoever runs this
	loaded, err := role.Load(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := place.Place{Workspace: "/home/somebody/projects/shop", Platform: "linux/amd64", Date: "2026-11-22", Git: "branch main, 12 files changed or new"}
	for name, kind := range map[team.AgentID]string{team.Leader: team.LeaderRole, "coder-1": "coder"} {
		m := &member{Options: Options{Member: team.Member{AgentID: name, Role: kind}, Aliases: []string{"big", "small"}, Logger: slog.New(slog.DiscardHandler)}}
		for _, dialect := range []team.Dialect{team.Native, team.Claude} {
			m.Record = team.Team{ID: "default", Roles: loaded.All, Policies: team.Policies{Dialect: dialect}}
			set, err := m.tools(&workspace.Current{}, nil, &agent.Conversation{})
			if err != nil {
				t.Fatal(err)
			}
			system := agent.System(m.Record, m.Member, team.Role{}, at)
			all, told := system, map[string]bool{}
			n := tokens.Count(system)
			for _, s := range set.Specs() {
				n += tokens.Count(s.Name) + tokens.Count(s.Description) + tokens.Count(string(s.Schema))
				all, told[s.Name] = all+"\n"+s.Description+" "+string(s.Schema), true
			}
			// What it is told of is there, by that name.
			for _, name := range toolNames(append(new(workspace.Current).Tools(), teamtool.New(teamtool.Options{})...)) {
				if strings.Contains(name, "_") && !told[name] && regexp.MustCompile(`\b`+name+`\b`).MatchString(all) {
					t.Errorf("%s, %s: is told of %s, which is not among its tools", name, dialect, name)
				}
			}
			if strings.Contains(all, "teamctl") {
				t.Errorf("%s, %s: is told of commands that it does not have", name, dialect)
			}
			if n > most {
				t.Errorf("%s, %s: system message and tools have %d tokens, more than %d", name, dialect, n, most)
			}
			t.Logf("%s, %s: %d tokens", name, dialect, n)
		}
	}
}
