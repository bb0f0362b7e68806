package projectcontext

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"
)

func TestImportsIn(t *testing.T) {
	const text = "# Rules\n@a.md and @./b.md, also (see @c.md).\n  @d.md\nmail me@x.org `@code.md` ``@code ` .md`` ` @e.md\n" +
		"```sh\n@fence.md\n~~~\n@fence.md\n```\n~~~\n@fence.md\n~~~~\n<!-- @comment.md\n@comment.md --> @f.md\n- item\n    @g.md\n\n    @indented.md\n\n@~/h.md @/etc/i.md @../j.md\n@k.md"
	want := []string{"a.md", "./b.md", "c.md", "d.md", "e.md", "f.md", "g.md", "~/h.md", "/etc/i.md", "../j.md", "k.md"}
	// "(see @c.md)" has the mark at the beginning of a word.
	if got := importsIn(text); !slices.Equal(got, want) {
		t.Errorf("imports %q, want %q", got, want)
	}
}

// project makes the files of a repository and returns its top.
func project(t *testing.T, files map[string]string) string {
	t.Helper()
	top := t.TempDir()
	write(t, top+"/.git/config", "[remote]\n")
	for name, text := range files {
		write(t, filepath.Join(top, name), text)
	}
	return top
}

// show is what is told of a project, a file a line.
func show(files []File) string {
	var b strings.Builder
	for _, f := range files {
		b.WriteString(f.Name + "<" + f.By + ": " + strings.ReplaceAll(strings.TrimSpace(f.Text), "\n", "/"))
		for _, fault := range f.Faults {
			b.WriteString(" [" + fault + "]")
		}
		b.WriteString("\n")
	}
	return b.String()
}

func TestStanding(t *testing.T) {
	deep := map[string]string{"CLAUDE.md": "@1.md"}
	for i := range 7 {
		deep[string(rune('1'+i))+".md"] = "@" + string(rune('2'+i)) + ".md"
	}
	for name, tt := range map[string]struct {
		files map[string]string
		want  string
	}{
		"imports, in order":       {map[string]string{"CLAUDE.md": "Rules @docs/a.md\n@docs/b.md @user @nestjs/core @README", "docs/a.md": "A @./c.md", "docs/b.md": "B", "docs/c.md": "C", "README": "read me"}, "CLAUDE.md<: Rules @docs/a.md/@docs/b.md @user @nestjs/core @README\ndocs/a.md<CLAUDE.md: A @./c.md\ndocs/c.md<docs/a.md: C\ndocs/b.md<CLAUDE.md: B\nREADME<CLAUDE.md: read me\n"},
		"both, each told":         {map[string]string{"AGENTS.md": "agents", "CLAUDE.md": "claude", ".claude/CLAUDE.md": "dot @x.md", ".claude/x.md": "X"}, "AGENTS.md<: agents\nCLAUDE.md<: claude\n.claude/CLAUDE.md<: dot @x.md\n.claude/x.md<.claude/CLAUDE.md: X\n"},
		"one that imports it":     {map[string]string{"AGENTS.md": "agents @z.md", "CLAUDE.md": "@AGENTS.md", "z.md": "Z"}, "AGENTS.md<: agents @z.md\nCLAUDE.md<: @AGENTS.md\nz.md<AGENTS.md: Z\n"},
		"no imports in AGENTS.md": {map[string]string{"AGENTS.md": "agents @z.md", "z.md": "Z"}, "AGENTS.md<: agents @z.md\n"},
		"the same twice":          {map[string]string{"AGENTS.md": "same\n", "CLAUDE.md": "same"}, "AGENTS.md<: same\n"},
		"a cycle":                 {map[string]string{"CLAUDE.md": "@a.md", "a.md": "@CLAUDE.md"}, "CLAUDE.md<: @a.md\na.md<CLAUDE.md: @CLAUDE.md [@CLAUDE.md is not followed: a.md imports CLAUDE.md again]\n"},
		"of itself":               {map[string]string{"CLAUDE.md": "x @CLAUDE.md"}, "CLAUDE.md<: x @CLAUDE.md [@CLAUDE.md is not followed: CLAUDE.md imports CLAUDE.md again]\n"},
		"five hops":               {deep, "CLAUDE.md<: @1.md\n1.md<CLAUDE.md: @2.md\n2.md<1.md: @3.md\n3.md<2.md: @4.md\n4.md<3.md: @5.md\n5.md<4.md: @6.md [@6.md is not followed: imports go at most 5 files deep]\n"},
		"out of the repository":   {map[string]string{"CLAUDE.md": "@../secret.md @/etc/passwd @~/.ssh/id.txt @/etc/ssl/x.cnf"}, "CLAUDE.md<: @../secret.md @/etc/passwd @~/.ssh/id.txt @/etc/ssl/x.cnf [@../secret.md is not followed: it leads out of the repository] [@~/.ssh/id.txt is not followed: only what lies in the repository is imported] [@/etc/ssl/x.cnf is not followed: only what lies in the repository is imported]\n"},
		"git's own":               {map[string]string{"CLAUDE.md": "@.git/config"}, "CLAUDE.md<: @.git/config [@.git/config is not followed: .git/config is in .git]\n"},
		"what is not there":       {map[string]string{"CLAUDE.md": "@docs/none.md @example.org @docs"}, "CLAUDE.md<: @docs/none.md @example.org @docs [@docs/none.md is not followed: there is no such file in the repository]\n"},
		"no text":                 {map[string]string{"CLAUDE.md": "@a.bin", "a.bin": "\x00"}, "CLAUDE.md<: @a.bin [@a.bin is not followed: a.bin is no text in UTF-8, nor in UTF-16 with a byte order mark]\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := show(Standing(project(t, tt.files), nil)); got != tt.want {
				t.Errorf("told\n%swant\n%s", got, tt.want)
			}
		})
	}
}

// coded is a text in UTF-16 with a mark.
func coded(text string, order binary.AppendByteOrder) string {
	out := order.AppendUint16(nil, 0xfeff)
	for _, u := range utf16.Encode([]rune(text)) {
		out = order.AppendUint16(out, u)
	}
	return string(out)
}

// Instructions in UTF-16 are read like others, and bounded like them.
func TestUTF16(t *testing.T) {
	long := strings.Repeat("今天 is long\n", 4000)
	top := project(t, map[string]string{"AGENTS.md": coded("Use tabs 𝄞.\n", binary.BigEndian), "CLAUDE.md": "\ufeffRead @long.md", "long.md": coded(long, binary.LittleEndian)})
	files := Standing(top, nil)
	if len(files) != 3 || files[0].Text != "Use tabs 𝄞.\n" || files[0].LeftOut != 0 || files[1].Text != "Read @long.md" || files[1].LeftOut != 0 {
		t.Fatalf("read %+v", files)
	}
	lines := strings.Count(files[2].Text, "\n")
	if files[2].Text != long[:lines*len("今天 is long\n")] || lines == 0 || len(files[2].Text) > MaxProject || files[2].LeftOut != 2*(4000-lines)*len([]rune("今天 is long\n")) {
		t.Errorf("of 4000 lines %d are read, %d bytes left out: %.50q", lines, files[2].LeftOut, files[2].Text)
	}
	if got := Untaken(top); got != nil {
		t.Errorf("not taken: %q", got)
	}
}

// What is not read is named with its path and why, on the way that is searched.
func TestUntaken(t *testing.T) {
	top := project(t, map[string]string{"sub/CLAUDE.md": "in Latin: \xe9", "AGENTS.md": "top", "odd/AGENTS.md": "n\x00o\x00", "odd/CLAUDE.md/x": "a folder", "free/AGENTS.md": "from anybody", "free/a/b": "", "ok/AGENTS.md": "fine", "ok/CLAUDE.md": "@x.md"})
	if err := os.Chmod(top+"/free", 0o777); err != nil {
		t.Fatal(err)
	}
	for at, want := range map[string]string{
		"ok":     "",
		"sub":    "sub/CLAUDE.md has bytes that are no UTF-8: members read \ufffd in their place",
		"odd":    "odd/AGENTS.md is not read: AGENTS.md is no text in UTF-8, nor in UTF-16 with a byte order mark|odd/CLAUDE.md is not read: ",
		"free":   "free/AGENTS.md is not read: anybody may write to the folder " + top + "/free",
		"free/a": "free/AGENTS.md is not read: anybody may write to the folder " + top + "/free",
	} {
		lines := Untaken(filepath.Join(top, at))
		wants := strings.Split(want, "|")
		if want == "" {
			wants = nil
		}
		if len(lines) != len(wants) {
			t.Fatalf("in %s: %q", at, lines)
		}
		for i, l := range lines {
			if !strings.HasPrefix(l, top+"/"+wants[i]) {
				t.Errorf("in %s: %s, want %s", at, l, wants[i])
			}
		}
	}
}

// A link does not bring in what lies outside, by whatever name it is imported, and a rule that denies
// a file denies its import.
func TestImportLeadsNowhere(t *testing.T) {
	top := project(t, map[string]string{"CLAUDE.md": "@link.md @in.md @private.md @also.md @.agentteam/api.token @token.md @sub/.agentteam/cluster.json", "sub/x.md": "X", "private.md": "P",
		".agentteam/api.token": "token", "sub/.agentteam/cluster.json": "{}"})
	write(t, filepath.Dir(top)+"/secret.md", "secret")
	for link, to := range map[string]string{"link.md": "../secret.md", "in.md": "sub/x.md", "also.md": "private.md", "token.md": ".agentteam/api.token", "AGENTS.md": "token.md"} {
		if err := os.Symlink(to, filepath.Join(top, link)); err != nil {
			t.Fatal(err)
		}
	}
	files := Standing(top, func(path string) bool { return filepath.Base(path) != "private.md" })
	if got := texts(files); got != "@link.md @in.md @private.md @also.md @.agentteam/api.token @token.md @sub/.agentteam/cluster.json|X" {
		t.Errorf("told %q", got)
	}
	if faults := strings.Join(files[0].Faults, "\n"); strings.Count(faults, "not followed") != 6 || strings.Count(faults, "is in .agentteam") != 3 || !strings.Contains(faults, "@also.md is not followed: a permission rule denies also.md") {
		t.Errorf("faults\n%s", faults)
	}
}

// All files together are bounded, and what is left out is counted.
func TestStandingIsBounded(t *testing.T) {
	line := strings.Repeat("x", 999) + "\n"
	top := project(t, map[string]string{"AGENTS.md": strings.Repeat(line, 30), "CLAUDE.md": "@a.md\n" + strings.Repeat(line, 4), "a.md": "A\n"})
	n, out := 0, 0
	for _, f := range Standing(top, nil) {
		n, out = n+len(f.Text), out+f.LeftOut
	}
	if n > MaxProject || n < MaxProject-2*len(line) || n+out != 34*len(line)+8 {
		t.Errorf("%d bytes are told, and %d left out", n, out)
	}
}

// The folders between the workspace and a file have instructions for it, and the nearest one above
// the workspace has those that stand.
func TestBelow(t *testing.T) {
	top := project(t, map[string]string{"AGENTS.md": "top", "a/CLAUDE.md": "@b/c.md", "a/b/c.md": "C", "a/b/AGENTS.md": "b", "a/d/x": ""})
	var got []string
	for _, dir := range Below(top, filepath.Join(top, "a/b/new/file.go")) {
		got = append(got, strings.TrimPrefix(dir, top)+" "+strings.ReplaceAll(show(Folder(top, dir, nil)), "\n", ";"))
	}
	want := []string{"/a a/CLAUDE.md<: @b/c.md;a/b/c.md<a/CLAUDE.md: C;", "/a/b a/b/AGENTS.md<: b;", "/a/b/new "}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	for _, file := range []string{filepath.Join(top, "x.go"), filepath.Dir(top) + "/y.go", "/etc/passwd"} {
		if dirs := Below(top, file); dirs != nil {
			t.Errorf("%s: %q", file, dirs)
		}
	}
	if got := show(Standing(filepath.Join(top, "a/d"), nil)); got != "CLAUDE.md<: @b/c.md\n" && got != "../CLAUDE.md<: @b/c.md\n../b/c.md<../CLAUDE.md: C\n" {
		t.Errorf("from a/d: %s", got)
	}
}
