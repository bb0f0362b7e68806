package runtime

import (
	"bytes"
	"encoding/json"
	"flag"
	"log/slog"
	"os"
	"testing"

	"agentteam/pkg/agent"
	"agentteam/pkg/config/role"
	"agentteam/pkg/store/approval"
	"agentteam/pkg/team"
	"agentteam/pkg/tool"
	"agentteam/pkg/tool/job"
	"agentteam/pkg/tool/workspace"
)

var updateTools = flag.Bool("update", false, "write docs/tools.json")

// docs/tools.json has the tools that models are offered, as they read them: those of the leader,
// then those that only a teammate has.
func TestToolsInTheDocs(t *testing.T) {
	const file = "../../../docs/tools.json"
	t.Setenv("XDG_CONFIG_HOME", t.TempDir()) // without the roles of the user that runs this
	loaded, err := role.Load(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	type offer struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Arguments   json.RawMessage `json:"arguments"`
	}
	var all []offer
	had := map[string]bool{}
	for _, of := range []team.Member{{AgentID: team.Leader, Role: team.LeaderRole}, {AgentID: "coder-1", Role: "coder"}} {
		for _, s := range offered(t, of, loaded.All).Specs() {
			if !had[s.Name] {
				had[s.Name] = true
				all = append(all, offer{s.Name, s.Description, s.Schema})
			}
		}
	}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(all); err != nil {
		t.Fatal(err)
	}
	if *updateTools {
		if err := os.WriteFile(file, text.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, text.Bytes()) {
		t.Errorf("%s is not that of the tools (%v): go test ./pkg/agent/runtime -run ToolsInTheDocs -update", file, err)
	}
}

// offered are the tools of a member that has subagents and jobs.
func offered(t *testing.T, of team.Member, roles map[string]team.Role) *tool.Set {
	t.Helper()
	jobs := job.New(job.Options{})
	t.Cleanup(func() { jobs.Close() })
	m := &member{jobs: jobs, gate: new(approval.Gate), Options: Options{Member: of, Aliases: []string{"big", "small"}, Logger: slog.New(slog.DiscardHandler)}}
	m.Record = team.Team{ID: "default", Roles: roles, Policies: team.Policies{Dialect: team.Native}}
	set, _, err := m.tools(workspace.Follow(nil, nil, workspace.Options{Begin: m.begin}), nil, &agent.Conversation{})
	if err != nil {
		t.Fatal(err)
	}
	return set
}
