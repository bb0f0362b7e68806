package runtime

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"agentteam/pkg/agent/engine"
	"agentteam/pkg/model"
	"agentteam/pkg/store/approval"
	"agentteam/pkg/store/board"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/team"
	"agentteam/pkg/tool"
	"agentteam/pkg/tool/command"
	"agentteam/pkg/tool/workspace"
)

// owner is coder-1 with these tools, in a team that has no NATS server.
func owner(t *testing.T, tools []string, record team.Team) *member {
	m := &member{names: tools, Options: Options{Member: team.Member{AgentID: "coder-1", Role: "coder"}, Logger: slog.New(slog.DiscardHandler)}}
	m.newest.Store(&record)
	m.current = workspace.Follow(workspace.Shared{Dir: t.TempDir(), Runner: command.Plain{}}, m.doing, workspace.Options{})
	m.hand = board.NewClaimSlot(t.Context(), nil, m.Member.Holder())
	m.asks = (&approval.Plans{}).Permissions(m.Member, nil, m.judge)
	m.Level = func(context.Context, team.Team, string) team.Sandbox { return team.Bubblewrap }
	t.Cleanup(m.current.Close)
	return m
}

// A subagent has what its role has of the tools of its owner, and never more.
func TestToolsOfSubagent(t *testing.T) {
	all := []string{"bash", "read_file", "write_file", "edit_file", "glob", "grep", "skill"}
	looks := []string{"read_file", "glob", "grep", "skill"}
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
			m := owner(t, tt.owner, team.Team{})
			set, changes, err := m.subagentTools(tt.role, team.Native, m.lending(tt.role))
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

// The tool skill gives no file that a rule denies to read: of the team, and for a subagent of its type.
func TestDeniedFilesOfSkill(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(home, ".config"))
	for name, text := range map[string]string{"SKILL.md": "---\nname: deploy\ndescription: Deploys\n---\nGo.\n", ".env": "hunter2", "keys/a.pem": "hunter3", "go.sh": "true"} {
		path := filepath.Join(home, ".claude/skills/deploy", name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	m := owner(t, []string{"read_file"}, team.Team{Policy: team.Policy{Permissions: team.Permissions{Deny: []string{"Read(//**/.env)"}}}})
	own, err := tool.NewSet(nil, m.skillTool())
	if err != nil {
		t.Fatal(err)
	}
	kind := team.Role{Name: "type", Policy: team.Policy{Permissions: team.Permissions{Deny: []string{"Read(~/**/*.pem)"}}}}
	sub, _, err := m.subagentTools(kind, team.Native, m.lending(kind))
	if err != nil {
		t.Fatal(err)
	}
	for of, tt := range map[string]struct {
		tools engine.Tools
		files map[string]bool // whether they are given
	}{
		"the member":   {own, map[string]bool{".env": false, "keys/a.pem": true, "go.sh": true}},
		"its subagent": {sub, map[string]bool{".env": false, "keys/a.pem": false, "go.sh": true}},
	} {
		text := tt.tools.Run(t.Context(), tool.Call{Name: "skill", Arguments: `{"name":"deploy"}`}).Content
		for file, given := range tt.files {
			r := tt.tools.Run(t.Context(), tool.Call{Name: "skill", Arguments: `{"name":"deploy","file":"` + file + `"}`})
			if r.IsError == given || !given && r.Code != team.NotFound || strings.Contains(text, file) != given {
				t.Errorf("%s of %s: %s; the skill:\n%s", file, of, r.Content, text)
			}
		}
	}
}

// A subagent may do what its owner may, or reads only where its type may less.
func TestPermissionsOfSubagent(t *testing.T) {
	record := team.Team{Policy: team.Policy{Credentials: []string{"gh"}}, Roles: map[string]team.Role{"coder": {Name: "coder", Policy: team.Policy{PermissionMode: team.AcceptEdits, Permissions: team.Permissions{Deny: []string{"Bash(rm *)"}, Allow: []string{"Bash(true)"}}}}}}
	m := owner(t, []string{"bash", "read_file", "write_file"}, record)
	const write, list, remove = `write_file {"path":"a","content":"b"}`, `bash {"command":"ls"}`, `bash {"command":"rm a"}`
	for name, tt := range map[string]struct {
		by   team.Policy
		call string
		want string // in the refusal; "": it runs
	}{
		"nothing of its own":     {team.Policy{}, write, ""},
		"its type only reads":    {team.Policy{PermissionMode: team.ReadOnlyMode}, write, "in the mode read-only nothing is changed"},
		"which still may look":   {team.Policy{PermissionMode: team.ReadOnlyMode}, list, ""},
		"its type has less":      {team.Policy{Credentials: []string{}}, write, "in the mode read-only nothing is changed"},
		"which looks as well":    {team.Policy{Credentials: []string{}}, list, ""},
		"its type denies":        {team.Policy{Permissions: team.Permissions{Deny: []string{"Write(a)"}}}, write, `the rule "Write(a)" denies it`},
		"its owner denies":       {team.Policy{}, remove, `the rule "Bash(rm *)" denies it`},
		"its type allows that":   {team.Policy{Permissions: team.Permissions{Allow: []string{"Bash"}}}, remove, `the rule "Bash(rm *)" denies it`},
		"its type passes by all": {team.Policy{PermissionMode: team.BypassPermissions}, remove, `the rule "Bash(rm *)" denies it`},
	} {
		t.Run(name, func(t *testing.T) {
			kind := team.Role{Name: "type", Policy: tt.by}
			set, _, err := m.subagentTools(kind, team.Native, m.lending(kind))
			if err != nil {
				t.Fatal(err)
			}
			called, arguments, _ := strings.Cut(tt.call, " ")
			r := set.Run(t.Context(), tool.Call{Name: called, Arguments: arguments})
			if r.IsError != (tt.want != "") || !strings.Contains(strings.ReplaceAll(r.Content, `\"`, `"`), tt.want) {
				t.Errorf("%s: %s, want %q", tt.call, r.Content, tt.want)
			}
		})
	}
}

// A subagent reads what the repository states in the tree of its owner's task: what stands at its top
// before all else, and of a folder below once it has touched a file there, as far as it may read it.
func TestInstructionsOfSubagent(t *testing.T) {
	s := &trees{dir: t.TempDir()}
	r := newRigIn(t, s.dir, s)
	for name, text := range map[string]string{
		"tree-/AGENTS.md": "Rules of no task.", "tree-T-001/AGENTS.md": "Rules of the tree.", "tree-T-001/.git/HEAD": "",
		"tree-T-001/api/AGENTS.md": "Rules of the folder api.", "tree-T-001/api/x.go": "package api",
		"tree-T-001/web/AGENTS.md": "Rules of the folder web.", "tree-T-001/web/secret/CLAUDE.md": "Rules that it may not read.", "tree-T-001/web/secret/y.ts": "",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(s.dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r.assign(r.add("first")[0])
	r.model.next(t)
	r.model.calls("subagent", `{"prompt":"Look.","type":"tester"}`)
	says := func(has, not string) {
		t.Helper()
		heard := r.model.next(t)
		if !strings.Contains(heard, "You are coder-1.a") || strings.Count(heard, has) != 1 || not != "" && strings.Contains(heard, not) {
			t.Errorf("with %q once, and without %q, it is given\n%s", has, not, heard)
		}
	}
	says("Rules of the tree.", "Rules of no task.")
	r.model.calls("read_file", `{"path":"api/x.go"}`)
	says("Rules of the folder api.", "Rules of the folder web.")
	r.model.calls("read_file", `{"path":"api/x.go"}`, "write_file", `{"path":"web/secret/y.ts","content":"let y"}`)
	says("Rules of the folder web.", "Rules that it may not read.")
	r.model.answer(model.Reply{Message: model.Message{Role: "assistant", Content: "Looked."}, FinishReason: "stop"})
	if heard := r.model.next(t); !strings.Contains(heard, "Looked.") || strings.Contains(heard, "Rules of the folder") {
		t.Errorf("its owner is given\n%s", heard)
	}
}

// The model of a subagent is the one that its call names, else that of its type, else its owner's.
func TestModelOfSubagent(t *testing.T) {
	r := newRig(t)
	r.assign(r.add("first")[0])
	r.model.next(t)
	for _, tt := range []struct{ arguments, want string }{
		{`{"prompt":"Look.","type":"tester","model":"strong"}`, "strong"},
		{`{"prompt":"Look.","type":"tester"}`, "fast"},
		{`{"prompt":"Look.","type":"coder"}`, ""},
	} {
		r.model.calls("subagent", tt.arguments)
		if asked := brokertest.Receive(t, "the subagent asks", r.model.asked); asked.Model != tt.want {
			t.Errorf("%s asks the model %q, want %q", tt.arguments, asked.Model, tt.want)
		}
		r.model.answer(model.Reply{Message: model.Message{Role: "assistant", Content: "Looked."}, FinishReason: "stop"})
		r.model.next(t)
	}
}
