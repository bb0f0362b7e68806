package workspace_test

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/team"
	"agentteam/pkg/tool"
	"agentteam/pkg/tool/command"
	"agentteam/pkg/tool/workspace"
)

func TestBash(t *testing.T) {
	p := open(t, workspace.Options{})
	for command, want := range map[string]string{
		"echo 你好 🚀":                             "你好 🚀\n",
		"echo out; echo err >&2; echo out":      "out\nerr\nout\n",
		"pwd":                                   p.dir + "\n",
		`printf %s "$AGENTTEAM_WORKSPACE$TERM"`: p.dir + "dumb",
		"cat":                                   "(no output)", // no input: it ends at once
		"true":                                  "(no output)",
		"false":                                 "exit status 1",
		"printf partial; exit 42":               "partial\nexit status 42",
		"nothing-of-that-name 2>/dev/null":      "exit status 127",
		"kill -KILL $$":                         "signal: killed",
		`printf 'a\377b'`:                       "a\uFFFDb",
		"echo '" + strings.Repeat("长", 64<<10/3) + "' | wc -m": "21846\n",
	} {
		if strings.HasSuffix(command, "wc -m") {
			command = "export LC_ALL=C.UTF-8; " + command
		}
		if got := p.ok("bash", args{"command": command}); got != want {
			t.Errorf("%.80s: %.200q, want %q", command, got, want)
		}
	}
}

func TestBashRefuses(t *testing.T) {
	p := open(t, workspace.Options{})
	p.fails(team.InvalidArgument, "bash", args{"command": " \n"})
	p.fails(team.InvalidArgument, "bash", args{"command": "echo \x00"})
	p.fails(team.InvalidArgument, "bash", args{"command": "true", "timeout": -1})
	p.fails(team.InvalidArgument, "bash", args{"command": "true", "timeout": 601})
	p.ok("bash", args{"command": "true #" + strings.Repeat("x", 128<<10-7)}) // as long as may be
	p.fails(team.InvalidArgument, "bash", args{"command": "true #" + strings.Repeat("x", 128<<10-6)})
	if err := os.RemoveAll(p.dir); err != nil {
		t.Fatal(err)
	}
	p.fails(team.Unavailable, "bash", args{"command": "true"})
}

func TestBashHidesSecrets(t *testing.T) {
	for name, value := range map[string]string{
		"HOME": "/home/任务", "USER": "u", "LANG": "C", "LC_ALL": "C", "TZ": "UTC", "TMPDIR": os.TempDir(), "TERM": "xterm",
		"OPENAI_API_KEY": "leak", "OPENAI_BASE_URL": "leak", "AWS_SECRET_ACCESS_KEY": "leak", "GITHUB_TOKEN": "leak", "LC_API_KEY": "leak",
		"PATH_TOKEN": "leak", "BASH_ENV": "leak", "BASH_FUNC_f%%": "() { echo leak; }", "LD_PRELOAD": "leak", "AGENTTEAM_SERVER": "nats://leak",
	} {
		t.Setenv(name, value)
	}
	p := open(t, workspace.Options{})
	got := p.ok("bash", args{"command": "env"})
	if strings.Contains(got, "leak") {
		t.Errorf("environment of a command:\n%s", got)
	}
	for _, want := range []string{"HOME=/home/任务", "USER=u", "LANG=C", "LC_ALL=C", "TZ=UTC", "TMPDIR=" + os.TempDir(), "TERM=dumb", "AGENTTEAM_WORKSPACE=" + p.dir} {
		if !slices.Contains(strings.Split(got, "\n"), want) {
			t.Errorf("%s is missing in:\n%s", want, got)
		}
	}
}

func TestBashCapsOutput(t *testing.T) {
	p := open(t, workspace.Options{})
	got := p.ok("bash", args{"command": "echo first; yes 长 | head -n 1000000; echo last; exit 3"})
	if len(got) > 30_100 || !strings.HasPrefix(got, "first\n") || !strings.HasSuffix(got, "\nlast\nexit status 3") || !strings.Contains(got, "they could not be kept]\n") {
		t.Errorf("%d bytes, end %q", len(got), got[max(0, len(got)-100):])
	}
}

// What a command leaves behind must neither hold up its result nor live on. Were
// the call to wait for it, it would end at its time limit with an error.
func TestBackgroundEndsWithTheCall(t *testing.T) {
	for name, command := range map[string]string{
		"that holds the output": "sleep 600 & echo $! > pid; echo done",
		"without output":        "sleep 600 >/dev/null 2>&1 </dev/null & echo $! > pid; echo done",
		"that ignores signals":  "(trap '' HUP INT TERM; sleep 600 & echo $! > pid; wait) & until [ -s pid ]; do :; done; echo done",
		"a grandchild":          "bash -c 'bash -c \"sleep 600 & echo \\$! > pid\"'; echo done",
		"disowned":              "nohup sleep 600 & echo $! > pid; disown; echo done",
	} {
		t.Run(name, func(t *testing.T) {
			p := open(t, workspace.Options{})
			if got := p.ok("bash", args{"command": command}); !strings.HasSuffix(got, "done\n") {
				t.Errorf("result %q", got)
			}
			p.gone("pid")
		})
	}
}

// A process with a session of its own gets away, as the package says; the call
// must return nevertheless.
func TestEscapedProcessDoesNotBlock(t *testing.T) {
	t.Parallel()
	p := open(t, workspace.Options{})
	if got := p.ok("bash", args{"command": "command -v setsid"}); strings.Contains(got, "exit status") {
		t.Skip("no setsid here")
	}
	result := make(chan tool.Result, 1)
	go func() {
		result <- p.call("bash", args{"command": "setsid bash -c 'echo $$ > pid; exec sleep 600' & until [ -s pid ]; do :; done; echo done"})
	}()
	p.written("pid")
	escaped := p.pid("pid")
	defer syscall.Kill(escaped, syscall.SIGKILL)
	select {
	case r := <-result:
		if r.Content != "done\n" || !alive(escaped) {
			t.Errorf("result %+v; the process lives: %v", r, alive(escaped))
		}
	case <-time.After(brokertest.Longest):
		t.Error("the call waits for the process")
	}
}

func TestBashTimesOut(t *testing.T) {
	t.Parallel()
	p := open(t, workspace.Options{})
	got := p.fails(team.InvalidState, "bash", args{"command": "echo 已开始; echo $$ > shell; sleep 600 & echo $! > child; wait", "timeout": 1})
	if got != "已开始\n[timed out after 1 s and was killed: set timeout, at most 600, or do it in smaller steps]" { // as it is, not as JSON
		t.Errorf("result %s", got)
	}
	p.gone("shell")
	p.gone("child")
}

func TestBashIsCancelled(t *testing.T) {
	p := open(t, workspace.Options{})
	ctx, cancel := context.WithCancelCause(t.Context())
	result := make(chan tool.Result)
	go func() {
		result <- p.set.Run(ctx, tool.Call{Name: "bash", Arguments: `{"command":"echo begun; echo $$ > shell; sleep 600 & echo $! > child; wait"}`})
	}()
	p.written("child")
	cancel(team.Errorf(team.Conflict, "the task is another's now"))
	if r := brokertest.Receive(t, "the call ends", result); r.Code != team.Unavailable || !strings.Contains(r.Content, "begun") || !strings.Contains(r.Content, "another's now") {
		t.Errorf("result %+v", r)
	}
	p.gone("shell")
	p.gone("child")
}

func TestCommandsDoNotDisturbEachOther(t *testing.T) {
	p := open(t, workspace.Options{})
	var calls sync.WaitGroup
	for _, n := range strings.Split("abcdefgh", "") {
		calls.Go(func() {
			r := p.call("bash", args{"command": "sleep 600 & for i in $(seq 200); do echo " + n + "; done; kill %1; wait"})
			if got := strings.Count(r.Content, n+"\n"); r.IsError || got < 200 {
				t.Errorf("%s: %d lines, %.100s", n, got, r.Content)
			}
		})
	}
	calls.Wait()
}

// limiting is a runner with a limit that Plain does not have.
type limiting struct{}

func (limiting) Run(_ context.Context, c command.Command) (command.Exit, error) {
	_, err := io.WriteString(c.Output, "begun\n")
	return command.Exit{Code: -1, How: "signal: killed", Cause: errors.New("512 MiB of memory were used up")}, err
}

// What the limit of a runner has ended is shown as that.
func TestLimitOfTheRunner(t *testing.T) {
	p := open(t, workspace.Options{})
	w, err := workspace.Open(p.dir, limiting{}, workspace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	p.set = newSet(t, w)
	const want = "begun\n[killed: 512 MiB of memory were used up]"
	if got := p.fails(team.InvalidState, "bash", args{"command": "true"}); got != want {
		t.Errorf("bash: %q", got)
	}
	if got, passed, err := w.Check(t.Context(), "true"); got != want || passed || err != nil {
		t.Errorf("the check: %q, %v, %v", got, passed, err)
	}
}

// What a command's end was is in the account of its call, also where that is an error.
func TestExitIsNoted(t *testing.T) {
	t.Parallel()
	p := open(t, workspace.Options{})
	for command, want := range map[string]int{"true": 0, "exit 42": 42, "kill -KILL $$": -1, "sleep 600": -1} {
		if a := p.call("bash", args{"command": command, "timeout": 1}).Account; a.Exit == nil || *a.Exit != want {
			t.Errorf("%s: %+v, want %d", command, a, want)
		}
	}
	if a := p.call("bash", args{"command": "true"}).Account; a.Sandbox != team.Unconfined {
		t.Errorf("it ran plainly, and is noted as %q", a.Sandbox)
	}
	if a := p.call("read_file", args{"path": "none"}).Account; a.Exit != nil || a.Code != team.NotFound {
		t.Errorf("%+v", a)
	}
}
