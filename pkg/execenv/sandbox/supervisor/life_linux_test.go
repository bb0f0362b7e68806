package supervisor_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentteam/pkg/execenv/sandbox"
	"agentteam/pkg/execenv/sandbox/supervisor"
	"agentteam/pkg/team"
	"agentteam/pkg/teamtest/testenv"
	"agentteam/pkg/tool/command"
)

// Nothing survives a command, whatever it does to get away, and a pipe that is held open
// does not hold up its end.
func TestNothingSurvives(t *testing.T) {
	t.Parallel()
	scripts := map[string]string{
		"background":  `bash -c 'sleep 600; : MARK' & exit 0`,
		"setsid":      `setsid bash -c 'sleep 600; : MARK' & exit 0`,
		"double fork": `(setsid bash -c '(setsid bash -c "sleep 600; : MARK" &) ; exit 0' &) ; exit 0`,
		"ignores":     `bash -c 'trap "" TERM HUP INT QUIT; echo ready > ready; while :; do sleep 600; done; : MARK' & until [ -e ready ]; do :; done; exit 0`,
		"stopped":     `bash -c 'kill -STOP $$; : MARK' & exit 0`,
	}
	each(t, func(r rig) {
		for name, script := range scripts {
			mark := "survivor-" + strconv.Itoa(os.Getpid()) + "-" + string(r.Level()) + strings.ReplaceAll(name, " ", "-")
			if exit, output := r.bash(strings.ReplaceAll(script, "MARK", mark)); exit.Code != 0 || output != "" {
				r.Errorf("%s: %+v: %s", name, exit, output)
			}
			if left := marked(mark); len(left) > 0 {
				r.Errorf("%s: survivors %v", name, left)
			}
		}
	})
}

// A command ends at its time limit and with the right to run, with all that it has started.
func TestEnds(t *testing.T) {
	t.Parallel()
	each(t, func(r rig) {
		const script = `trap "" TERM; setsid sleep 600 & sleep 600`
		exit, _ := r.run(command.Command{Args: []string{"bash", "-c", script}, Limit: 100 * time.Millisecond})
		if exit.Code != -1 || exit.How != "signal: killed" || exit.Cause != command.ErrTimeout {
			r.Errorf("the time limit: %+v", exit)
		}
		exit, _ = r.run(command.Command{Args: []string{"bash", "-c", script}, Allowed: func() (time.Time, <-chan struct{}) { return time.Now().Add(-time.Second), nil }})
		if exit.Code != -1 || exit.Cause != command.ErrNotAllowed {
			r.Errorf("not allowed: %+v", exit)
		}
		runner, err := r.Runner(r.box)
		if err != nil {
			r.Fatal(err)
		}
		if _, err := runner.Run(r.Context(), command.Command{Args: []string{"no-such-program"}, Dir: r.box.Dir, Output: os.Stderr}); err == nil || !strings.Contains(err.Error(), "no-such-program") {
			r.Errorf("a program that is not there: %v", err)
		}
	})
}

// What passes a limit is ended, and the cause shows which.
func TestLimits(t *testing.T) {
	t.Parallel()
	each(t, func(r rig) {
		r.box.Limits = sandbox.Limits{Memory: 256 << 20, Processes: 20, Threads: 200, FileSize: 1 << 20}
		for _, tt := range []struct {
			command command.Command
			cause   error
		}{
			{command.Command{Args: []string{"bash", "-c", `for i in $(seq 40); do sleep 600 & done; wait`}}, sandbox.ErrProcesses},
			{command.Command{Args: []string{"bash", "-c", `head -c 2000000 /dev/zero > big`}}, sandbox.ErrFileSize},
			{command.Command{Args: []string{r.box.ReadOnly[0]}, Env: []string{probing + "=grow"}}, sandbox.ErrMemory},
			{command.Command{Args: []string{r.box.ReadOnly[0]}, Env: []string{probing + "=memfd"}}, sandbox.ErrMemory},
			{command.Command{Args: []string{r.box.ReadOnly[0]}, Env: []string{probing + "=threads"}}, sandbox.ErrThreads},
			{command.Command{Args: []string{"bash", "-c", `for i in $(seq 10); do sleep 0.3 & done; head -c 1000000 /dev/zero > small; wait`}}, nil},
		} {
			if exit, output := r.run(tt.command); !errors.Is(exit.Cause, tt.cause) || (exit.Code == 0) != (tt.cause == nil) {
				r.Errorf("%v: %+v: %.200s", tt.cause, exit, output)
			}
		}
	})
}

// A command that doubles, half of it in new sessions, which no call of the kernel ends together, is
// ended all the same. It has 200 processes at most.
func TestDoubling(t *testing.T) {
	t.Parallel()
	each(t, func(r rig) {
		r.box.Limits.Processes = 20
		mark := "survivor-" + strconv.Itoa(os.Getpid()) + "-" + string(r.Level()) + "-doubling"
		exit, output := r.run(command.Command{Limit: time.Minute, Args: []string{"bash", "-c",
			`grow() { [ "$1" -gt 0 ] || exec sleep 600; setsid bash -c "$(declare -f grow); grow $(($1 - 1)); : ` + mark + `" & grow $(($1 - 1)) & wait; }; grow 6`}})
		if !errors.Is(exit.Cause, sandbox.ErrProcesses) || exit.Code == 0 {
			r.Errorf("%+v: %.200s", exit, output)
		}
		if left := marked(mark); len(left) > 0 {
			r.Errorf("survivors %v", left)
		}
	})
}

// The bomb of the textbooks: each process starts two and ends, so that none is there for long. Nothing of it outlives its
// command, which the limit of processes ends where it waits. Where a container takes no more processes the supervisor gets no
// thread more, and ends it all the same. Its processes are bounded, to spare the machine.
func TestForkBomb(t *testing.T) {
	const bomb = ":(){ :|:& };:"
	for _, level := range []team.Sandbox{team.Bubblewrap, team.Confined} {
		for name, tt := range map[string]struct {
			script, processes, container string
			cause                        error
		}{
			"its command ends":     {bomb, "50", "1500", nil},
			"its command waits":    {bomb + "; sleep 600", "50", "1500", sandbox.ErrProcesses},
			"it fills a container": {bomb + "; sleep 600", "512", "200", command.ErrNotAllowed},
		} {
			t.Run(string(level)+" "+name, func(t *testing.T) {
				r := rigOf(t, level)
				owner, inside := r.bounded(tt.container, filepath.Dir(r.box.Dir), tt.script)
				owner.Env = append(os.Environ(), owning+"="+string(level), owning+"_PROCESSES="+tt.processes)
				if tt.cause == command.ErrNotAllowed {
					owner.Env = append(owner.Env, owning+"_ALLOWED=2s")
				}
				said, err := owner.CombinedOutput()
				if !bytes.Contains(said, []byte("ended before it was killed: ")) || tt.cause != nil && !bytes.Contains(said, []byte(tt.cause.Error())) {
					t.Errorf("%v: %s", err, said[max(0, len(said)-300):])
				}
				r.await("the end of the supervisor, the last of them", func() bool { return len(inside()) == 0 })
			})
		}
	}
}

// All that a member has started ends when the member is killed, and in time although it is frozen.
func TestOwnerIsGone(t *testing.T) {
	t.Parallel()
	each(t, func(r rig) {
		for name, end := range map[string]struct {
			allowed string
			signal  syscall.Signal
		}{"killed": {"1h", syscall.SIGKILL}, "frozen": {"3s", syscall.SIGSTOP}} {
			mark := "owned-" + strconv.Itoa(os.Getpid()) + "-" + string(r.Level()) + name
			ready := filepath.Join(r.box.Dir, name)
			owner := exec.Command(r.box.ReadOnly[0], filepath.Dir(r.box.Dir), `setsid bash -c 'echo > `+name+`; sleep 600; : `+mark+`' & sleep 600`)
			owner.Env = append(os.Environ(), owning+"="+string(r.Level()), owning+"_ALLOWED="+end.allowed)
			owner.Stderr = os.Stderr
			if err := owner.Start(); err != nil {
				r.Fatal(err)
			}
			r.Cleanup(func() { owner.Process.Kill(); owner.Wait() })
			r.await(name+" to be ready", func() bool { _, err := os.Stat(ready); return err == nil })
			if err := owner.Process.Signal(end.signal); err != nil {
				r.Fatal(err)
			}
			inside := func() (all []int) {
				for _, pid := range marked(mark) {
					if pid != owner.Process.Pid {
						all = append(all, pid)
					}
				}
				return all
			}
			r.await("the end of the processes of a member that is "+name, func() bool { return len(inside()) == 0 })
		}
	})
}

// How many threads a supervisor needs does not follow from the machine, and its command sees nothing of that. They are there before
// the command is: eight, and those that Go starts with, which are never fewer than four.
func TestSupervisorIsBounded(t *testing.T) {
	t.Parallel()
	if exit, output := rigOf(t, team.Unconfined).bash(`tr '\0' '\n' < /proc/$PPID/environ; echo ${GOMAXPROCS-none}
		while read -r name n; do [[ $name != Threads: || $n -ge 12 ]] || echo "$n threads"; done < /proc/$PPID/status`); exit.Code != 0 || output != supervisor.Environ+"\nnone\n" {
		t.Errorf("%+v: %s", exit, output)
	}
	each(t, func(r rig) {
		if exit, output := r.bash("echo ${GOMAXPROCS-none}"); exit.Code != 0 || output != "none\n" {
			r.Errorf("%+v: %s", exit, output)
		}
	})
}

// The level none runs commands, and ends what they leave behind.
func TestUnconfined(t *testing.T) {
	t.Parallel()
	r := rigOf(t, team.Unconfined)
	mark := "unconfined-" + strconv.Itoa(os.Getpid())
	exit, output := r.bash(`echo "$HOME"; setsid bash -c 'sleep 600; : ` + mark + `' & exit 0`)
	if exit.Code != 0 || strings.TrimSpace(output) != os.Getenv("HOME") || len(marked(mark)) > 0 {
		t.Errorf("%+v: %s; left: %v", exit, output, marked(mark))
	}
}

// A command reaches the proxy of its box at the address in its variables, and its own servers without it.
func TestProxy(t *testing.T) {
	t.Parallel()
	r := rigOf(t, team.Bubblewrap)
	r.box.Proxy = func(ctx context.Context, l net.Listener, _ io.Writer) {
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			body, _ := io.ReadAll(req.Body)
			fmt.Fprintf(w, "%s %s %d", req.Method, req.RequestURI, len(body))
		})}
		context.AfterFunc(ctx, func() { server.Close() })
		_ = server.Serve(l)
	}

	_, output := r.bash(`env | grep -i _proxy= | sort`)
	const own = "localhost,127.0.0.1,::1"
	if want := "HTTPS_PROXY=http://127.0.0.1:3128\nHTTP_PROXY=http://127.0.0.1:3128\nNO_PROXY=" + own + "\nhttp_proxy=http://127.0.0.1:3128\nhttps_proxy=http://127.0.0.1:3128\nno_proxy=" + own + "\n"; output != want {
		t.Errorf("variables: %s", output)
	}
	for range 2 { // each command has its own network, and so the same port
		if got := r.probe("fetch", "http://a.example/x"); got != "POST http://a.example/x 1048576\n" {
			t.Errorf("through the proxy: %s", got)
		}
	}
	t.Run("its own server", func(t *testing.T) {
		testenv.Program(t, "curl")
		if got := r.probe("own server"); got != "own\n" {
			t.Error(got)
		}
	})
	// Nothing of what made the socket is left for the command.
	if exit, output := r.bash(`echo /proc/self/fd/*; tr '\0' ' ' < /proc/$$/cmdline`); !strings.HasPrefix(output, "/proc/self/fd/0 /proc/self/fd/1 /proc/self/fd/2 /proc/self/fd/3\nbash -c") {
		t.Errorf("left: %+v: %s", exit, output)
	}
	if exit, output := r.bash(`exit 7`); exit.Code != 7 || output != "" {
		t.Errorf("%+v: %s", exit, output)
	}
}
