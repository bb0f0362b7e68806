package sandbox_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentteam/pkg/command"
	"agentteam/pkg/sandbox"
	"agentteam/pkg/sandbox/supervisor"
	"agentteam/pkg/team"
)

// In its folder a command works as ever: files, programs, git, one output, an exit status.
func TestWork(t *testing.T) {
	t.Parallel()
	each(t, func(r rig) {
		r.put(filepath.Join(r.box.Dir, "in"), "text")
		exit, output := r.bash(`cat; cat in; mkdir -p a/b && cp in a/b/out && ln a/b/out a/linked && mv a/linked b && chmod 755 b && rm in &&
			echo x > "$HOME/h" && echo x > "$TMPDIR/t" && echo x > /dev/null && echo " first" && echo "$EXTRA" >&2; exit 3`)
		if exit != (command.Exit{Code: 3, How: "exit status 3", Sandbox: r.Level(), Offline: true}) || output != "text first\n\n" {
			t.Errorf("%+v: %q", exit, output)
		}
		if got, err := os.ReadFile(filepath.Join(r.box.Dir, "a/b/out")); string(got) != "text" {
			r.Errorf("written: %q, %v", got, err)
		}
		if got, err := os.ReadFile(filepath.Join(r.box.Home, "h")); string(got) != "x\n" {
			r.Errorf("written at home: %q, %v", got, err)
		}
		if exit, output := r.bash(`cat "$TMPDIR/t"`); output != "x\n" {
			r.Errorf("a temporary file of an earlier command: %+v: %s", exit, output)
		}
		if _, err := exec.LookPath("git"); err == nil {
			if exit, output := r.bash(`git init -q && echo x > f && git add f && git -c user.name=n -c user.email=e commit -qm s && git status --short f && git log --format=%s`); exit.Code != 0 || output != "s\n" {
				r.Errorf("git: %+v: %s", exit, output)
			}
		}
	})
}

// What is outside of the box is out of reach, and what may only be read is not written.
func TestFiles(t *testing.T) {
	t.Parallel()
	each(t, func(r rig) {
		secret, read, write := r.outside("secret"), r.outside("read"), r.outside("write")
		r.put(secret, "canary")
		r.put(filepath.Join(read, "f"), "readable")
		r.put(filepath.Join(write, "f"), "writable")
		r.box.ReadOnly, r.box.Write = append(r.box.ReadOnly, read), []string{write}
		if err := os.Symlink(secret, filepath.Join(r.box.Dir, "link")); err != nil {
			r.Fatal(err)
		}
		exit, output := r.bash(`cat "$2/f" && echo more > "$3/f" && echo more > "$3/g" && ! echo x 2>/dev/null > "$2/f" && ! touch "$2/g" 2>/dev/null || exit 1
			for path in "$1" link "/proc/self/root$1" "/proc/1/root$1" /etc/shadow /run/. /home/. "$HOME/../secret"; do
				ls "$path"/ > /dev/null 2>&1; cat "$path" 2>/dev/null && echo "$path is read"
			done
			for path in "$1" link "$1-new"; do echo x 2>/dev/null >> "$path"; done # at bubblewrap in memory
			for path in /usr/bin/x /etc/passwd /proc/sys/kernel/domainname; do
				echo x 2>/dev/null >> "$path" && echo "$path is written"
			done
			ln "$1" hard; mv "$1" moved; rm -f "$1"; exit 0`, secret, read, write)
		if exit.Code != 0 || !strings.HasPrefix(output, "readable") || strings.Contains(output, " is ") {
			r.Errorf("%+v: %s", exit, output)
		}
		for path, want := range map[string]string{secret: "canary", filepath.Join(read, "f"): "readable", filepath.Join(write, "f"): "more\n"} {
			if got, err := os.ReadFile(path); string(got) != want {
				r.Errorf("%s: %q, %v", path, got, err)
			}
		}
		if left, _ := filepath.Glob(secret + "-*"); len(left) > 0 {
			r.Errorf("made: %q", left)
		}
	})
}

// A command has the system's settings as they are, and no file that it has not opened itself.
func TestSystem(t *testing.T) {
	t.Parallel()
	each(t, func(r rig) {
		if exit, output := r.bash(`set -- /proc/self/fd/*; echo $#`); exit.Code != 0 || output != "4\n" { // and the folder of them
			r.Errorf("open: %+v: %s", exit, output)
		}
		for _, name := range []string{"/etc/passwd", "/etc/ld.so.cache", "/etc/os-release", "/etc/services"} {
			want, err := os.ReadFile(name)
			if err != nil {
				continue
			}
			if exit, output := r.bash(`sha256sum < $1`, name); exit.Code != 0 || output != fmt.Sprintf("%x  -\n", sha256.Sum256(want)) {
				r.Errorf("%s: %+v: %s", name, exit, output)
			}
		}
	})
}

// No socket leads out of the box, of whatever family.
func TestSockets(t *testing.T) {
	t.Parallel()
	each(t, func(r rig) {
		tcp, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			r.Fatal(err)
		}
		defer tcp.Close()
		udp, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err != nil {
			r.Fatal(err)
		}
		defer udp.Close()
		dir, err := os.MkdirTemp("", "s") // a short name, as that of a socket must be
		if err != nil {
			r.Fatal(err)
		}
		defer os.RemoveAll(dir)
		path := filepath.Join(dir, "s")
		stream, err := net.Listen("unix", path)
		if err != nil {
			r.Fatal(err)
		}
		defer stream.Close()
		datagram, err := net.ListenPacket("unixgram", path+"d")
		if err != nil {
			r.Fatal(err)
		}
		defer datagram.Close()
		abstract, err := net.Listen("unix", "@agentteam-sandbox-test"+strconv.Itoa(os.Getpid())+string(r.Level()))
		if err != nil {
			r.Fatal(err)
		}
		defer abstract.Close()
		for _, try := range [][2]string{
			{"tcp", tcp.Addr().String()}, {"mptcp", tcp.Addr().String()}, {"unix", path}, {"unix", abstract.Addr().String()},
			{"unixgram", path + "d"}, {"pair", path + "d"}, {"netlink", ""}, {"vsock", ""}, {"packet", ""},
		} {
			if got := r.probe("socket", try[0], try[1]); got == "done\n" {
				r.Errorf("%s %s: %s", try[0], try[1], got)
			}
		}
		// UDP is sent without an answer: nothing must have come.
		r.probe("socket", "udp", udp.LocalAddr().String())
		_ = udp.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
		if n, from, err := udp.ReadFrom(make([]byte, 8)); err == nil {
			r.Errorf("%d bytes came from %s", n, from)
		}
	})
}

// Other processes can be neither seen into, nor ended, nor can a command gain privileges.
func TestProcesses(t *testing.T) {
	t.Parallel()
	each(t, func(r rig) {
		victim := exec.Command("sleep", "600")
		victim.Env = append(os.Environ(), "CANARY=canary")
		if err := victim.Start(); err != nil {
			r.Fatal(err)
		}
		defer func() { victim.Process.Kill(); victim.Wait() }()
		pid := strconv.Itoa(victim.Process.Pid)
		if exit, output := r.bash(`cat /proc/$1/environ /proc/*/environ 2>/dev/null | grep -a -c CANARY=canary; kill -9 $1 2>/dev/null; kill -9 $PPID 2>/dev/null; exit 0`, pid); output != "0\n" {
			r.Errorf("environ: %+v: %s", exit, output)
		}
		for _, what := range []string{"ptrace", "io_uring", "unshare", "mount", "keyctl", "tiocsti"} {
			if got := r.probe(what, pid); got != "operation not permitted\n" {
				r.Errorf("%s: %s", what, got)
			}
		}
		if got := r.probe("prlimit", pid); got == "done\n" { // with no processor time left, the kernel kills it
			r.Errorf("the limits of another process were changed")
		}
		// It ends its own processes only, of which it is the only one.
		if exit, output := r.bash(`sleep 600 & kill -9 -1; echo survived`); exit.Code == 0 && output != "survived\n" {
			r.Errorf("kill -9 -1: %+v: %s", exit, output)
		}
		if err := victim.Process.Signal(syscall.Signal(0)); err != nil {
			r.Errorf("another process was ended: %v", err)
		}
	})
}

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
		r.box.Limits = sandbox.Limits{Memory: 256 << 20, Processes: 20, FileSize: 1 << 20}
		for _, tt := range []struct {
			command command.Command
			cause   error
		}{
			{command.Command{Args: []string{"bash", "-c", `for i in $(seq 40); do sleep 600 & done; wait`}}, sandbox.ErrProcesses},
			{command.Command{Args: []string{"bash", "-c", `head -c 2000000 /dev/zero > big`}}, sandbox.ErrFileSize},
			{command.Command{Args: []string{r.box.ReadOnly[0]}, Env: []string{probing + "=grow"}}, sandbox.ErrMemory},
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

// What is shown at a place of the workspace is read there and never written, whatever a command
// moves around it; and no link that was put in its way later is followed.
func TestShown(t *testing.T) {
	t.Parallel()
	r := rigOf(t, team.Bubblewrap)
	from, place := r.outside("deps"), filepath.Join(r.box.Dir, "sub", "deps")
	r.put(filepath.Join(from, "file"), "user's\n")
	r.put(filepath.Join(place, "under"), "")
	r.box.Shown = map[string]string{place: from, filepath.Join(r.box.Dir, "gone"): r.outside("gone")}
	if exit, output := r.bash(`cat sub/deps/file; echo bad > sub/deps/file; echo bad > sub/deps/new; rm -rf sub/deps; umount sub/deps; mount -o remount,rw sub/deps
		chmod 777 sub/deps/file; mv sub away; echo bad > away/deps/file; ls away/deps; ls gone`); !strings.HasPrefix(output, "user's\n") || !strings.Contains(output, "\nfile\n") {
		t.Errorf("%+v: %s", exit, output)
	}
	if data, err := os.ReadFile(filepath.Join(from, "file")); err != nil || string(data) != "user's\n" {
		t.Errorf("the user's file: %s, %v", data, err)
	}
	if left, err := os.ReadDir(from); err != nil || len(left) != 1 {
		t.Errorf("the user's folder: %v, %v", left, err)
	}
	refused := func(what string) {
		t.Helper()
		run, err := r.Runner(r.box)
		if err == nil {
			_, err = run.Run(t.Context(), command.Command{Args: []string{"true"}, Dir: r.box.Dir, Output: &bytes.Buffer{}})
		}
		if team.CodeOf(err) != team.InvalidState {
			t.Errorf("%s is a link: %v", what, err)
		}
	}
	r.put(filepath.Join(r.outside("other"), "deps"), "")
	if err := errors.Join(os.RemoveAll(filepath.Join(r.box.Dir, "sub")), os.Symlink(r.outside("other"), filepath.Join(r.box.Dir, "sub"))); err != nil {
		t.Fatal(err)
	}
	refused("the way to the place")
	if err := errors.Join(os.Remove(filepath.Join(r.box.Dir, "sub")), os.RemoveAll(from), os.Symlink("/etc", from)); err != nil {
		t.Fatal(err)
	}
	refused("what is behind it")
	r.box.Shown = map[string]string{r.outside("elsewhere"): from}
	if _, err := r.Runner(r.box); team.CodeOf(err) != team.InvalidArgument {
		t.Errorf("outside of the workspace: %v", err)
	}
}
