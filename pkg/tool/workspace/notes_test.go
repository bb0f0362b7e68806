package workspace_test

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"agentteam/pkg/team"
	"agentteam/pkg/tool"
	"agentteam/pkg/tool/command"
	"agentteam/pkg/tool/workspace"
)

// scripted is a runner whose commands write a text and end in a way.
type scripted struct {
	output string
	exit   command.Exit
}

func (s scripted) Run(_ context.Context, c command.Command) (command.Exit, error) {
	_, err := io.WriteString(c.Output, s.output)
	return s.exit, err
}

// What a sandbox refuses comes with its note, however the command has ended, and nothing else does.
func TestNotes(t *testing.T) {
	const (
		sockets = "commands make no socket in this sandbox"
		network = `a person can allow hosts by "network"`
		divided = "make it with write_file, or in a folder below"
		paths   = `what a person has named by "paths"`
	)
	confined := command.Exit{Sandbox: team.Confined, Offline: true}
	kept := command.Exit{Sandbox: team.Confined, Offline: true, Divided: true}
	boxed := command.Exit{Sandbox: team.Bubblewrap, Offline: true}
	online := command.Exit{Sandbox: team.Bubblewrap}
	python := "Traceback:\n  File \"/usr/lib/python3.11/socket.py\", line 232, in __init__\n    _socket.socket.__init__(self, family)\nPermissionError: [Errno 1] Operation not permitted\n"
	for name, tt := range map[string]struct {
		output string
		exit   command.Exit
		want   []string
	}{
		"nothing":                      {"ok\n", confined, nil},
		"a listener of Go":             {"listen tcp 127.0.0.1:0: socket: operation not permitted", confined, []string{sockets}},
		"a socket of Python":           {python, confined, []string{sockets}},
		"a socket of another family":   {python, boxed, []string{network}},
		"node":                         {"Error: listen EPERM: operation not permitted 127.0.0.1", confined, []string{sockets}},
		"no host":                      {"curl: (6) Could not resolve host: example.com\n", boxed, []string{network}},
		"no host, online":              {"curl: (6) Could not resolve host: example.com\n", online, nil},
		"a host and a socket, offline": {"getaddrinfo ENOTFOUND\nsocket: Operation not permitted\n", boxed, []string{network}},
		"a host and a socket":          {"getaddrinfo ENOTFOUND\nsocket: Operation not permitted\n", confined, []string{sockets, network}},
		"the folder of .git":           {"touch: cannot touch 'x': Permission denied\n", kept, []string{divided}},
		"outside":                      {"touch: cannot touch '/x': Read-only file system\n", online, []string{paths}},
		"outside, at confined":         {"cat: /home/ann/x: Permission denied\n", confined, []string{paths}},
		"outside, and no host":         {"cat: /x: Permission denied\nno such host\n", boxed, []string{network, paths}},
		"far from a socket":            {"socket" + strings.Repeat(" ", 1000) + "operation not permitted", confined, []string{paths}},
		"in the middle of much":        {strings.Repeat("line\n", 20_000) + "Permission denied\n" + strings.Repeat("line\n", 20_000), boxed, []string{paths}},
		"no sandbox":                   {"Permission denied\nno such host\n", command.Exit{Sandbox: team.Unconfined}, nil},
	} {
		for _, code := range []int{0, 3} {
			tt.exit.Code, tt.exit.How = code, "exit status 3"
			ws, err := workspace.Open(t.TempDir(), scripted{tt.output, tt.exit}, workspace.Options{})
			if err != nil {
				t.Fatal(err)
			}
			got, _, err := ws.Check(t.Context(), "true")
			if err != nil {
				t.Fatal(err)
			}
			for _, note := range []string{sockets, network, divided, paths} {
				want := 0
				for _, w := range tt.want {
					if w == note {
						want = 1
					}
				}
				if n := strings.Count(got, note); n != want {
					t.Errorf("%s, exit %d: %q comes %d times, want %d, in %.300q", name, code, note, n, want, got)
				}
			}
			if code == 3 && !strings.HasSuffix(got, "exit status 3") || code == 0 && strings.Contains(got, "exit status") {
				t.Errorf("%s, exit %d: %.300q", name, code, got)
			}
			ws.Close()
		}
	}
}

// A command that was killed, and one in the background, are explained as well.
func TestNotesOfKilled(t *testing.T) {
	run := scripted{"dial: no such host", command.Exit{Code: -1, Cause: command.ErrTimeout, Sandbox: team.Bubblewrap, Offline: true}}
	var printed strings.Builder
	ended := make(chan string, 1)
	ws, err := workspace.Open(t.TempDir(), run, workspace.Options{Begin: func(is team.Job, run func(context.Context, io.Writer) string) (team.Job, error) {
		ended <- run(t.Context(), &printed)
		return is, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	set, err := tool.NewSet(nil, ws.Tools()...)
	if err != nil {
		t.Fatal(err)
	}
	got := set.Run(t.Context(), tool.Call{ID: "1", Name: "bash", Arguments: `{"command":"x","timeout":7}`})
	if want := "dial: no such host\n[commands have no network here"; !got.IsError || !strings.Contains(got.Content, want) || !strings.Contains(got.Content, "]\n[timed out after 7 s") {
		t.Errorf("in time: %s", got.Content)
	}
	set.Run(t.Context(), tool.Call{ID: "2", Name: "bash", Arguments: `{"command":"x","run_in_background":true}`})
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Fatal("nothing runs in the background")
	}
	if got := printed.String(); !strings.HasPrefix(got, "dial: no such host\n[commands have no network here") {
		t.Errorf("in the background: %s", got)
	}
}
