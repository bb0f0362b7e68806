package workspace_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/team"
	"agentteam/pkg/team/blob"
	"agentteam/pkg/tool/workspace"
)

const absent = "stored:0000000000000000000000000000000000000000000000000000000000000000"

func TestReadStored(t *testing.T) {
	texts := blob.In(brokertest.Team(t, "t").Files)
	p := open(t, workspace.Options{Stored: texts.Open})
	keep := func(text string) string {
		t.Helper()
		ref, err := texts.Put(t.Context(), text)
		if err != nil {
			t.Fatal(err)
		}
		return ref
	}
	ref := keep("one\ntwo\r\n三 🚀\nfour")
	for _, tt := range []struct {
		a    args
		want string
	}{
		{args{"path": ref}, "one\ntwo\r\n三 🚀\nfour"},
		{args{"path": ref, "offset": 2, "limit": 1}, "two\r\n[cut: go on with offset 3]"},
		{args{"path": keep("")}, "[the file is empty]"},
	} {
		if got := p.ok("read_file", tt.a); got != tt.want {
			t.Errorf("%v: %q, want %q", tt.a, got, tt.want)
		}
	}
	if got := p.fails(team.InvalidArgument, "read_file", args{"path": ref, "offset": 5}); !strings.Contains(got, "has 4 lines") {
		t.Errorf("an offset behind the end: %s", got)
	}
	p.fails(team.InvalidArgument, "read_file", args{"path": keep("MZ\x00\x01")})
	p.fails(team.NotFound, "read_file", args{"path": absent})
	p.fails(team.InvalidArgument, "read_file", args{"path": "stored:../T-001/1/report.md"})
}

// Whoever follows an excerpt reads the whole text, whatever its lines are like.
func TestReadOnFromAnExcerpt(t *testing.T) {
	t.Parallel()
	texts := blob.In(brokertest.Team(t, "t").Files)
	p := open(t, workspace.Options{Stored: texts.Open})
	var lines strings.Builder
	for i := range 9000 {
		fmt.Fprintf(&lines, "第 %d 行 %s\n", i, strings.Repeat("x", i%60))
	}
	for name, text := range map[string]string{
		"many lines":    lines.String(),
		"one line":      strings.Repeat("界🚀xy", 60_000),
		"a long middle": "first\n" + strings.Repeat("é", 100_000) + "\nlast\n",
	} {
		t.Run(name, func(t *testing.T) {
			ref, err := texts.Put(t.Context(), text)
			if err != nil {
				t.Fatal(err)
			}
			_, note, _ := strings.Cut(blob.Excerpt(text, 2000, ref), ref+`", "offset": `)
			var begin int
			fmt.Sscanf(note, "%d}]", &begin)
			if begin > 1 {
				before, _, _ := strings.Cut(p.ok("read_file", args{"path": ref, "limit": begin - 1}), "[cut: ")
				if len(before) > 2000 {
					t.Errorf("the excerpt says to go on at line %d, which leaves out what it does not show", begin)
				}
			}
			var got strings.Builder
			for offset, parts := 1, 0; offset > 0; parts++ {
				part := p.ok("read_file", args{"path": ref, "offset": offset, "limit": 50})
				body, more, _ := strings.Cut(part, "[cut: go on with offset ")
				if piece := strings.TrimSuffix(body, "\n"); !strings.HasPrefix(text[got.Len():], body) {
					body = piece // the note begins a line of its own
				}
				got.WriteString(body)
				offset = 0
				fmt.Sscanf(more, "%d]", &offset)
				if parts > 1000 {
					t.Fatal("it does not end")
				}
			}
			if got.String() != text {
				t.Errorf("the parts have %d bytes and are not the text of %d", got.Len(), len(text))
			}
		})
	}
}

func TestReadStoredFails(t *testing.T) {
	away := team.Errorf(team.Unavailable, "NATS is away")
	p := open(t, workspace.Options{Stored: func(context.Context, string) (io.ReadCloser, error) { return nil, away }})
	p.fails(team.Unavailable, "read_file", args{"path": absent})

	broken := io.NopCloser(io.MultiReader(strings.NewReader("half\n"), iotest.ErrReader(away)))
	p = open(t, workspace.Options{Stored: func(context.Context, string) (io.ReadCloser, error) { return broken, nil }})
	if got := p.fails(team.Unavailable, "read_file", args{"path": absent}); strings.Contains(got, "half") {
		t.Errorf("half a text passed for the whole: %s", got)
	}

	p = open(t, workspace.Options{})
	p.fails(team.NotFound, "read_file", args{"path": absent})
}

// No other tool takes a reference for a file, nor makes one of that name.
func TestStoredIsNoFile(t *testing.T) {
	p := open(t, workspace.Options{Stored: func(context.Context, string) (io.ReadCloser, error) { return nil, errors.New("asked") }})
	for name, a := range map[string]args{
		"write_file": {"path": absent, "content": "x"},
		"edit_file":  {"path": absent, "old_string": "a", "new_string": "b"},
		"glob":       {"path": absent, "pattern": "*"},
		"grep":       {"path": absent, "pattern": "x"},
	} {
		if got := p.fails(team.InvalidArgument, name, a); !strings.Contains(got, "stored text") || !strings.Contains(got, "read_file") {
			t.Errorf("%s: %s", name, got)
		}
	}
	if got := p.ok("glob", args{"pattern": "**"}); got != "(no matches)" {
		t.Errorf("the workspace holds %s", got)
	}
}

// What a command writes beyond what is shown is kept once, and read_file reads its middle. A
// short output is not kept.
func TestLongOutputIsKept(t *testing.T) {
	texts := blob.In(brokertest.Team(t, "t").Files)
	kept := 0
	p := open(t, workspace.Options{Stored: texts.Open, Keep: func(ctx context.Context, text string) (string, error) {
		kept++
		return texts.Put(ctx, text)
	}})
	p.ok("bash", args{"command": "seq 5000"})
	if kept != 0 {
		t.Error("a short output was kept")
	}
	got := p.ok("bash", args{"command": `printf 'a\0b\n'; seq 50000; exit 3`})
	if len(got) > 30_100 || !strings.HasPrefix(got, "a\uFFFDb\n1\n") || !strings.HasSuffix(got, "\n50000\nexit status 3") || kept != 1 {
		t.Fatalf("%d bytes, kept %d times: %.100s", len(got), kept, got)
	}
	if got := p.ok("read_file", args{"path": refIn(t, got), "offset": 25_001, "limit": 2}); got != "25000\n25001\n[cut: go on with offset 25003]" {
		t.Errorf("the middle: %q", got)
	}
	// Of the longest the rest is counted.
	got = p.ok("bash", args{"command": "head -c 12582912 /dev/zero | tr '\\0' x; echo; echo last"})
	if !strings.HasSuffix(got, "\nlast\n") {
		t.Errorf("the end: %q", got[len(got)-50:])
	}
	whole, err := texts.Get(t.Context(), refIn(t, got))
	if err != nil || len(whole) > 10<<20+16_000 || !strings.Contains(whole[10<<20:], "bytes were not kept ...]") {
		t.Errorf("%d bytes are kept, %v", len(whole), err)
	}
	broken := workspace.Options{Keep: func(context.Context, string) (string, error) { return "", errors.New("away") }}
	if got := open(t, broken).ok("bash", args{"command": "seq 50000"}); !strings.Contains(got, "they could not be kept]") {
		t.Errorf("with NATS away: %.300s", got)
	}
}

// refIn is the reference in an excerpt.
func refIn(t *testing.T, text string) string {
	t.Helper()
	_, ref, _ := strings.Cut(text, `read "`)
	ref, _, ok := strings.Cut(ref, `"`)
	if !ok {
		t.Fatalf("there is no reference in %.300s", text)
	}
	return ref
}
