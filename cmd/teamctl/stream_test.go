package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"
	"github.com/creack/pty"

	"agentteam/pkg/client"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/team"
	"agentteam/pkg/view/render"
)

func entryOf(t *testing.T, b team.EventBody, value any) client.Entry {
	t.Helper()
	if value != nil {
		data, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		b.Value = data
	}
	return client.Entry{Cursor: "c", Time: time.Now(), Event: team.Event{TeamID: "t", AgentID: "coder-1", Event: b}}
}

// On a terminal of any width no line is wider, and how things stand is below it, once, at
// the width that the terminal has by then; notes go above that line.
func TestStreamOnATerminal(t *testing.T) {
	t.Setenv("TERM", "xterm-256color")
	for _, width := range []uint16{20, 40, 80, 200} {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			screen, terminal, err := pty.Open()
			if err != nil {
				t.Fatal(err)
			}
			defer screen.Close()
			defer terminal.Close()
			size := func(w uint16) {
				if err := pty.Setsize(terminal, &pty.Winsize{Rows: 24, Cols: w}); err != nil {
					t.Fatal(err)
				}
			}
			size(width)
			shown := make(chan string)
			go func() {
				var all strings.Builder
				_, _ = io.Copy(&all, screen) // ends with an error once the terminal is closed
				shown <- all.String()
			}()
			a := newApp(&output{File: terminal}, terminal)
			s := a.newStream(a.out, render.Options{}, time.Now())
			a.notes.under(s)
			for _, e := range []client.Entry{
				entryOf(t, team.EventBody{Type: team.MemberJoined}, team.Member{AgentID: "coder-1", Color: "cyan"}),
				entryOf(t, team.EventBody{Type: team.TextChunk, Delta: strings.Repeat("wörter 字 ", 30)}, nil),
			} {
				if err := s.entry(e); err != nil {
					t.Fatal(err)
				}
			}
			s.refresh(time.Now()) // the line below
			s.write(team.Delta{AgentID: "coder-1", MessageID: "m", Text: "a text " + strings.Repeat("字", 200) + " grows"})
			s.refresh(time.Now())
			a.notice("NATS is away")
			if err := s.entry(entryOf(t, team.EventBody{Type: team.TextChunk, MessageID: "m", Delta: "The whole text"}, nil)); err != nil {
				t.Fatal(err)
			}
			s.refresh(time.Now())
			size(20)
			if err := s.close(); err != nil {
				t.Fatal(err)
			}
			a.notes.under(nil)
			terminal.Close()
			all := <-shown
			if n := strings.Count(all, "0/0"); n < 2 {
				t.Errorf("how things stand is shown %d times, want it again behind the note:\n%q", n, all)
			}
			draft, rest, found := strings.Cut(all, "grows")
			if rows := strings.Count(draft[strings.LastIndex(draft, ansi.EraseScreenBelow):], "\n"); !found || !strings.Contains(rest, ansi.CursorUp(rows+1)+ansi.EraseScreenBelow+"NATS") {
				t.Errorf("the text that is being written is not shown, or not taken away:\n%q", all)
			}
			if whole := ansi.Strip(all); strings.Count(strings.Join(strings.Fields(whole), " "), "The whole text") != 1 || strings.Contains(rest, "grows") {
				t.Errorf("the text is not told once:\n%q", all)
			}
			above, _, _ := strings.Cut(all, "NATS is away")
			if i, j := strings.LastIndex(above, "0/0"), strings.LastIndex(above, ansi.EraseScreenBelow); i < 0 || j < i {
				t.Errorf("the note does not stand on a line of its own:\n%q", all)
			}
			if !strings.HasSuffix(all, ansi.CursorUp(1)+ansi.EraseScreenBelow) && width > 20 {
				t.Errorf("the line below, which takes two now, is not taken away as a whole:\n%q", all)
			}
			for l := range strings.SplitSeq(strings.ReplaceAll(all, "\r", "\n"), "\n") {
				if n := ansi.StringWidth(ansi.Strip(l)); n > int(width) {
					t.Errorf("a line takes %d cells: %q", n, l)
				}
			}
		})
	}
}

// Values of NO_COLOR and CLICOLOR_FORCE as their pages have them, not as ParseBool does.
func TestColourEnv(t *testing.T) {
	t.Setenv("TERM", "xterm-256color")
	t.Setenv("CLICOLOR", "")
	for _, tt := range []struct {
		no, force           string
		onTerminal, inAFile bool
	}{
		{"yes", "", false, false}, {"0", "", false, false}, {"x", "1", false, false},
		{"", "", true, false}, {"", "0", true, false}, {"", "yes", true, true},
	} {
		t.Setenv("NO_COLOR", tt.no)
		t.Setenv("CLICOLOR_FORCE", tt.force)
		onTerminal, inAFile := colorprofile.Env(colourEnv()) > colorprofile.ASCII, colorprofile.Detect(io.Discard, colourEnv()) > colorprofile.ASCII
		if onTerminal != tt.onTerminal || inAFile != tt.inAFile {
			t.Errorf("%+v, but has colours on a terminal: %v, in a file: %v", tt, onTerminal, inAFile)
		}
	}
}

// A time is how long ago, or a time of the last day, or one with its day.
func TestParseMoment(t *testing.T) {
	now := time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)
	for s, want := range map[string]string{
		"10m": "2026-03-14T11:50:00Z", "11:30": "2026-03-14T11:30:00Z", "12:00:01": "2026-03-13T12:00:01Z",
		"2026-03-01": "2026-03-01T00:00:00Z", "2026-03-01 10:00": "2026-03-01T10:00:00Z", "2026-03-14T11:00:00+01:00": "2026-03-14T11:00:00+01:00",
	} {
		if got, err := parseMoment(s, now); err != nil || got.Format(time.RFC3339) != want {
			t.Errorf("%s is %v, %v, want %s", s, got, err, want)
		}
	}
	for _, s := range []string{"", "-5m", "tomorrow"} {
		if _, err := parseMoment(s, now); team.CodeOf(err) != team.InvalidArgument {
			t.Errorf("%q: %v, want invalid_argument", s, err)
		}
	}
}

// Each teammate has a pane while it is there; the leader and people have none. Once tmux
// has no room, that is said once.
func TestPanes(t *testing.T) {
	dir := t.TempDir()
	fake := "#!/bin/sh\necho \"$@\" >>" + dir + "/calls\n[ $1 != split-window ] || ! grep -q coder-3 " + dir + "/calls || { echo no space for new pane >&2; exit 1; }\necho %7\n"
	if err := os.WriteFile(dir+"/tmux", []byte(fake), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv("TMUX_PANE", "%1")
	var said strings.Builder
	p := &panes{app: newApp(io.Discard, &said), open: map[team.AgentID]string{}, args: []string{"attach", "--team", "red", "--agent"}}
	for _, m := range []team.Member{{AgentID: team.Leader}, {AgentID: "alice", Backend: team.Person}, {AgentID: "coder-1"}, {AgentID: "coder-3"}, {AgentID: "coder-4"}} {
		p.entry(entryOf(t, team.EventBody{Type: team.MemberJoined}, m))
	}
	p.entry(entryOf(t, team.EventBody{Type: team.MemberStopped}, team.Member{AgentID: "coder-1"}))
	p.close()
	data, err := os.ReadFile(dir + "/calls")
	if err != nil {
		t.Fatal(err)
	}
	self, _ := os.Executable()
	want := []string{
		"display-message -p -t %1 #{window_layout}",
		"split-window -d -P -F #{pane_id} -t %1 -- " + self + " attach --team red --agent coder-1",
		"select-layout -t %1 tiled",
		"split-window -d -P -F #{pane_id} -t %1 -- " + self + " attach --team red --agent coder-3",
		"kill-pane -t %7",
		"select-layout -t %1 %7",
	}
	if got := strings.Split(strings.TrimSpace(string(data)), "\n"); !slices.Equal(got, want) {
		t.Errorf("tmux was called with\n%s", data)
	}
	if said.String() != "no more panes: no space for new pane\n" {
		t.Errorf("it was said %q", said.String())
	}
}

// pieces are the writes to an output that is no terminal.
type pieces []string

func (p *pieces) Write(b []byte) (int, error) {
	*p = append(*p, string(b))
	return len(b), nil
}

// A list comes in one write, so that a reader who has seen enough does not end it; a note is
// behind what was printed before it.
func TestListIsWrittenAtOnce(t *testing.T) {
	var out pieces
	a := newApp(&out, &out)
	err := a.print(nil, nil, func() {
		w := a.out
		for i := range 3 {
			fmt.Fprintln(w, i)
		}
		a.note("a note")
		for i := range 3 {
			fmt.Fprintln(a.out, i)
		}
	})
	if want := (pieces{"0\n1\n2\n", "a note\n", "0\n1\n2\n"}); err != nil || !slices.Equal(out, want) {
		t.Errorf("%v, written is %q, want %q", err, out, want)
	}
}

// What was before the time that a stream begins at is not shown, and counts in the line of how
// things stand.
func TestStreamSince(t *testing.T) {
	var out strings.Builder
	a := newApp(&out, io.Discard)
	s := a.newStream(a.out, render.Options{}, time.Time{})
	s.since = time.Now()
	for at, text := range map[time.Duration]string{-time.Minute: "before", time.Minute: "after"} {
		e := entryOf(t, team.EventBody{Type: team.TextChunk, Delta: text, Tokens: 600}, nil)
		e.Time = s.since.Add(at)
		if err := s.entry(e); err != nil {
			t.Fatal(err)
		}
	}
	foot := ansi.Strip(s.story.Foot(time.Now(), time.Now(), 80))
	if err := s.close(); err != nil || strings.Contains(out.String(), "before") || !strings.Contains(out.String(), "after") || !strings.Contains(foot, "1.2k tok") {
		t.Errorf("%v, shown is %q above %q", err, out.String(), foot)
	}
}

// On a terminal a note is broken between words, and stands on a line of its own also while a
// question waits for its answer.
func TestNotes(t *testing.T) {
	for line, want := range map[string]string{
		"one two three":   "one two\nthree",
		"  one two three": "  one\n  two\n  three",
		"supercalifragil": "supercalifragil",
		"12345678":        "12345678",
		"a -- --resume b": "a --\n--resume\nb",
	} {
		if got := wrapped(line, 8); got != want {
			t.Errorf("%q is broken as %q, want %q", line, got, want)
		}
	}
	var out strings.Builder
	n := &notes{Writer: &out}
	fmt.Fprint(n, "Keep them? ")
	fmt.Fprintln(n, "the cluster has died")
	fmt.Fprint(n, "Sure? ")
	n.answered()
	fmt.Fprintln(n, "kept")
	if want := "Keep them? \nthe cluster has died\nSure? kept\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

// Who tells something while a list is printed does so at any moment, also at its begin and end; what
// was printed until then stands above the note.
func TestNotesBesideAList(t *testing.T) {
	var out, errs strings.Builder // out is written by this goroutine alone, and errs by the other alone
	a := newApp(&out, &errs)
	told := make(chan struct{})
	go func() {
		defer close(told)
		for range 200 {
			a.notice("waiting")
		}
	}()
	for range 200 {
		if err := a.atOnce(func() error {
			_, err := fmt.Fprintln(a.out, "a row")
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	<-told
	if rows := strings.Count(out.String(), "a row\n"); rows != 200 {
		t.Errorf("%d of 200 rows are whole", rows)
	}
	var both strings.Builder
	a = newApp(&both, &both)
	if err := a.atOnce(func() error {
		fmt.Fprintln(a.out, "first")
		a.notice("a note")
		_, err := fmt.Fprintln(a.out, "second")
		return err
	}); err != nil || both.String() != "first\na note\nsecond\n" {
		t.Errorf("%q, %v", both.String(), err)
	}
}

// With -q nothing is said but what keeps the team from its work.
func TestOnlyPressing(t *testing.T) {
	c, err := client.Connect(t.Context(), client.Options{URL: brokertest.Server(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	tm, err := c.Make(t.Context(), client.NewTeam{ID: "t", Roles: map[string]team.Role{"coder": {Name: "coder", Description: "codes"}}})
	if err != nil {
		t.Fatal(err)
	}
	var errs strings.Builder
	a := newApp(io.Discard, &errs)
	tell, err := a.onlyPressing(t.Context(), tm)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range []team.EventBody{
		{Type: team.Retry, Message: "connection refused"}, {Type: team.Retry, Message: "connection refused"},
		{Type: team.TextChunk, Delta: "at work"}, {Type: team.Retry, Message: "again away"},
	} {
		if err := tell(entryOf(t, b, nil)); err != nil {
			t.Fatal(err)
		}
	}
	if want := "coder-1@t: model: connection refused\ncoder-1@t: model: again away\n"; errs.String() != want {
		t.Errorf("said is %q, want %q", errs.String(), want)
	}
}
