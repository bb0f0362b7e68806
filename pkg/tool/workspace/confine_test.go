package workspace_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"agentteam/pkg/team"
	"agentteam/pkg/tool/command"
	"agentteam/pkg/tool/workspace"
)

// touching is a call of each tool that takes a path, on this one. What else a tool requires is
// its name, unless that is no use here.
func (p place) touching(path string) map[string]args {
	p.t.Helper()
	usual := args{"content": "mine", "old_string": "secret", "new_string": "mine", "pattern": "secret"}
	calls := map[string]args{}
	for _, spec := range p.set.Specs() {
		var schema struct {
			Properties map[string]any
			Required   []string
		}
		if err := json.Unmarshal(spec.Schema, &schema); err != nil {
			p.t.Fatal(err)
		}
		if schema.Properties["path"] == nil {
			continue
		}
		a := args{}
		for _, name := range schema.Required {
			a[name] = cmp.Or(usual[name], any(name))
		}
		a["path"] = path
		calls[spec.Name] = a
	}
	if len(calls) < 5 {
		p.t.Fatalf("only %v take a path", slices.Sorted(maps.Keys(calls)))
	}
	return calls
}

// A tool that only reads leaves the folder as it is, whatever it is called on.
func TestReadOnlyToolsChangeNothing(t *testing.T) {
	p := open(t, workspace.Options{})
	p.put("sub/a.txt", "secret")
	p.link("sub", "dir")
	look := func() (all string) {
		err := filepath.WalkDir(p.dir, func(path string, d os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			data, _ := os.ReadFile(path) // of a folder nothing
			all += fmt.Sprintln(path, info.Mode(), info.ModTime(), string(data))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	before := look()
	for _, path := range []string{"sub/a.txt", "dir/a.txt", "sub", "new.txt", "new/er.txt"} {
		for name, a := range p.touching(path) {
			if !p.set.Traits(name).ReadOnly {
				continue
			}
			if p.call(name, a); look() != before {
				t.Fatalf("%s %s has changed the folder:\n%s", name, path, look())
			}
		}
	}
}

func TestNothingLeadsOut(t *testing.T) {
	p := open(t, workspace.Options{})
	outside := t.TempDir()
	secret := filepath.Join(outside, "秘密.txt")
	if err := os.WriteFile(secret, []byte("secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	toOutside, err := filepath.Rel(p.dir, outside)
	if err != nil {
		t.Fatal(err)
	}
	p.put("sub/in.txt", "in")
	p.link(outside, "absolute")
	p.link(toOutside, "relative")
	p.link(secret, "file")
	p.link("relative", "chain")
	p.link("../"+toOutside, "sub/up")
	for _, path := range []string{
		secret, "../x", "sub/../../x", toOutside + "/秘密.txt", "/", "/etc/passwd", p.dir + "-other/x",
		"absolute/秘密.txt", "relative/秘密.txt", "chain/秘密.txt", "sub/up/秘密.txt", "file", "absolute/new/file", "relative/new",
	} {
		for tool, a := range p.touching(path) {
			p.fails(team.PermissionDenied, tool, a)
		}
	}
	for _, pattern := range []string{"../*", "/etc/*", "sub/../../*", "*/../../*"} {
		p.fails(team.PermissionDenied, "glob", args{"pattern": pattern})
	}
	// A search from above meets the links and does not go through them.
	if got := p.ok("grep", args{"pattern": "secret"}); got != "(no matches)" {
		t.Errorf("grep went out: %s", got)
	}
	if got := p.ok("glob", args{"pattern": "**"}); strings.Contains(got, "秘密") {
		t.Errorf("glob went out: %s", got)
	}
	entries, err := os.ReadDir(outside)
	if data, _ := os.ReadFile(secret); err != nil || len(entries) != 1 || string(data) != "secret" {
		t.Errorf("the outside was changed: %v, %q, %v", entries, data, err)
	}
}

func TestLinksInsideWork(t *testing.T) {
	p := open(t, workspace.Options{})
	p.put("sub/a.txt", "secret")
	p.put("b/c.txt", "secret")
	p.link("sub", "dir")
	p.link("../b/c.txt", "sub/up")
	p.link("sub/up", "chain")
	p.link("b/new.txt", "dangling")
	p.link("loop", "loop")
	for _, path := range []string{"dir/a.txt", "sub/up", "chain", "dir/up"} {
		if got := p.ok("read_file", args{"path": path}); got != "secret" {
			t.Errorf("read %s: %q", path, got)
		}
		p.ok("edit_file", args{"path": path, "old_string": "secret", "new_string": "changed"})
		if got := p.get(path); got != "changed" {
			t.Errorf("after the edit %s holds %q", path, got)
		}
		p.ok("write_file", args{"path": path, "content": "secret"})
	}
	p.ok("write_file", args{"path": "dangling", "content": "new"})
	if got := p.get("b/new.txt"); got != "new" {
		t.Errorf("written through a link to a new file: %q", got)
	}
	for _, name := range []string{"chain", "sub/up", "dangling", "dir"} {
		if info, err := os.Lstat(p.path(name)); err != nil || info.Mode()&os.ModeSymlink == 0 {
			t.Errorf("%s is no link any more: %v, %v", name, info, err)
		}
	}
	if got := p.ok("glob", args{"pattern": "*", "path": "dir"}); got != "dir/a.txt\ndir/up" {
		t.Errorf("glob below a link: %q", got)
	}
	for tool, a := range p.touching("loop") {
		p.fails(team.InvalidArgument, tool, a)
	}
}

// A plain open of a named pipe waits for its other end: without the check these
// calls would not return.
func TestOnlyRegularFilesAreOpened(t *testing.T) {
	p := open(t, workspace.Options{})
	if err := syscall.Mkfifo(p.path("pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	p.link("pipe", "link")
	p.put("folder/a.txt", "secret")
	for _, path := range []string{"pipe", "link"} {
		for tool, a := range p.touching(path) {
			p.call(tool, a) // returns
		}
		for _, tool := range []string{"read_file", "write_file", "edit_file", "glob", "grep"} {
			if got := p.fails(team.InvalidArgument, tool, p.touching(path)[tool]); tool != "glob" && !strings.Contains(got, "named pipe") {
				t.Errorf("%s %s: %s", tool, path, got)
			}
		}
	}
	for _, tool := range []string{"read_file", "write_file", "edit_file"} {
		for _, path := range []string{"folder", "."} {
			p.fails(team.InvalidArgument, tool, p.touching(path)[tool])
		}
		p.fails(team.InvalidArgument, tool, p.touching("folder/a.txt/b")[tool])
		p.fails(team.InvalidArgument, tool, p.touching(strings.Repeat("长", 100))[tool])
		p.fails(team.InvalidArgument, tool, p.touching("")[tool])
		p.fails(team.InvalidArgument, tool, p.touching("a\x00b")[tool])
	}
	if got := p.ok("grep", args{"pattern": "secret"}); got != "folder/a.txt:1:secret" {
		t.Errorf("grep beside a pipe: %q", got)
	}
}

func TestAbsolutePathsInside(t *testing.T) {
	p := open(t, workspace.Options{})
	p.ok("write_file", args{"path": p.path("新/文件 🚀.txt"), "content": "内容"})
	if got := p.ok("read_file", args{"path": p.path("新/文件 🚀.txt")}); got != "内容" {
		t.Errorf("read %q", got)
	}
	if got := p.ok("glob", args{"pattern": p.dir + "/**/*.txt"}); got != "新/文件 🚀.txt" {
		t.Errorf("glob %q", got)
	}
	if got := p.ok("grep", args{"pattern": "内", "path": p.path("新")}); got != "新/文件 🚀.txt:1:内容" {
		t.Errorf("grep %q", got)
	}

	// A workspace that is named through a link is known under both names.
	linked := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(p.dir, linked); err != nil {
		t.Fatal(err)
	}
	w, err := workspace.Open(linked, command.Plain{}, workspace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	q := p
	q.set = newSet(t, w)
	for _, dir := range []string{linked, p.dir} {
		if got := q.ok("read_file", args{"path": dir + "/新/文件 🚀.txt"}); got != "内容" {
			t.Errorf("read %q", got)
		}
	}
}
