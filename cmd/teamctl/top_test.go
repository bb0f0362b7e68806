package main

import (
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"agentteam/pkg/client"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/teamtest"
)

// settings are those of the terminal, which a program may change.
func (s *seen) settings(t *testing.T) unix.Termios {
	t.Helper()
	is, err := unix.IoctlGetTermios(int(s.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	return *is
}

// raw is what has been written, with its colours and movements of the cursor.
func (s *seen) raw() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all.String()
}

// isRestored fails the test unless the terminal is as it was before the command began.
func (s *seen) isRestored(t *testing.T) {
	t.Helper()
	if now := s.settings(t); !reflect.DeepEqual(now, s.before) {
		t.Errorf("the terminal is set to %+v, before to %+v", now, s.before)
	}
	for _, of := range []struct{ what, on, off string }{
		{"the other screen", "\x1b[?1049h", "\x1b[?1049l"}, {"the hidden cursor", "\x1b[?25l", "\x1b[?25h"}, {"pasting in brackets", "\x1b[?2004h", "\x1b[?2004l"},
	} {
		if raw := s.raw(); strings.LastIndex(raw, of.on) < 0 || strings.LastIndex(raw, of.off) < strings.LastIndex(raw, of.on) {
			t.Errorf("%s is not left:\n%q", of.what, raw)
		}
	}
}

// However the screen ends, the terminal is as it was. Without colours it has none.
func TestTopOnATerminal(t *testing.T) {
	hangup := make(chan os.Signal, 1) // under nohup the tests ignore SIGHUP, and so would what they start
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	c, tm := withCoder(t, namesScript("Shall I keep the names?"))
	if _, _, err := tm.Mail().Send(t.Context(), client.NewMail{To: "coder-1", Text: "Which names?"}); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name  string
		leave func(s *seen)
		code  int
	}{
		{"q", func(s *seen) { s.types(t, "q") }, 0},
		{"Ctrl-C", func(s *seen) { s.types(t, "\x03") }, 0},
		{"SIGTERM", func(s *seen) { _ = s.cmd.Process.Signal(syscall.SIGTERM) }, 130},
		{"SIGHUP", func(s *seen) { _ = s.cmd.Process.Signal(syscall.SIGHUP) }, 130},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := onTerminal(t, 80, "top", "--server", c.URL)
			s.shows(t, "asks you: Shall I keep the names?", 1)
			tt.leave(s)
			brokertest.Receive(t, "the command ends", s.done)
			s.isRestored(t)
			if code := s.ends(t); code != tt.code {
				t.Errorf("it ends with %d, want %d:\n%s", code, tt.code, s.text())
			}
		})
	}
	t.Run("without colours", func(t *testing.T) {
		s := onTerminalWith(t, 80, []string{"NO_COLOR=1"}, "top", "default", "--server", c.URL)
		s.shows(t, "asks you: Shall I keep the names?", 1)
		s.types(t, "q")
		if s.ends(t); regexp.MustCompile(`\x1b\[[0-9;]*(3[0-7]|38;|9[0-7])[0-9;]*m`).MatchString(s.raw()) {
			t.Errorf("there are colours:\n%q", s.raw())
		}
	})
	t.Run("answers", func(t *testing.T) {
		s := onTerminal(t, 80, "top", "--server", c.URL)
		s.shows(t, "asks you: Shall I keep the names?", 1)
		s.types(t, "a")
		s.shows(t, "answer coder-1", 1)
		s.types(t, "2\r")
		s.shows(t, "“I rename them”", 1) // only what changes in a line is written: "answered coder-1" may stand after "answering coder-1"
		s.types(t, "q")
		if code := s.ends(t); code != 0 {
			t.Errorf("it ends with %d", code)
		}
		teamtest.Until(t, tm, func(e client.Entry) bool { return e.Event.Event.Delta == "I rename them" })
	})
}

// A team that is not there ends the command before the screen is drawn; so does what is no
// terminal, with what shows the same as text.
func TestTopOfNothing(t *testing.T) {
	c := teamtest.Start(t, namesScript("Shall I keep the names?"))
	c.Leader()
	c.Team("default")
	s := onTerminal(t, 80, "top", "nowhere", "--server", c.URL)
	if code := s.ends(t); code != 3 || !strings.Contains(s.text(), "nowhere") || strings.Contains(s.raw(), "\x1b[?1049h") {
		t.Errorf("of a team that is not there it ends with %d:\n%s", code, s.text())
	}
	c.Team("red") // of several teams one is chosen
	s = onTerminal(t, 80, "top", "--server", c.URL)
	s.shows(t, "red active", 1)
	s.types(t, "\x1b[B\r")
	s.shows(t, "[Members]", 1)
	s.types(t, "q")
	s.ends(t)
	for _, args := range [][]string{{"top"}, {"top", "-o", "json"}, {"run", "--top", "Port it"}} {
		cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "teamctl"), append(args, "--server", c.URL)...)
		cmd.Dir = t.TempDir()
		out, err := cmd.CombinedOutput()
		if err == nil || cmd.ProcessState.ExitCode() != 2 || !strings.Contains(string(out), "teamctl agents") {
			t.Errorf("teamctl %s without a terminal: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}
