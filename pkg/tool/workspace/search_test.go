package workspace_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"agentteam/pkg/team"
	"agentteam/pkg/tool"
	"agentteam/pkg/tool/workspace"
)

func tree(t *testing.T) place {
	p := open(t, workspace.Options{})
	for name, text := range map[string]string{
		"go.mod":               "module x\n",
		"cmd/a/main.go":        "package main // TODO: 一\n",
		"cmd/b/main.go":        "package main\r\n\r\n// TODO: two 🚀\r\n",
		"cmd/b/main_test.go":   "package main",
		"文档/说明.md":             "待办 TODO three",
		".git/HEAD":            "TODO: not this",
		"vendor/.git/HEAD":     "TODO: nor this",
		"bin/program":          "ELF\x00 TODO: nor a binary",
		".github/workflows/ci": "on: push\n",
	} {
		p.put(name, text)
	}
	return p
}

func TestGlob(t *testing.T) {
	p := tree(t)
	for _, tt := range []struct {
		a    args
		want string
	}{
		{args{"pattern": "*"}, ".github/ bin/ cmd/ go.mod vendor/ 文档/"},
		{args{"pattern": "**/*.go"}, "cmd/a/main.go cmd/b/main.go cmd/b/main_test.go"},
		{args{"pattern": "cmd/*/main.go"}, "cmd/a/main.go cmd/b/main.go"},
		{args{"pattern": "*/main.go", "path": "cmd"}, "cmd/a/main.go cmd/b/main.go"},
		{args{"pattern": "./cmd/{a,c}/*"}, "cmd/a/main.go"},
		{args{"pattern": "{go.mod,文档/*}"}, "go.mod 文档/说明.md"},
		{args{"pattern": "cmd/b/main.go"}, "cmd/b/main.go"},
		{args{"pattern": "文档/说*"}, "文档/说明.md"},
		{args{"pattern": "*.rs"}, "(no matches)"},
		{args{"pattern": "*", "path": ".git"}, ".git/HEAD"}, // who asks for it gets it
	} {
		if got := strings.Join(strings.Split(p.ok("glob", tt.a), "\n"), " "); got != tt.want {
			t.Errorf("%v: %s, want %s", tt.a, got, tt.want)
		}
	}
	p.fails(team.NotFound, "glob", args{"pattern": "*", "path": "没有"})
	p.fails(team.InvalidArgument, "glob", args{"pattern": "*", "path": "go.mod"})
	p.fails(team.InvalidArgument, "glob", args{"pattern": "[a"})
	p.fails(team.InvalidArgument, "glob", args{"pattern": ""})
}

func TestGrep(t *testing.T) {
	p := tree(t)
	for _, tt := range []struct {
		a    args
		want string
	}{
		{args{"pattern": "TODO:? (.*)"}, "cmd/a/main.go:1:package main // TODO: 一|cmd/b/main.go:3:// TODO: two 🚀|文档/说明.md:1:待办 TODO three"},
		{args{"pattern": "(?i)todo", "glob": "*.go"}, "cmd/a/main.go:1:package main // TODO: 一|cmd/b/main.go:3:// TODO: two 🚀"},
		{args{"pattern": "TODO", "glob": "cmd/b/*"}, "cmd/b/main.go:3:// TODO: two 🚀"},
		{args{"pattern": "TODO", "glob": "a/*", "path": "cmd"}, "cmd/a/main.go:1:package main // TODO: 一"},
		{args{"pattern": "^package main$"}, "cmd/b/main.go:1:package main|cmd/b/main_test.go:1:package main"}, // CRLF too
		{args{"pattern": "待办", "path": "文档/说明.md"}, "文档/说明.md:1:待办 TODO three"},
		{args{"pattern": "TODO", "path": "bin/program"}, "(no matches)"},
		{args{"pattern": "nowhere"}, "(no matches)"},
	} {
		if got := strings.Join(strings.Split(p.ok("grep", tt.a), "\n"), "|"); got != tt.want {
			t.Errorf("%v: %s, want %s", tt.a, got, tt.want)
		}
	}
	p.fails(team.NotFound, "grep", args{"pattern": "x", "path": "没有"})
	p.fails(team.InvalidArgument, "grep", args{"pattern": "("})
	p.fails(team.InvalidArgument, "grep", args{"pattern": ""})
	p.fails(team.InvalidArgument, "grep", args{"pattern": "x", "glob": "[a"})
}

func TestSearchesAreBounded(t *testing.T) {
	p := open(t, workspace.Options{})
	for i := range 1200 {
		p.put(fmt.Sprintf("f%04d", i), "hit\n")
	}
	for tool, a := range map[string]args{"glob": {"pattern": "*"}, "grep": {"pattern": "hit"}} {
		lines := strings.Split(p.ok(tool, a), "\n")
		if len(lines) != 1001 || lines[1000] != "[the first 1000 matches; there are more: narrow the search]" {
			t.Errorf("%s: %d lines, last %q", tool, len(lines), lines[len(lines)-1])
		}
	}
	p = open(t, workspace.Options{})
	for i := range 300 {
		p.put(fmt.Sprintf("%s/%03d", strings.Repeat("长", 80), i), "") // 240 bytes a name
	}
	got := p.ok("glob", args{"pattern": "**"})
	if len(got) > tool.MaxContent || strings.Contains(got, "bytes cut") || !strings.Contains(got, "there are more") {
		t.Errorf("glob of long names: %d bytes, end %q", len(got), got[len(got)-100:])
	}
}

func TestGrepCutsLongLines(t *testing.T) {
	p := open(t, workspace.Options{})
	p.put("min.js", "x"+strings.Repeat("🚀", 64<<10)+"\nshort\n"+strings.Repeat("长", 400))
	want := "min.js:1:x" + strings.Repeat("🚀", 124) + "...\nmin.js:2:short\nmin.js:3:" + strings.Repeat("长", 166) + "..."
	if got := p.ok("grep", args{"pattern": "."}); got != want {
		t.Errorf("got %.100q...", got)
	}
}

// A search shows nothing of the files that a rule is about, and says so; one of which the call as a whole was judged shows all.
func TestSearchHides(t *testing.T) {
	p := open(t, workspace.Options{Hides: func(_ context.Context, tool, dir, start string) (func(string) bool, error) {
		if start == dir+"/cmd" {
			return nil, team.Errorf(team.InvalidState, "the rules cannot be read")
		}
		return func(path string) bool {
			name, below := strings.CutPrefix(path, dir+"/")
			return path != start && below && (strings.HasSuffix(name, ".env") || start == dir && tool == "grep" && strings.HasPrefix(name, "secrets"))
		}, nil
	}})
	for _, name := range []string{"a", ".env", "sub/.env", "secrets/a", "secrets/b"} {
		p.put(name, "TODO")
	}
	for _, tt := range []struct {
		tool string
		a    args
		want string
	}{
		{"grep", args{"pattern": "TODO"}, "a:1:TODO [3 files or folders are not searched: rules of the permissions are about reading them]"},
		{"glob", args{"pattern": "**/*"}, "a secrets/ secrets/a secrets/b sub/ [2 files or folders are not searched: rules of the permissions are about reading them]"},
		{"grep", args{"pattern": "TODO", "path": "secrets"}, "secrets/a:1:TODO secrets/b:1:TODO"},
		{"grep", args{"pattern": "TODO", "path": ".env"}, ".env:1:TODO"},
	} {
		if got := strings.Join(strings.Split(p.ok(tt.tool, tt.a), "\n"), " "); got != tt.want {
			t.Errorf("%s %v: %s, want %s", tt.tool, tt.a, got, tt.want)
		}
	}
	p.put("cmd/a", "TODO")
	p.fails(team.InvalidState, "grep", args{"pattern": "TODO", "path": "cmd"})
}
