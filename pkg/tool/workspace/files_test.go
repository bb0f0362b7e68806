package workspace_test

import (
	"fmt"
	"image"
	"image/png"
	"os"
	"strings"
	"sync"
	"testing"

	"agentteam/pkg/team"
	"agentteam/pkg/tool"
	"agentteam/pkg/tool/workspace"
)

func TestRead(t *testing.T) {
	p := open(t, workspace.Options{})
	p.put("lines", "one\ntwo\r\n三 🚀\nfour")
	p.put("empty", "")
	p.put("binary", "MZ\x00\x01")
	for _, tt := range []struct {
		a    args
		want string
	}{
		{args{"path": "lines"}, "one\ntwo\r\n三 🚀\nfour"},
		{args{"path": "./lines", "offset": 3}, "三 🚀\nfour"},
		{args{"path": "lines", "offset": 2, "limit": 1}, "two\r\n[cut: go on with offset 3]"},
		{args{"path": "lines", "offset": 4, "limit": 1}, "four"},
		{args{"path": "lines", "limit": 4}, "one\ntwo\r\n三 🚀\nfour"},
		{args{"path": "empty"}, "[the file is empty]"},
	} {
		if got := p.ok("read_file", tt.a); got != tt.want {
			t.Errorf("%v: %q, want %q", tt.a, got, tt.want)
		}
	}
	p.fails(team.NotFound, "read_file", args{"path": "没有"})
	p.fails(team.InvalidArgument, "read_file", args{"path": "binary"})
	p.fails(team.InvalidArgument, "read_file", args{"path": "lines", "offset": -1})
	p.fails(team.InvalidArgument, "read_file", args{"path": "lines", "limit": -1})
	p.fails(team.InvalidArgument, "read_file", args{"path": "empty", "offset": 2})
	if got := p.fails(team.InvalidArgument, "read_file", args{"path": "lines", "offset": 5}); !strings.Contains(got, "has 4 lines") {
		t.Errorf("an offset behind the end: %s", got)
	}
}

// Following the notes must show every line of a long file exactly once.
func TestReadGoesThroughALongFile(t *testing.T) {
	p := open(t, workspace.Options{})
	var text strings.Builder
	for i := range 9000 {
		fmt.Fprintf(&text, "第 %d 行 %s\n", i, strings.Repeat("x", i%60))
	}
	p.put("long", text.String())
	var got strings.Builder
	for offset, parts := 1, 0; offset > 0; parts++ {
		part := p.ok("read_file", args{"path": "long", "offset": offset})
		if len(part) > tool.MaxContent || strings.Contains(part, "bytes cut") {
			t.Fatalf("a part of %d bytes", len(part))
		}
		body, note, _ := strings.Cut(part, "[cut: go on with offset ")
		got.WriteString(body)
		offset = 0
		fmt.Sscanf(note, "%d]", &offset)
		if parts > 100 {
			t.Fatal("it does not end")
		}
	}
	if got.String() != text.String() {
		t.Error("the parts are not the file")
	}
}

func TestReadOfAHugeFile(t *testing.T) {
	p := open(t, workspace.Options{})
	p.put("huge", "first\n"+strings.Repeat("x", 100_000)+"\nlast\n")
	if err := os.Truncate(p.path("huge"), 1<<30); err != nil { // a gibibyte of zero bytes follows
		t.Fatal(err)
	}
	p.put("line", strings.Repeat("🚀", 25_000)+"\nlast\n")

	if got := p.ok("read_file", args{"path": "huge", "limit": 1}); got != "first\n[cut: go on with offset 2]" {
		t.Errorf("the first line: %q", got)
	}
	if got := p.ok("read_file", args{"path": "huge", "offset": 3, "limit": 1}); got != "last\n[cut: go on with offset 4]" {
		t.Errorf("the third line: %q", got)
	}
	got := p.ok("read_file", args{"path": "line"})
	if !strings.HasPrefix(got, "🚀🚀") || len(got) > tool.MaxContent || !strings.Contains(got, "[line 1 has ") || !strings.HasSuffix(got, "[cut: go on with offset 2]") {
		t.Errorf("a line that is too long: %d bytes, end %q", len(got), got[len(got)-100:])
	}
	p.fails(team.InvalidArgument, "edit_file", args{"path": "huge", "old_string": "first", "new_string": "1"})
}

func TestWrite(t *testing.T) {
	p := open(t, workspace.Options{})
	long := strings.Repeat("长文 🚀\r\n", 64<<10/12)
	for _, content := range []string{"", "line\n", long, "short again"} {
		p.ok("write_file", args{"path": "深/层/文件 🚀.txt", "content": content})
		if got := p.get("深/层/文件 🚀.txt"); got != content {
			t.Fatalf("%d bytes written, %d there", len(content), len(got))
		}
	}
	p.put("run.sh", "old")
	if err := os.Chmod(p.path("run.sh"), 0o777); err != nil { // 0o777: no usual umask would leave it
		t.Fatal(err)
	}
	p.ok("write_file", args{"path": "run.sh", "content": "new"})
	if info, err := os.Stat(p.path("run.sh")); err != nil || info.Mode().Perm() != 0o777 {
		t.Errorf("mode after a write: %v, %v", info.Mode(), err)
	}
	if err := os.Chmod(p.path("run.sh"), 0o444); err != nil {
		t.Fatal(err)
	}
	p.fails(team.PermissionDenied, "write_file", args{"path": "run.sh", "content": "x"})
	p.fails(team.PermissionDenied, "edit_file", args{"path": "run.sh", "old_string": "new", "new_string": "x"})
	p.fails(team.InvalidArgument, "write_file", args{"path": "run.sh/x", "content": "x"})
	if got := p.ok("glob", args{"pattern": "**"}); got != "run.sh\n深/\n深/层/\n深/层/文件 🚀.txt" {
		t.Errorf("left behind: %s", got)
	}
}

// A reader never sees a file half written.
func TestWriteIsAtomic(t *testing.T) {
	t.Parallel()
	p := open(t, workspace.Options{})
	texts := []string{strings.Repeat("a", 30_000), strings.Repeat("b", 60_000)}
	p.put("f", texts[0])
	var writer sync.WaitGroup
	writer.Go(func() {
		for i := range 100 {
			p.call("write_file", args{"path": "f", "content": texts[i%2]})
		}
	})
	for range 100 {
		if got := p.call("read_file", args{"path": "f"}).Content; got != texts[0] && got != texts[1] {
			t.Errorf("read %d bytes, neither the old file nor the new one: %.50q", len(got), got)
			break
		}
	}
	writer.Wait()
}

func TestEdit(t *testing.T) {
	p := open(t, workspace.Options{})
	for name, tt := range map[string]struct{ before, old, new, after string }{
		"a word":                   {"a 任务 b", "任务", "🚀 job", "a 🚀 job b"},
		"deletion":                 {"one\ntwo\n", "two\n", "", "one\n"},
		"CRLF asked for as LF":     {"a\r\nb\r\nc\r\n", "a\nb\n", "x\ny\n", "x\r\ny\r\nc\r\n"},
		"CRLF asked for as CRLF":   {"a\r\nb\r\n", "a\r\nb", "x\r\ny", "x\r\ny\r\n"},
		"CRLF gets a new line":     {"a\r\nb\r\n", "b", "b\nc", "a\r\nb\r\nc\r\n"},
		"mixed ends stay as are":   {"a\r\nb\nc\n", "b\nc", "b\nx", "a\r\nb\nx\n"},
		"mixed, asked for as LF":   {"one\r\ntwo\r\nthree\r\nfour\n", "two\nthree\nfour\n", "2\nthree\n4\n", "one\r\n2\r\nthree\r\n4\n"},
		"mixed, asked for as CRLF": {"a\nb\nc\r\n", "a\r\nb\r\nc", "a\r\nx\r\nc", "a\nx\nc\r\n"},
		"LF asked for as CRLF":     {"a\nb\nc\n", "a\r\nb", "x\r\ny\r\nz", "x\ny\nz\nc\n"},
		"mixed, a line more":       {"a\r\nb\nc\n", "a\nb\n", "a\nnew\nb\n", "a\r\nnew\r\nb\nc\n"},
		"mixed, a line less":       {"a\nb\r\nc\n", "a\nb\nc\n", "a\nc\n", "a\nc\n"},
		"mixed, lines after one":   {"a\r\nb\nc", "a", "a\nb", "a\r\nb\r\nb\nc"},
		"mixed, at the end":        {"a\nb\r\nc", "c", "c\nd", "a\nb\r\nc\r\nd"},
		"mixed, from an end on":    {"a\r\nb\nc\n", "\nb", "\nx\ny", "a\r\nx\r\ny\nc\n"},
		"mixed, to an end":         {"a\r\nb\nc\n", "a\n", "", "b\nc\n"},
		"the one that is as asked": {"a\nb\n--\na\r\nb\r\n", "a\nb\n", "x\n", "x\n--\na\r\nb\r\n"},
		"nothing but line ends":    {"a\r\nb\r\nc\n", "b\r\n", "b\n", "a\r\nb\nc\n"},
		"one line only":            {"ab", "b", "b\r\nc", "ab\r\nc"},
		"a CR that ends no line":   {"a\rb\r\nc\r\n", "b\nc", "x\ny", "a\rx\r\ny\r\n"},
		"CR at the end of a CRLF":  {"a\r\r\nb\n", "\nb", "\nx", "a\r\r\nx\n"},
		"bytes that are not text":  {"\xff\xfe a", "a", "b", "\xff\xfe b"},
	} {
		t.Run(name, func(t *testing.T) {
			p := open(t, workspace.Options{})
			p.put("f", tt.before)
			p.ok("edit_file", args{"path": "f", "old_string": tt.old, "new_string": tt.new})
			if got := p.get("f"); got != tt.after {
				t.Errorf("%q, want %q", got, tt.after)
			}
		})
	}
	p.put("f", "x y x")
	if err := os.Chmod(p.path("f"), 0o777); err != nil {
		t.Fatal(err)
	}
	for old, text := range map[string]string{"a\nb": "a\rb\r", "a\r\nb": "a\rb", "b\n": "a\nb\r"} { // no file of LF or CRLF
		p.put("cr", text)
		p.fails(team.Conflict, "edit_file", args{"path": "cr", "old_string": old, "new_string": "x"})
	}
	p.put("all", "a\r\nb\nc\na\nb\r\n")
	if got := p.fails(team.InvalidArgument, "edit_file", args{"path": "all", "old_string": "c\n", "new_string": strings.Repeat("x", 10<<20)}); !strings.Contains(got, "longer") {
		t.Errorf("an edit that makes too much: %s", got)
	}
	p.ok("edit_file", args{"path": "all", "old_string": "a\nb", "new_string": "x\ny", "replace_all": true})
	if got := p.get("all"); got != "x\r\ny\nc\nx\ny\r\n" {
		t.Errorf("all of a mixed file: %q", got)
	}
	p.put("twice", "a\r\nb\n--\na\r\nb\n")
	p.fails(team.InvalidArgument, "edit_file", args{"path": "twice", "old_string": "a\nb", "new_string": "x"})
	p.fails(team.NotFound, "edit_file", args{"path": "没有", "old_string": "a", "new_string": "b"})
	p.fails(team.Conflict, "edit_file", args{"path": "f", "old_string": "z", "new_string": "b"})
	p.fails(team.InvalidArgument, "edit_file", args{"path": "f", "old_string": "", "new_string": "b"})
	p.fails(team.InvalidArgument, "edit_file", args{"path": "f", "old_string": "x", "new_string": "x"})
	if got := p.fails(team.InvalidArgument, "edit_file", args{"path": "f", "old_string": "x", "new_string": "b"}); !strings.Contains(got, "2 times") {
		t.Errorf("an ambiguous edit: %s", got)
	}
	if got := p.get("f"); got != "x y x" {
		t.Errorf("refused edits changed the file: %q", got)
	}
	if got := p.ok("edit_file", args{"path": "f", "old_string": "x", "new_string": "b", "replace_all": true}); !strings.HasPrefix(got, "replaced 2 in f\n") || p.get("f") != "b y b" {
		t.Errorf("replace_all: %s, file %q", got, p.get("f"))
	}
	if info, err := os.Stat(p.path("f")); err != nil || info.Mode().Perm() != 0o777 {
		t.Errorf("mode after an edit: %v, %v", info.Mode(), err)
	}
}

// Edits at once, as a model that calls tools in parallel makes them, all stay.
func TestConcurrentEdits(t *testing.T) {
	p := open(t, workspace.Options{})
	var text strings.Builder
	for i := range 20 {
		fmt.Fprintf(&text, "<%d>\n", i)
	}
	p.put("f", text.String())
	var editors sync.WaitGroup
	for i := range 20 {
		editors.Go(func() {
			p.call("edit_file", args{"path": "f", "old_string": fmt.Sprintf("<%d>", i), "new_string": "done"})
		})
	}
	editors.Wait()
	if got := strings.Count(p.get("f"), "done"); got != 20 {
		t.Errorf("%d of 20 edits are in the file", got)
	}
}

// A picture is no text: it comes as a part of the result, in bounds that endpoints take.
func TestReadImage(t *testing.T) {
	p := open(t, workspace.Options{})
	small, wide := encoded(t, 3, 2), encoded(t, 8001, 1)
	p.put("图.png", small)
	r := p.call("read_file", args{"path": "图.png"})
	if want := fmt.Sprintf("[image image/png 图.png, %d bytes]", len(small)); r.Content != want || len(r.Parts) != 1 || string(r.Parts[0].Data) != small {
		t.Errorf("%+v, want %s", r, want)
	}
	webp := "RIFF\x24\x00\x00\x00WEBPVP8 rest"
	p.put("x.webp", webp)
	if r := p.call("Read", args{"file_path": "x.webp"}); len(r.Parts) != 1 || r.Parts[0].MediaType != "image/webp" {
		t.Errorf("%+v", r)
	}
	p.put("wide.png", wide)
	p.put("broken.png", small[:20])
	p.put("huge.png", small+strings.Repeat("x", 3_600_000))
	for name, why := range map[string]string{"wide.png": "8001 x 1 pixels", "broken.png": "broken image", "huge.png": "more than 3600000 bytes"} {
		if got := p.fails(team.InvalidArgument, "read_file", args{"path": name}); !strings.Contains(got, why) {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func encoded(t *testing.T, width, height int) string {
	t.Helper()
	var b strings.Builder
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, width, height))); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
