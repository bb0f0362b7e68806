package workspace_test

import (
	"strings"
	"testing"

	"agentteam/pkg/team"
	"agentteam/pkg/tool/workspace"
)

// Several edits of a file are done one after another, all or none.
func TestMultiEdit(t *testing.T) {
	type edits []map[string]any
	for name, path := range map[string]string{"multi_edit": "path", "MultiEdit": "file_path"} {
		p := open(t, workspace.Options{})
		p.put("f", "one\ntwo\nthree\ntwo\n")
		p.fails(team.Conflict, name, args{path: "f", "edits": edits{{"old_string": "one", "new_string": "1"}, {"old_string": "four", "new_string": "4"}}})
		got := p.fails(team.InvalidArgument, name, args{path: "f", "edits": edits{{"old_string": "one", "new_string": "1"}, {"old_string": "two", "new_string": "2"}}})
		if !strings.Contains(got, "edits[1]: old_string: 2 times in f") || !strings.Contains(got, "none of the 2 was done") {
			t.Errorf("%s: %s", name, got)
		}
		p.fails(team.InvalidArgument, name, args{path: "f"})
		p.fails(team.InvalidArgument, name, args{path: "f", "edits": edits{}})
		p.fails(team.InvalidArgument, name, args{path: "f", "edits": edits{{"old_string": "", "new_string": "1"}}})
		p.fails(team.InvalidArgument, name, args{path: "f", "old_string": "one", "new_string": "1", "edits": edits{{"old_string": "one", "new_string": "1"}}})
		if got := p.get("f"); got != "one\ntwo\nthree\ntwo\n" {
			t.Fatalf("%s: what was refused has changed the file: %q", name, got)
		}
		got = p.ok(name, args{path: "f", "edits": edits{{"old_string": "one", "new_string": "1"}, {"old_string": "1\ntwo", "new_string": "1\n2"}, {"old_string": "t", "new_string": "T", "replace_all": true}}})
		if want := "1\n2\nThree\nTwo\n"; p.get("f") != want || !strings.HasPrefix(got, "replaced 4 in f\n") {
			t.Errorf("%s: %s, file %q", name, got, p.get("f"))
		}
		p.put("f", "another's")
		p.fails(team.Conflict, name, args{path: "f", "edits": edits{{"old_string": "another", "new_string": "mine"}}})
	}
}

// The result of a change shows what was changed, in few lines.
func TestDiff(t *testing.T) {
	p := open(t, workspace.Options{})
	p.put("f", "a\nb\nc\nd\ne\nf\n")
	if got, want := p.ok("edit_file", args{"path": "f", "old_string": "c\n", "new_string": "C\n"}), "replaced 1 in f\n@@ -2,3 +2,3 @@\n b\n-c\n+C\n d"; got != want {
		t.Errorf("edit_file: %q, want %q", got, want)
	}
	if got, want := p.ok("write_file", args{"path": "f", "content": "a\nb\nC\nd\ne\nf\ng\n"}), "wrote 14 bytes to f\n@@ -6 +6,2 @@\n f\n+g"; got != want {
		t.Errorf("write_file: %q, want %q", got, want)
	}
	if got := p.ok("write_file", args{"path": "new", "content": "a\n"}); got != "wrote 2 bytes to new" {
		t.Errorf("a new file: %q", got)
	}
	// However much is changed, and however long the lines are.
	for name, text := range map[string]string{"lines": strings.Repeat("line\n", 50_000), "a line": strings.Repeat("x", 400_000), "huge": strings.Repeat("line\n", 400_000)} {
		p.ok("bash", args{"command": "rm -f g"})
		p.put("g", "before\n")
		p.ok("read_file", args{"path": "g"})
		if got := p.ok("write_file", args{"path": "g", "content": text}); len(got) > 3200 {
			t.Errorf("%s: a result of %d bytes", name, len(got))
		}
	}
}
