package workspace_test

import (
	"os"
	"strings"
	"testing"

	"agentteam/pkg/team"
	"agentteam/pkg/tool/workspace"
)

// onEdit opens a place in which a program runs after each edit, written as a script with this text.
func onEdit(t *testing.T, script string, args ...string) place {
	t.Helper()
	var program []string
	p := open(t, workspace.Options{OnEdit: func() []string { return program }})
	file := t.TempDir() + "/check"
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	program = append([]string{file}, args...)
	return p
}

// What the program of on_edit prints joins the result of every edit, and nothing does if it prints nothing.
func TestOnEdit(t *testing.T) {
	p := onEdit(t, `case $(cat "$2") in *bad*) echo "$1 $2: bad" >&2; exit 3;; esac`, "-l", "{file}")
	const says = "[on_edit, "
	if got := p.ok("write_file", args{"path": "a", "content": "bad\n"}); !strings.HasSuffix(got, "/check]\n-l a: bad\nexit status 3") {
		t.Errorf("write_file: %s", got)
	}
	if got := p.ok("edit_file", args{"path": "a", "old_string": "bad", "new_string": "very bad"}); !strings.HasSuffix(got, "/check]\n-l a: bad\nexit status 3") {
		t.Errorf("edit_file, the same again: %s", got)
	}
	if got := p.ok("edit_file", args{"path": "a", "old_string": "very bad", "new_string": "good"}); strings.Contains(got, says) {
		t.Errorf("nothing to say: %s", got)
	}
	got := p.ok("apply_patch", patchOf("*** Delete File: a", "*** Add File: b", "+bad", "*** Add File: c", "+good", "*** Add File: d", "+bad"))
	if strings.Count(got, says) != 2 || !strings.Contains(got, "-l b: bad") || !strings.Contains(got, "-l d: bad") {
		t.Errorf("apply_patch: %s", got)
	}
	// No shell reads the name, and no program takes it for an option.
	for _, name := range []string{"-rf", "$(touch hacked)", "; touch hacked", "`touch hacked`", "a b"} {
		want := "-l " + name + ": bad"
		if name[0] == '-' {
			want = "-l ./" + name + ": bad"
		}
		if got := p.ok("write_file", args{"path": name, "content": "bad\n"}); !strings.Contains(got, want) {
			t.Errorf("%s: %s", name, got)
		}
	}
	if _, err := os.Stat(p.path("hacked")); err == nil {
		t.Error("a shell has read a name")
	}
	p.fails(team.Conflict, "edit_file", args{"path": "a b", "old_string": "none", "new_string": "x"})
}

// The output is bounded, and an edit stands whatever comes of its program, which is reported once.
func TestOnEditFails(t *testing.T) {
	p := onEdit(t, "yes long | head -c 100000")
	if got := p.ok("write_file", args{"path": "a", "content": "x"}); len(got) > 4<<10+200 || !strings.HasSuffix(got, "[the rest is left out]") {
		t.Errorf("%d bytes: ...%.100s", len(got), got[len(got)-100:])
	}
	for name, script := range map[string]string{"exit": "exit 3", "signal": "kill -9 $$", "127": "echo none >&2; exit 127"} {
		p := onEdit(t, script, "{file}")
		first, second := p.ok("write_file", args{"path": "a", "content": "1"}), p.ok("write_file", args{"path": "a", "content": "2"})
		if !strings.Contains(first, "; the edit is made]") || strings.Contains(second, "on_edit") || p.get("a") != "2" {
			t.Errorf("%s: %s, then %s", name, first, second)
		}
	}
	q := open(t, workspace.Options{OnEdit: func() []string { return []string{"no-such-program", "{file}"} }})
	first, second := q.ok("write_file", args{"path": "a", "content": "1"}), q.ok("edit_file", args{"path": "a", "old_string": "1", "new_string": "2"})
	if !strings.Contains(first, "[on_edit, no-such-program: ") || strings.Contains(second, "on_edit") || q.get("a") != "2" {
		t.Errorf("missing: %s, then %s", first, second)
	}
	r := open(t, workspace.Options{OnEdit: func() []string { return []string{"touch", "ran"} }, MayRun: func() error { return team.Errorf(team.Busy, "not now") }})
	if r.ok("write_file", args{"path": "a", "content": "1"}); r.there()["ran"] != "" || len(r.there()) != 1 {
		t.Errorf("it ran when nothing may: %v", r.there())
	}
}
