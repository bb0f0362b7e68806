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
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"agentteam/pkg/execenv/sandbox"
	"agentteam/pkg/team"
	"agentteam/pkg/teamtest/testenv"
	"agentteam/pkg/tool/command"
)

// What this program does if it is started once more with one of these variables.
const (
	probing = "SUPERVISOR_TEST_PROBE" // is a command that tries something
	owning  = "SUPERVISOR_TEST_OWNER" // runs a command at that level, as a member
)

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(probing) != "":
		probe(os.Getenv(probing), os.Args[1:])
	case os.Getenv(owning) != "":
		own(team.Sandbox(os.Getenv(owning)), os.Args[1], os.Args[2])
	default:
		os.Exit(m.Run())
	}
}

// probe prints what became of a try.
func probe(what string, args []string) {
	err := fmt.Errorf("no probe %q", what)
	switch what {
	case "fetch":
		if err = fetch(args[0]); err == nil {
			return
		}
	case "own server":
		if err = serveOneself(); err == nil {
			return
		}
	case "memfd": // memory that no process maps; slowly, since the supervisor looks from time to time
		for err = error(nil); err == nil; time.Sleep(time.Millisecond) {
			var fd int
			if fd, err = unix.MemfdCreate("held", 0); err == nil {
				_, err = unix.Write(fd, bytes.Repeat([]byte{1}, 1<<20))
			}
		}
	case "threads": // slowly, for the same reason
		for {
			go func() { runtime.LockOSThread(); unix.Pause() }()
			time.Sleep(time.Millisecond)
		}
	case "grow": // memory
		for held := [][]byte{}; ; {
			page := bytes.Repeat([]byte{1}, 1<<20)
			held = append(held, page)
			time.Sleep(time.Millisecond)
		}
	}
	if err != nil {
		fmt.Println(err)
	}
}

// bounded returns a command that runs this program with at most so many processes, all of which end with the test; inside lists
// them. They are in a group of their own, or, where none can be made, of a user that no other process has. Only root can do either:
// without both the test is left out, but not in CI.
func (r rig) bounded(most string, args ...string) (cmd *exec.Cmd, inside func() []int) {
	r.Helper()
	cmd, inside, err := r.group(most, args)
	if err != nil {
		var as error
		cmd, inside, as = r.user(most, args)
		if as != nil {
			testenv.Need(r, fmt.Errorf("processes cannot be limited here: %w", errors.Join(err, as)))
		}
	}
	r.Cleanup(func() {
		r.await("the bounded processes to end", func() bool {
			left := inside()
			for _, pid := range left {
				_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
			}
			return len(left) == 0
		})
	})
	return cmd, inside
}

// group bounds processes by a control group of the kernel.
func (r rig) group(most string, args []string) (cmd *exec.Cmd, inside func() []int, err error) {
	for _, root := range []string{"/sys/fs/cgroup/pids", "/sys/fs/cgroup"} { // of the versions 1 and 2
		dir := filepath.Join(root, "agentteam-"+strconv.Itoa(os.Getpid()))
		if err = os.Mkdir(dir, 0o755); err != nil {
			continue
		}
		r.Cleanup(func() { // runs once all have ended, which the kernel may notice later
			r.await("the group to be empty", func() bool { return os.Remove(dir) == nil })
		})
		if err = os.WriteFile(filepath.Join(dir, "pids.max"), []byte(most), 0); err != nil {
			continue
		}
		inside = func() (pids []int) {
			all, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
			if err != nil {
				r.Fatal(err)
			}
			for _, p := range strings.Fields(string(all)) {
				pid, _ := strconv.Atoi(p)
				pids = append(pids, pid)
			}
			return pids
		}
		return exec.Command("sh", slices.Concat([]string{"-c", `echo $$ > $0/cgroup.procs && exec "$@"`, dir, r.box.ReadOnly[0]}, args)...), inside, nil
	}
	return nil, nil, err
}

// user bounds processes by the limit of a user that has no others.
func (r rig) user(most string, args []string) (cmd *exec.Cmd, inside func() []int, err error) {
	id := 65000 + os.Getpid()%500 // reserved by Debian
	inside = func() []int { return ofUser(id) }
	dir := filepath.Dir(r.box.Dir)
	self, err := os.Open(r.box.ReadOnly[0]) // no path that the user may walk leads to it
	if err == nil {
		r.Cleanup(func() { self.Close() })
		err = errors.Join(os.Chmod(filepath.Dir(dir), 0o711), os.Chown(dir, id, id), os.Chown(r.box.Dir, id, id))
	}
	if have := inside(); err == nil && len(have) > 0 {
		err = fmt.Errorf("the user %d has the processes %v", id, have)
	}
	cmd = exec.Command("bash", slices.Concat([]string{"-c", `ulimit -u $0 && exec "$@"`, most, "/proc/self/fd/3"}, args)...)
	cmd.Dir, cmd.ExtraFiles = dir, []*os.File{self}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(id), Gid: uint32(id)}}
	return cmd, inside, err
}

// ofUser returns the processes of a user that have not ended.
func ofUser(id int) (pids []int) {
	all, _ := filepath.Glob("/proc/[0-9]*/status")
	for _, file := range all {
		text, _ := os.ReadFile(file) // empty for one that has ended
		if pid, _ := strconv.Atoi(strings.Split(file, "/")[2]); strings.Contains(string(text), fmt.Sprintf("\nUid:\t%d\t", id)) && !strings.Contains(string(text), "\nState:\tZ") {
			pids = append(pids, pid)
		}
	}
	return pids
}

// await waits for something that other processes do and that gives no signal.
func (r rig) await(what string, done func() bool) {
	r.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(time.Minute)
	for !done() {
		select {
		case <-tick.C:
		case <-limit:
			r.Fatalf("waited in vain for %s", what)
		}
	}
}

// own runs a command that goes on until it is ended.
func own(level team.Sandbox, dir, script string) {
	s, err := sandbox.Find(context.Background(), level)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	processes, _ := strconv.Atoi(os.Getenv(owning + "_PROCESSES")) // 0 is the default
	r, err := s.Runner(sandbox.Box{Dir: filepath.Join(dir, "work"), Home: filepath.Join(dir, "home"), Limits: sandbox.Limits{Processes: processes}})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	until := time.Now().Add(time.Hour)
	if d, err := time.ParseDuration(os.Getenv(owning + "_ALLOWED")); err == nil {
		until = time.Now().Add(d)
	}
	exit, err := r.Run(context.Background(), command.Command{
		Args: []string{"bash", "-c", script}, Dir: filepath.Join(dir, "work"), Output: os.Stderr,
		Allowed: func() (time.Time, <-chan struct{}) { return until, nil },
	})
	fmt.Fprintln(os.Stderr, "ended before it was killed:", exit, err)
	os.Exit(1)
}

// marked returns the processes of this machine that have a word in their arguments.
func marked(word string) (pids []int) {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range all {
		line, err := os.ReadFile(file)
		if pid, _ := strconv.Atoi(strings.Split(file, "/")[2]); err == nil && pid != os.Getpid() && bytes.Contains(line, []byte(word)) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// fetch posts a MiB, and prints the answer.
func fetch(url string) error {
	answer, err := http.Post(url, "text/plain", bytes.NewReader(make([]byte, 1<<20)))
	if err != nil {
		return err
	}
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	_, err = fmt.Printf("%s\n", body)
	return err
}

// serveOneself has curl ask a server of the same command. Clients of Go leave loopback to no proxy.
func serveOneself() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "own\n") }))
	curl := exec.Command("curl", "-sS", "http://"+l.Addr().String())
	curl.Stdout, curl.Stderr = os.Stdout, os.Stderr
	return curl.Run()
}

// rig is a box in which a test runs commands.
type rig struct {
	*testing.T
	sandbox.Sandbox
	box sandbox.Box
}

// each runs a test at each level that confines. One that does not work on this machine is
// left out, but not in CI.
func each(t *testing.T, test func(r rig)) {
	for _, level := range []team.Sandbox{team.Bubblewrap, team.Confined} {
		t.Run(string(level), func(t *testing.T) {
			t.Parallel()
			test(rigOf(t, level))
		})
	}
}

// rigOf is a box at a level.
func rigOf(t *testing.T, level team.Sandbox) rig {
	t.Helper()
	s, err := sandbox.Find(t.Context(), level)
	testenv.Need(t, err)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	r := rig{t, s, sandbox.Box{Dir: filepath.Join(dir, "work"), Home: filepath.Join(dir, "home"), ReadOnly: []string{self}}}
	if err := os.Mkdir(r.box.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return r
}

// run runs a command in the box.
func (r rig) run(c command.Command) (command.Exit, string) {
	r.Helper()
	runner, err := r.Runner(r.box)
	if err != nil {
		r.Fatal(err)
	}
	var output bytes.Buffer
	c.Output = &output
	if c.Dir == "" {
		c.Dir = r.box.Dir
	}
	exit, err := runner.Run(r.Context(), c)
	if err != nil {
		r.Fatal(err)
	}
	return exit, output.String()
}

func (r rig) bash(script string, args ...string) (command.Exit, string) {
	r.Helper()
	return r.run(command.Command{Args: append([]string{"bash", "-c", script, "bash"}, args...)})
}

// probe has this program try something inside, and returns what it reports.
func (r rig) probe(what string, args ...string) string {
	r.Helper()
	exit, output := r.run(command.Command{Args: append([]string{r.box.ReadOnly[0]}, args...), Env: []string{probing + "=" + what}})
	if exit.Code != 0 {
		r.Fatalf("%s: %+v: %s", what, exit, output)
	}
	return output
}
