package workspace_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentteam/pkg/team"
	"agentteam/pkg/tool/command"
	"agentteam/pkg/tool/workspace"
)

// What somebody else has written since the agent read a file is not overwritten, also
// through a link.
func TestStaleWrite(t *testing.T) {
	p := open(t, workspace.Options{})
	other := p.put
	p.put("a.txt", "one")
	p.link("a.txt", "link")
	p.ok("read_file", args{"path": "link"})
	other("a.txt", "other")
	p.fails(team.Conflict, "write_file", args{"path": "a.txt", "content": "mine"})
	p.fails(team.Conflict, "edit_file", args{"path": "link", "old_string": "other", "new_string": "mine"})
	p.ok("read_file", args{"path": "a.txt"})
	p.ok("edit_file", args{"path": "link", "old_string": "other", "new_string": "mine"})
	p.ok("write_file", args{"path": "a.txt", "content": "mine again"}) // its own edit is known
	other("a.txt", "two")
	p.fails(team.Conflict, "write_file", args{"path": "a.txt", "content": "mine"})
	if err := os.Remove(filepath.Join(p.dir, "a.txt")); err != nil {
		t.Fatal(err)
	}
	p.ok("write_file", args{"path": "a.txt", "content": "anew"})
	p.put("never-read.txt", "x")
	p.ok("write_file", args{"path": "never-read.txt", "content": "y"})
}

// After a restart nothing is known of the files that an earlier process has read.
func TestWriteAfterResume(t *testing.T) {
	p := open(t, workspace.Options{})
	p.put("a.txt", "one")
	at := workspace.Follow(workspace.Shared{Dir: p.dir, Runner: command.Plain{}}, func() workspace.Work { return workspace.Work{} }, workspace.Options{})
	t.Cleanup(at.Close)
	at.Resume()
	p.set = newSet(t, at)
	p.fails(team.Conflict, "write_file", args{"path": "a.txt", "content": "mine"})
	p.ok("edit_file", args{"path": "a.txt", "old_string": "one", "new_string": "two"})
	p.ok("write_file", args{"path": "a.txt", "content": "mine"})
	p.ok("write_file", args{"path": "new.txt", "content": "mine"})
}

func TestClusterFolderIsOutOfReach(t *testing.T) {
	p := open(t, workspace.Options{})
	p.put(".agentteam/store/x", "secret")
	p.put("sub/.agentteam/x", "secret")
	p.put("mine", "secret")
	for link, to := range map[string]string{"link": ".agentteam", "sub/link": "../link/store", "file": "link/store/x", "dangling": "link/new"} {
		p.link(to, link)
	}
	for _, path := range []string{".agentteam", ".agentteam/store/x", "sub/.agentteam/x", p.dir + "/.agentteam/new", "sub/../.agentteam/new",
		"link", "link/store/x", "link/new/er", "sub/link/x", "file", "dangling"} {
		for name, a := range p.touching(path) {
			p.fails(team.PermissionDenied, name, a)
		}
	}
	if got := p.ok("grep", args{"pattern": "secret"}); got != "mine:1:secret" {
		t.Errorf("grep: %s", got)
	}
	if got := p.ok("glob", args{"pattern": "**/x"}); got != "(no matches)" {
		t.Errorf("glob: %s", got)
	}
}

func TestGitignore(t *testing.T) {
	p := open(t, workspace.Options{})
	for name, text := range map[string]string{
		".gitignore":          "# built\r\nnode_modules/\n*.log\n!keep.log\n/top.js\n",
		"src/.gitignore":      "gen\n",
		"src/app.js":          "x",
		"src/gen/out.js":      "x",
		"src/keep.log":        "x",
		"src/drop.log":        "x",
		"src/top.js":          "x",
		"top.js":              "x",
		"lib/gen/in.js":       "x",
		"node_modules/a.js":   "x",
		"node_modules/b/c.js": "x",
	} {
		p.put(name, text)
	}
	for _, tt := range []struct{ tool, key, pattern, path, want string }{
		{"glob", "pattern", "**/*.js", ".", "lib/gen/in.js\nsrc/app.js\nsrc/top.js"},
		{"grep", "pattern", "^x", ".", "lib/gen/in.js:1:x\nsrc/app.js:1:x\nsrc/keep.log:1:x\nsrc/top.js:1:x"},
		{"glob", "pattern", "**/*.js", "node_modules", "node_modules/a.js\nnode_modules/b/c.js"}, // asked for by name
		{"glob", "pattern", "*.js", "node_modules/b", "node_modules/b/c.js"},
		{"glob", "pattern", "**", "src", "src/.gitignore\nsrc/app.js\nsrc/keep.log\nsrc/top.js"},
		{"grep", "pattern", "x", "top.js", "top.js:1:x"},
	} {
		if got := p.ok(tt.tool, args{tt.key: tt.pattern, "path": tt.path}); strings.TrimPrefix(got, "./") != tt.want {
			t.Errorf("%s %s in %s:\n%s\nwant\n%s", tt.tool, tt.pattern, tt.path, got, tt.want)
		}
	}
}

// Whoever may write one file only writes no other, by whatever name or link, and leaves
// nothing behind.
func TestWritable(t *testing.T) {
	const own = "deliverables/T-001-x.md"
	p := open(t, workspace.Options{Writable: func(name string) error {
		if name == own {
			return nil
		}
		return team.Errorf(team.PermissionDenied, "%s is not for you", name)
	}})
	p.put("src.go", "package src")
	p.ok("write_file", args{"path": own, "content": "one"})
	p.ok("write_file", args{"path": "./deliverables/../" + own, "content": "two"})
	p.ok("edit_file", args{"path": own, "old_string": "two", "new_string": "three"})
	p.ok("read_file", args{"path": "src.go"})
	p.fails(team.PermissionDenied, "write_file", args{"path": "src.go", "content": "x"})
	p.fails(team.PermissionDenied, "edit_file", args{"path": "src.go", "old_string": "src", "new_string": "x"})
	p.fails(team.PermissionDenied, "write_file", args{"path": "other/new.md", "content": "x"})
	if _, err := os.Stat(filepath.Join(p.dir, "other")); !os.IsNotExist(err) {
		t.Errorf("a folder is left of a file that was refused: %v", err)
	}
	p.link(own, "mine.md")
	p.ok("read_file", args{"path": "mine.md"})
	p.ok("write_file", args{"path": "mine.md", "content": "four"})
	if err := os.Remove(filepath.Join(p.dir, own)); err != nil {
		t.Fatal(err)
	}
	p.link("../src.go", own)
	p.fails(team.PermissionDenied, "write_file", args{"path": own, "content": "x"})
	if data, err := os.ReadFile(filepath.Join(p.dir, "src.go")); err != nil || string(data) != "package src" {
		t.Errorf("src.go is %q, %v", data, err)
	}
}
