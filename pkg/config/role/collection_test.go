package role

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"agentteam/pkg/execenv/trust/trusttest"
	"agentteam/pkg/team"
)

// collected loads the files of testdata/collection as those of another program.
func collected(t *testing.T) Roles {
	t.Helper()
	own, err := trusttest.Own(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_CONFIG_HOME", own)
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, foreignDir), os.DirFS("testdata/collection/agents")); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	roles, err := Load(".")
	if err != nil {
		t.Fatal(err)
	}
	return roles
}

// summary is what a role states of tools, model, mode and the rest.
func summary(r team.Role) string {
	parts := []string{strings.Join(r.Tools, ","), r.Model}
	add := func(is bool, format string, args ...any) {
		if is {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	h := r.Policy
	add(r.DisallowedTools != nil, "not %s", strings.Join(r.DisallowedTools, ","))
	add(h.PermissionMode != "", "mode %s", h.PermissionMode)
	add(h.PermissionAsk != "", "ask %s", h.PermissionAsk)
	add(r.PlanMode, "plan")
	add(r.MaxTurns > 0, "turns %d", r.MaxTurns)
	add(r.Color != "", "%s", r.Color)
	add(h.Isolation != "", "isolation %s", h.Isolation)
	add(r.Background, "background")
	add(r.Effort != "", "effort %s", r.Effort)
	add(r.Skills != nil, "skills %s", strings.Join(r.Skills, ","))
	add(r.MCPServers != nil, "servers %s", strings.Join(r.MCPServers, ","))
	return strings.Join(parts, "; ")
}

// Files as other programs have them load unchanged, and come to what they state.
func TestCollection(t *testing.T) {
	roles := collected(t)
	want := map[string]string{
		"code-reviewer":         "Read,Grep,Glob,Bash; ",
		"debugger":              "Read,Edit,Bash,Grep,Glob; ",
		"data-scientist":        "Bash,Read,Write; sonnet",
		"backend-architect":     "; opus",
		"docs-researcher":       "Read,WebFetch,WebSearch,mcp__context7__resolve-library-id,mcp__context7__get-library-docs; haiku; cyan",
		"frontend-developer":    "Write,Read,MultiEdit,Bash,Grep,Glob; ; blue",
		"test-writer-fixer":     "; ; cyan",
		"security-auditor":      "Read,Grep,Glob; opus",
		"api-documenter":        "Read,Write,Edit; ",
		"generalist":            "*; ",
		"all-rounder":           "*; ",
		"incident-responder":    "; sonnet",
		"thinker":               "none; ",
		"missing-name":          "Read,Bash; ",
		"sql-pro":               "Read,Write,Edit,Bash; ",
		"windows-dev":           "Read,Edit; sonnet",
		"marked":                "Read; ",
		"safe-researcher":       "; ; not Write,Edit,NotebookEdit",
		"no-shell":              "Read,Write,Bash; ; not Bash",
		"architect-planner":     "Read,Grep,Glob,Bash; ; plan",
		"refactorer":            "; ; mode acceptEdits; turns 40", // acceptEdits grants, which nobody has trusted
		"yolo":                  "; ; mode bypassPermissions",
		"quiet-worker":          "Read,Bash; ; ask deny",
		"log-watcher":           "Bash,Read; ; turns 15; background; effort low",
		"experimenter":          "; ; orange; isolation worktree",
		"api-developer":         "; sonnet; skills api-conventions,error-handling-patterns",
		"browser-tester":        "; ; servers playwright,github",
		"git-helper":            "Bash(git log:*, git diff:*),Read,Task(worker, researcher); ",
		"prompt-engineer":       "Read,Write; claude-opus-4-1-20250805",
		"fast-one":              "; ",
		"business-analyst":      "Read,Write; haiku",
		"kubernetes-specialist": "Read,Write,Edit,Bash,Glob,Grep; sonnet",
	}
	if len(want) < 30 {
		t.Errorf("%d files are in the table, want 30", len(want))
	}
	for name, want := range want {
		r, ok := roles.All[name]
		if got := summary(r); !ok || got != want {
			t.Errorf("%s is %q (there: %v), want %q", name, got, ok, want)
		}
		if !strings.HasPrefix(r.Instructions, "You are a specialist.") || strings.Contains(r.Instructions, "\r") {
			t.Errorf("%s is instructed %q", name, r.Instructions)
		}
		if b := r.Brief(); b == "" || strings.ContainsAny(b, "\n<") || len([]rune(b)) > 300 {
			t.Errorf("%s is described as %q", name, b)
		}
	}
	if len(roles.Files) != len(want) {
		t.Errorf("%d files gave roles, want %d", len(roles.Files), len(want))
	}
	if strings.Contains(fmt.Sprint(roles.All), "hunter2") {
		t.Error("the configuration of a server is kept, with its secret")
	}
}

// Of a file that no person has trusted only texts count, and what narrows; a role that is there loses no limit by it.
func TestUntrustedRoles(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	dir := t.TempDir()
	for name, text := range map[string]string{
		".agents/explorer.md":       "---\ndescription: mine\nmodel: big\nnetwork: full\nplan_mode: true\n---\nDo all.\n",
		".agents/fetcher.md":        "---\ndescription: d\ncredentials: [gh]\npermissions: {deny: [Bash(rm *)], allow: [Bash]}\nskills: [x]\n---\n",
		".claude/agents/yolo.md":    "---\nname: yolo\ndescription: d\npermissionMode: bypassPermissions\nmodel: opus\n---\n",
		".claude/agents/careful.md": "---\nname: careful\ndescription: d\ntools: Read, Grep\npermissionMode: plan\n---\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	before, err := Load(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	roles, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]string{"explorer": {"model", "network"}, "fetcher": {"credentials", "permissions.allow"}, "yolo": {"permissionMode", "model"}, "careful": nil} {
		if got := roles.Waiting[name].Names(); !slices.Equal(got, want) {
			t.Errorf("of %s wait %q, want %q", name, got, want)
		}
	}
	explorer, was := roles.All["explorer"], before.All["explorer"]
	if explorer.Description != "mine" || explorer.Instructions != "Do all." || !explorer.PlanMode || !slices.Equal(explorer.Tools, was.Tools) || explorer.Model != was.Model || explorer.Policy.Network != nil {
		t.Errorf("explorer is %+v\nand was %+v", explorer, was)
	}
	if f := roles.All["fetcher"]; f.Policy.Credentials != nil || f.Policy.Permissions.Allow != nil || len(f.Policy.Permissions.Deny) != 1 || len(f.Skills) != 1 {
		t.Errorf("fetcher is %+v", f)
	}
	if y := roles.All["yolo"]; y.Policy.PermissionMode != "" || y.Model != "" {
		t.Errorf("yolo is %+v", y)
	}
	if c := roles.All["careful"]; !c.PlanMode || len(c.Tools) != 2 {
		t.Errorf("careful is %+v", c)
	}
}

// What does not count of them is told with file and line.
func TestCollectionNotices(t *testing.T) {
	roles := collected(t)
	known := func(name string) bool {
		return slices.Contains([]string{"bash", "read_file"}, team.NativeTool(name)) || slices.Contains([]string{"Read", "Write", "Edit", "MultiEdit", "Bash", "Grep", "Glob"}, name)
	}
	var got []string
	for _, n := range append(roles.Notices, roles.Unknown(known)...) {
		got = append(got, strings.TrimPrefix(n.String(), foreignDir+"/"))
	}
	for _, want := range []string{
		"no-front-matter.md:1:1: a role file begins with ---; the file is left out",
		"mcp-hooks.md:12:1: unknown key \"memory\" is left out",
		"mcp-hooks.md:13:1: unknown key \"hooks\" is left out",
		"mcp-hooks.md:4:1: the names of mcpServers are kept, and nothing uses them yet",
		"strange-model.md:4:1: model: \"the fastest (cheap)\" cannot be the name of a model; its members use the team's default",
		"unquoted-colons.md:6:1: unknown key \"version\" is left out",
		"docs-researcher.md:4:8: tools of MCP servers are left out, for there are none yet: mcp__context7__resolve-library-id, mcp__context7__get-library-docs",
		"docs-researcher.md:4:8: tools that are not here are left out: WebFetch, WebSearch",
		"narrowed.md:4:8: Bash(git log:*, git diff:*) is left out, for a tool cannot be narrowed here; name Bash, and state under permissions what it may do",
		"narrowed.md:4:8: tools that are not here are left out: Task(worker, researcher)",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, strings.Join(got, "\n"))
		}
	}
}

// A role file of ours states all of the keys.
func TestParseAll(t *testing.T) {
	const src = `---
name: full
description: has all keys
tools: [Read, "Bash"]
disallowedTools: Write, Bash(rm *)
model: small
max_turns: 5
plan_mode: true
approver: human
dialect: claude
color: pink
max_instances: 2
auto_claim: false
idle_timeout: 90s
background: true
sandbox: bubblewrap
isolation: worktree
network: none
permissions: {deny: ["Bash(git push *)"]}
permission_mode: read-only
permission_ask: deny
---
Do it.
`
	got, err := parse("full.md", []byte(src), nil)
	if err != nil || len(got.notices) > 0 {
		t.Fatal(err, got.notices)
	}
	r := got.Role
	if r.MaxInstances != 2 || r.Claims() || r.IdleSeconds != 90 || !r.Background || r.Color != "pink" || r.Policy.Sandbox != team.Bubblewrap ||
		!slices.Equal(r.DisallowedTools, []string{"Write"}) || !slices.Equal(r.Policy.Permissions.Deny, []string{"Bash(git push *)", "Bash(rm *)"}) {
		t.Errorf("got %+v", r)
	}
	for src, want := range map[string]string{
		"max_instances: -1": "a.md:3:16: max_instances: \"-1\" is not a whole number, 0 or more",
		"idle_timeout: 10":  "a.md:3:15: idle_timeout: \"10\" is not a duration such as 500ms or 2m, 1s or more",
		"auto_claim: maybe": "a.md:3:13: auto_claim must be true or false",
		"color: mauve":      "a.md:3:8: color: \"mauve\" is not known; allowed: red, blue, green, yellow, purple, orange, pink, cyan, magenta, white",
		"isolation: tree":   "a.md:3:12: isolation: \"tree\" is not known; allowed: auto, worktree, shared",
	} {
		if _, err := parse("a.md", []byte("---\ndescription: d\n"+src+"\n---\n"), nil); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", src, err, want)
		}
	}
}
