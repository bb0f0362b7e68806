package workspace_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"agentteam/pkg/broker/brokertest"
	"agentteam/pkg/stored"
	"agentteam/pkg/team"
	"agentteam/pkg/tool/workspace"
)

const absent = "stored:0000000000000000000000000000000000000000000000000000000000000000"

func TestReadStored(t *testing.T) {
	texts := stored.In(brokertest.Team(t, "t").Files)
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
	texts := stored.In(brokertest.Team(t, "t").Files)
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
			_, note, _ := strings.Cut(stored.Excerpt(text, 2000, ref), ref+`", "offset": `)
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
