package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/creack/pty"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
	"agentteam/pkg/teamtest"
)

// told is a line of the stream.
var told = regexp.MustCompile(`\d\d:\d\d.*|^ .*`)

const chatScript = `
agents:
  - match: {role: coder}
    rules:
      - name: names
        since: 'Which names\?'
        steps:
          - calls: [{tool: ask_user, args: {question: 'Shall I keep the names of all the tokens, as they are 今天?', choices: [keep them, rename them]}}]
          - await: 'in_reply_to="'
            say: 'I {{heard "(rename them|keep them)"}}'
      - name: rest
        say: "Nothing to do."
  - match: {role: leader}
    rules:
      - name: rest
        say: "Nothing to do."
`

// seen is a terminal with a command on it.
type seen struct {
	*os.File
	cmd  *exec.Cmd
	done chan struct{} // nothing more comes

	mu  sync.Mutex
	all strings.Builder
}

// onTerminal starts teamctl on a terminal of that width.
func onTerminal(t *testing.T, width int, args ...string) *seen {
	t.Helper()
	s := &seen{cmd: exec.Command(filepath.Join(bin, "teamctl"), args...), done: make(chan struct{})}
	s.cmd.Dir, s.cmd.Env = t.TempDir(), append(os.Environ(), "TERM=xterm-256color", "NO_COLOR=")
	var err error
	if s.File, err = pty.StartWithSize(s.cmd, &pty.Winsize{Rows: 24, Cols: uint16(width)}); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(s.done)
		_, _ = io.Copy(writer(func(text []byte) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.all.Write(text)
		}), s.File) // ends with the command
	}()
	t.Cleanup(func() { _ = s.cmd.Process.Kill(); <-s.done; s.File.Close() })
	return s
}

type writer func([]byte)

func (w writer) Write(text []byte) (int, error) { w(text); return len(text), nil }

// text is what has been shown, without colours and movements of the cursor.
func (s *seen) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return ansi.Strip(s.all.String())
}

// shows waits until a text has been shown so many times, wherever its lines are broken.
func (s *seen) shows(t *testing.T, text string, times int) {
	t.Helper()
	plain := func(s string) string { return strings.Join(strings.Fields(s), "") }
	limit := time.After(20 * time.Second)
	for strings.Count(plain(s.text()), plain(text)) < times {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-limit:
			t.Fatalf("%q was not shown %d times:\n%s", text, times, s.text())
		}
	}
}

func (s *seen) types(t *testing.T, keys string) {
	t.Helper()
	if _, err := s.WriteString(keys); err != nil {
		t.Fatal(err)
	}
}

// ends waits for the command's end and returns its status.
func (s *seen) ends(t *testing.T) int {
	t.Helper()
	<-s.done
	err := s.cmd.Wait()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return s.cmd.ProcessState.ExitCode()
}

// On a terminal of any width a person talks to a member: what it does is shown above the line
// that is typed, a question takes the next line, a wrong line is told, and Ctrl-C ends the
// chat and not the team.
func TestChatOnATerminal(t *testing.T) {
	c := teamtest.Start(t, chatScript)
	c.Leader()
	c.Teammates(1)
	tm := c.Team("default")
	if _, err := tm.Members().Spawn(t.Context(), team.Member{Role: "coder"}, 1); err != nil {
		t.Fatal(err)
	}
	for _, width := range []int{40, 80, 200} {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			s := onTerminal(t, width, "chat", "coder-1", "--server", c.URL)
			s.shows(t, "/help lists what you can type", 1)
			s.types(t, "Which names?\r")
			s.shows(t, "answer: your next line", 1)
			s.types(t, "maybe\r")
			s.shows(t, "none of the answers", 1)
			s.types(t, "/nothing\r")
			s.shows(t, "there is no /nothing here", 1)
			s.types(t, "2\r")
			s.shows(t, "I rename them", 1)
			// What comes while a line is typed stands above it, and the line stays.
			s.types(t, "/tea")
			s.shows(t, "> /tea", 1)
			if _, _, err := tm.Mail().Send(t.Context(), client.NewMail{To: "coder-1", Text: "a word in between"}); err != nil {
				t.Fatal(err)
			}
			s.shows(t, "coder-1: a word in between", 1)
			s.shows(t, "> /tea", 2)
			s.types(t, "m\r")
			s.shows(t, "TURNS", 1)
			keys, want := "\x03", 130
			if width == 80 {
				keys, want = "/quit\r", 0
			}
			s.types(t, keys)
			if got := s.ends(t); got != want {
				t.Errorf("it ended with %d, want %d:\n%s", got, want, s.text())
			}
			if n := strings.Count(s.text(), "Which names?"); n != 1 {
				t.Errorf("what was typed is shown %d times", n)
			}
			for l := range strings.SplitSeq(strings.ReplaceAll(s.text(), "\r", "\n"), "\n") {
				l = told.FindString(l) // behind what was typed, which has been taken away
				if n := ansi.StringWidth(l); n > width {
					t.Errorf("a line takes %d cells: %q", n, l)
				}
			}
		})
	}
	if r, err := tm.Record(t.Context()); err != nil || r.Status != team.Active {
		t.Errorf("after the chats the team is %s, %v", r.Status, err)
	}
}
