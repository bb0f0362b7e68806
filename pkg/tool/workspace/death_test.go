package workspace_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
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

// agentFolder tells this program, started once more, to be an agent whose
// command runs on and on in that folder.
const agentFolder = "WORKSPACE_TEST_AGENT"

func TestMain(m *testing.M) {
	if dir := os.Getenv(agentFolder); dir != "" {
		agent(dir)
	}
	os.Exit(m.Run())
}

// allowedFor is for how long that agent's commands may run, if they may not run on.
const allowedFor = "WORKSPACE_TEST_ALLOWED"

func agent(dir string) {
	var opts workspace.Options
	if d, err := time.ParseDuration(os.Getenv(allowedFor)); err == nil {
		until := time.Now().Add(d)
		opts.Allowed = func() (time.Time, <-chan struct{}) { return until, nil }
	}
	w, err := workspace.Open(dir, command.Plain{}, opts)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	set, err := tool.NewSet(nil, w.Tools()...)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	command, _ := json.Marshal("echo $$ > shell; sleep 600 & echo $! > child; wait")
	r := set.Run(context.Background(), tool.Call{Name: "bash", Arguments: `{"command":` + string(command) + `}`})
	fmt.Fprintln(os.Stderr, "ended before it was killed:", r.Content)
	os.Exit(1)
}

// An agent that is killed cannot clean up. Its shell and what that started must
// end all the same: by the group's guard, and the shell also without it.
func TestCommandDiesWithTheAgent(t *testing.T) {
	for _, tt := range []struct {
		name  string
		guard bool
	}{{"by the guard", true}, {"by the kernel", false}} {
		t.Run(tt.name, func(t *testing.T) {
			if !tt.guard && runtime.GOOS != "linux" {
				t.Skip("only Linux has Pdeathsig")
			}
			p := open(t, workspace.Options{})
			agent := exec.Command(os.Args[0])
			agent.Env = append(os.Environ(), agentFolder+"="+p.dir)
			var stderr bytes.Buffer
			agent.Stderr, agent.WaitDelay = &stderr, brokertest.Longest // a command that outlives it holds its stderr
			if err := agent.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { agent.Process.Kill(); agent.Wait() })
			p.written("child")
			group, err := syscall.Getpgid(p.pid("shell"))
			if err != nil {
				t.Fatalf("%v; the agent says: %s", err, &stderr)
			}
			t.Cleanup(func() { syscall.Kill(-group, syscall.SIGKILL) })
			if !tt.guard {
				syscall.Kill(group, syscall.SIGKILL) // the group's leader is the guard
			}
			if err := agent.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			p.gone("shell")
			if tt.guard {
				p.gone("child")
			}
		})
	}
}

// A frozen agent can end nothing. Its command ends all the same once it may run no longer.
func TestCommandOfAFrozenAgent(t *testing.T) {
	p := open(t, workspace.Options{})
	agent := exec.Command(os.Args[0])
	agent.Env = append(os.Environ(), agentFolder+"="+p.dir, allowedFor+"=2s")
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { agent.Process.Kill(); agent.Wait() })
	p.written("child")
	group, err := syscall.Getpgid(p.pid("shell"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Kill(-group, syscall.SIGKILL) })
	if err := agent.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	p.gone("shell")
	p.gone("child")
}

// A command may run for as long as it is told time and again that it may, and no longer.
func TestAllowedMoves(t *testing.T) {
	var mu sync.Mutex
	until, moved := time.Now().Add(time.Second), make(chan struct{})
	p := open(t, workspace.Options{Allowed: func() (time.Time, <-chan struct{}) {
		mu.Lock()
		defer mu.Unlock()
		return until, moved
	}})
	if got := p.ok("bash", args{"command": "echo done"}); got != "done\n" {
		t.Errorf("a command that may run says %q", got)
	}
	move := func(by time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		until = time.Now().Add(by)
		close(moved)
		moved = make(chan struct{})
	}
	go func() {
		p.written("begun")
		move(time.Hour)
	}()
	if got := p.ok("bash", args{"command": "echo > begun; sleep 1.5; echo told"}); got != "told\n" {
		t.Errorf("a command that may run for longer says %q", got)
	}
	move(10 * time.Millisecond)
	p.fails(team.Unavailable, "bash", args{"command": "sleep 600"})
}

// written waits until a command has written a line to the file.
func (p place) written(file string) {
	p.t.Helper()
	p.await(file+" to be written", func() bool {
		data, err := os.ReadFile(p.path(file))
		return err == nil && bytes.HasSuffix(data, []byte("\n"))
	})
}

// gone waits until the process whose number is in the file is no more.
func (p place) gone(file string) {
	p.t.Helper()
	pid := p.pid(file)
	p.await(fmt.Sprintf("%s, process %d, to end", file, pid), func() bool { return !alive(pid) })
}

func (p place) pid(file string) int {
	p.t.Helper()
	pid, err := strconv.Atoi(strings.TrimSpace(p.get(file)))
	if err != nil {
		p.t.Fatal(err)
	}
	return pid
}

// alive reports whether a process runs. A zombie does not: in a container
// perhaps nobody collects it.
func alive(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return runtime.GOOS != "linux"
	}
	_, fields, _ := bytes.Cut(stat, []byte(") "))
	return !bytes.HasPrefix(fields, []byte("Z"))
}

// await waits for something that other processes do and that gives no signal.
func (p place) await(what string, done func() bool) {
	p.t.Helper()
	brokertest.Until(p.t, what, done)
}
