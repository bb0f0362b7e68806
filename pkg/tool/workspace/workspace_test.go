package workspace_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"agentteam/pkg/team"
	"agentteam/pkg/tool"
	"agentteam/pkg/tool/command"
	"agentteam/pkg/tool/workspace"
)

// place is a workspace in a temporary folder, used as an agent does.
type place struct {
	t   *testing.T
	dir string
	set *tool.Set
}

func open(t *testing.T, opts workspace.Options) place {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "工作区 🚀")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	w, err := workspace.Open(dir, command.Plain{}, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return place{t, dir, newSet(t, w)}
}

func newSet(t *testing.T, w interface{ Tools() []tool.Tool }) *tool.Set {
	t.Helper()
	set, err := tool.NewSet(nil, w.Tools()...)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

type args map[string]any

func (p place) call(name string, a args) tool.Result {
	p.t.Helper()
	text, err := json.Marshal(a)
	if err != nil {
		p.t.Fatal(err)
	}
	return p.set.Run(p.t.Context(), tool.Call{Name: name, Arguments: string(text)})
}

// ok calls a tool that must answer without an error, and returns what it says.
func (p place) ok(name string, a args) string {
	p.t.Helper()
	r := p.call(name, a)
	if r.IsError {
		p.t.Fatalf("%s %.100v: %s", name, a, r.Content)
	}
	return r.Content
}

// fails calls a tool that must answer with that code, and returns what it says.
func (p place) fails(code team.Code, name string, a args) string {
	p.t.Helper()
	r := p.call(name, a)
	if !r.IsError || r.Code != code {
		p.t.Errorf("%s %.100v: code %q, want %q: %.300s", name, a, r.Code, code, r.Content)
	}
	return r.Content
}

func (p place) path(name string) string { return filepath.Join(p.dir, name) }

func (p place) put(name, content string) {
	p.t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(p.path(name)), 0o755), os.WriteFile(p.path(name), []byte(content), 0o644)); err != nil {
		p.t.Fatal(err)
	}
}

func (p place) get(name string) string {
	p.t.Helper()
	data, err := os.ReadFile(p.path(name))
	if err != nil {
		p.t.Fatal(err)
	}
	return string(data)
}

func (p place) link(target, name string) {
	p.t.Helper()
	if err := os.Symlink(target, p.path(name)); err != nil {
		p.t.Fatal(err)
	}
}

func TestOpenRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	refused := map[string]team.Code{
		filepath.Join(t.TempDir(), "没有"): team.NotFound,
		file:                             team.InvalidArgument,
	}
	if runtime.GOOS == "linux" {
		refused["/proc"] = team.InvalidState // not writable for root either
	}
	for dir, code := range refused {
		_, err := workspace.Open(dir, command.Plain{}, workspace.Options{})
		if team.CodeOf(err) != code || !strings.Contains(err.Error(), dir) {
			t.Errorf("Open(%s): %v, want %s naming the folder", dir, err, code)
		}
	}
}

func TestOpenLeavesNothingBehind(t *testing.T) {
	p := open(t, workspace.Options{})
	if got := p.ok("glob", args{"pattern": "**"}); got != "(no matches)" {
		t.Errorf("a new workspace holds %s", got)
	}
}

func TestToolsAnswerToTheirOtherNames(t *testing.T) {
	p := open(t, workspace.Options{})
	p.ok("Write", args{"file_path": "a.txt", "content": "one"})
	p.ok("Edit", args{"file_path": "a.txt", "old_string": "one", "new_string": "two"})
	for name, want := range map[string]string{"Read": "two", "Glob": "a.txt", "Grep": "a.txt:1:two", "Bash": "two"} {
		a := map[string]args{"Read": {"file_path": "a.txt"}, "Glob": {"pattern": "*"}, "Grep": {"pattern": "t.o"}, "Bash": {"command": "cat a.txt", "description": "Show a file", "timeout": 1500}}[name]
		if got := p.ok(name, a); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	p.fails(team.InvalidArgument, "Bash", args{"command": "true", "timeout": 600_001})
	p.fails(team.InvalidState, "Bash", args{"command": "sleep 30", "timeout": 100}) // milliseconds
	for name, writes := range map[string]bool{"bash": true, "write_file": true, "edit_file": true, "read_file": false, "glob": false, "grep": false} {
		if p.set.Traits(name).Writes != writes {
			t.Errorf("%s writes: %v", name, !writes)
		}
	}
}
