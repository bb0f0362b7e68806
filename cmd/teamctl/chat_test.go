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
	"syscall"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"agentteam/pkg/client"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/team"
	"agentteam/pkg/teamtest"
)

// told is a line of the stream.
var told = regexp.MustCompile(`\d\d:\d\d.*|^ .*`)

// namesScript has a coder ask that question about names.
func namesScript(question string) string {
	return `
agents:
  - match: {role: coder}
    rules:
      - name: names
        since: 'Which names\?'
        steps:
          - calls: [{tool: ask_user, args: {question: '` + question + `', choices: [keep them, rename them]}}]
          - await: 'in_reply_to="'
            say: 'I {{heard "(rename them|keep them)"}}'
      - name: rest
        say: "Nothing to do."
  - match: {role: leader}
    rules:
      - name: rest
        say: "Nothing to do."
`
}

// withCoder starts a cluster that plays a script, with a team and its coder-1.
func withCoder(t *testing.T, script string) (*teamtest.Cluster, *client.Team) {
	t.Helper()
	c := teamtest.Start(t, script)
	c.Leader()
	c.Teammates(1)
	tm := c.Team("default")
	if _, err := tm.Members().Spawn(t.Context(), team.Member{Role: "coder"}, 1); err != nil {
		t.Fatal(err)
	}
	return c, tm
}

// seen is a terminal with a command on it.
type seen struct {
	*os.File
	before unix.Termios // how the terminal was set when the command began
	cmd    *exec.Cmd
	done   chan struct{} // nothing more comes

	mu  sync.Mutex
	all strings.Builder
}

// onTerminal starts teamctl on a terminal of that width.
func onTerminal(t *testing.T, width int, args ...string) *seen {
	t.Helper()
	return onTerminalWith(t, width, nil, args...)
}

// onTerminalWith is onTerminal with more settings of the environment.
func onTerminalWith(t *testing.T, width int, env []string, args ...string) *seen {
	t.Helper()
	s := &seen{cmd: exec.Command(filepath.Join(bin, "teamctl"), args...), done: make(chan struct{})}
	s.cmd.Dir, s.cmd.Env = t.TempDir(), append(append(os.Environ(), "TERM=xterm-256color", "NO_COLOR="), env...)
	var tty *os.File
	var err error
	if s.File, tty, err = pty.Open(); err != nil {
		t.Fatal(err)
	}
	defer tty.Close()
	s.before = s.settings(t)
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = tty, tty, tty
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := errors.Join(pty.Setsize(s.File, &pty.Winsize{Rows: 24, Cols: uint16(width)}), s.cmd.Start()); err != nil {
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
	limit := time.After(brokertest.Longest)
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
	select {
	case <-s.done:
	case <-time.After(brokertest.Longest):
		t.Fatalf("the command does not end:\n%s", s.text())
	}
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
	c, tm := withCoder(t, namesScript("Shall I keep the names of all the tokens, as they are 今天?"))
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

const decidedScript = `
agents:
  - match: {role: coder}
    rules:
      - name: begin
        since: 'Run it'
        steps:
          - calls: [{tool: bash, args: {command: "echo one >>out.txt"}}]
      - name: allowed
        since: 'A person has allowed your call'
        steps:
          - calls: [{tool: bash, args: {command: "echo one >>out.txt"}}]
          - say: "It has run."
      - name: refused
        since: 'has refused your call'
        steps:
          - say: "I leave it, as I was told: {{heard \"(not today)\"}}."
      - name: rest
        say: "Nothing to do."
  - match: {role: leader}
    rules:
      - name: rest
        say: "Nothing to do."
`

// In a chat a call that a person has to allow is shown with what to type, and what is typed decides on it.
func TestChatDecides(t *testing.T) {
	c := teamtest.Start(t, decidedScript)
	c.Leader()
	c.Teammates(1)
	tm := c.Team("default")
	if _, err := tm.Choose(t.Context(), team.Choices{Policy: &team.Policy{Permissions: team.Permissions{Ask: []string{"Bash(echo *)"}}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := tm.Members().Spawn(t.Context(), team.Member{Role: "coder"}, 1); err != nil {
		t.Fatal(err)
	}
	s := onTerminal(t, 100, "chat", "coder-1", "--server", c.URL)
	s.shows(t, "/help lists what you can type", 1)
	decides := func(times int, typed string, want team.ApprovalStatus, says string) {
		t.Helper()
		s.types(t, "Run it\r")
		s.shows(t, "echo one >>out.txt", times)
		s.shows(t, "allow: /approve ", times)
		var id string
		for id == "" {
			plans, err := tm.Plans().List(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range plans {
				if p.Waits() {
					id = p.ID
				}
			}
		}
		s.types(t, strings.Replace(typed, "ID", id, 1)+"\r")
		s.shows(t, says, 1)
		if p, err := tm.Plans().Get(t.Context(), id); err != nil || p.Status != want || p.DecidedBy != team.UserAgent {
			t.Errorf("after %q the request is %s by %s, %v", typed, p.Status, p.DecidedBy, err)
		}
	}
	decides(1, "/reject ID not today", team.PlanRejected, "I leave it, as I was told: not today.")
	decides(2, "/approve ID", team.PlanUsed, "It has run.")
	s.types(t, "/quit\r")
	if got := s.ends(t); got != 0 {
		t.Errorf("it ended with %d:\n%s", got, s.text())
	}
}
