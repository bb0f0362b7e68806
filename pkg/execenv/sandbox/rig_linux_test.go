package sandbox_test

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"agentteam/pkg/execenv/sandbox"
	"agentteam/pkg/team"
	"agentteam/pkg/teamtest/testenv"
	"agentteam/pkg/tool/command"
)

// probing is the variable with which this program, started once more, is a command that tries something.
const probing = "SANDBOX_TEST_PROBE"

func TestMain(m *testing.M) {
	if os.Getenv(probing) != "" {
		probe(os.Getenv(probing), os.Args[1:])
		return
	}
	os.Exit(m.Run())
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

// outside is a path that is not in the box.
func (r rig) outside(name string) string { return filepath.Join(filepath.Dir(r.box.Dir), name) }

func (r rig) put(path, text string) {
	r.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		r.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		r.Fatal(err)
	}
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

// probe prints what became of a try: "done", or the error.
func probe(what string, args []string) {
	err := fmt.Errorf("no probe %q", what)
	switch what {
	case "socket":
		err = probeSocket(args[0], args[1])
	case "ptrace":
		pid, _ := strconv.Atoi(args[0])
		err = unix.PtraceAttach(pid)
	case "prlimit":
		pid, _ := strconv.Atoi(args[0])
		err = unix.Prlimit(pid, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 64, Max: 64}, nil)
	case "setpriority":
		pid, _ := strconv.Atoi(args[0])
		err = unix.Setpriority(unix.PRIO_PROCESS, pid, 19)
	case "setpriority of the user":
		err = unix.Setpriority(unix.PRIO_USER, 0, 19)
	case "affinity":
		pid, _ := strconv.Atoi(args[0])
		var set unix.CPUSet
		set.Set(0)
		err = unix.SchedSetaffinity(pid, &set)
	case "ioprio":
		pid, _ := strconv.Atoi(args[0])
		_, _, e := unix.Syscall(unix.SYS_IOPRIO_SET, 1, uintptr(pid), 3<<13)
		if err = e; e == 0 {
			err = nil
		}
	case "setuid":
		err = unix.Chmod(args[0], 0o4755)
	case "setxattr":
		err = unix.Setxattr(args[0], "user.x", []byte("y"), 0)
	case "segment": // of shared memory, which no process maps
		_, _, e := unix.Syscall(unix.SYS_SHMGET, 0, 64<<20, unix.IPC_CREAT|0o600)
		if err = e; e == 0 {
			err = nil
		}
	case "kill":
		err = syscall.Kill(-1, syscall.SIGKILL)
	case "io_uring":
		_, _, e := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, 0, 0)
		err = e
	case "unshare":
		err = unix.Unshare(unix.CLONE_NEWUSER)
	case "mount":
		err = unix.Mount("none", os.TempDir(), "tmpfs", 0, "")
	case "keyctl":
		_, err = unix.KeyctlGetKeyringID(unix.KEY_SPEC_SESSION_KEYRING, true)
	case "tiocsti":
		_, _, e := unix.Syscall(unix.SYS_IOCTL, 0, 1<<32|unix.TIOCSTI, 0)
		err = e
	}
	if err == nil {
		fmt.Println("done")
		return
	}
	fmt.Println(err)
}

// probeSocket tries to send a word.
func probeSocket(network, address string) error {
	families := map[string][3]int{
		"mptcp": {unix.AF_INET, unix.SOCK_STREAM, 262}, "netlink": {unix.AF_NETLINK, unix.SOCK_RAW, 0}, "vsock": {unix.AF_VSOCK, unix.SOCK_STREAM, 0},
		"packet": {unix.AF_PACKET, unix.SOCK_RAW, 0}, "pair": {unix.AF_UNIX, unix.SOCK_DGRAM, 0},
	}
	f, raw := families[network]
	if !raw {
		conn, err := net.DialTimeout(network, address, 10*time.Second)
		if err == nil {
			_, err = conn.Write([]byte("x"))
		}
		return err
	}
	if network == "pair" {
		fds, err := unix.Socketpair(f[0], f[1], f[2])
		if err != nil {
			return err
		}
		return unix.Sendto(fds[0], []byte("x"), 0, &unix.SockaddrUnix{Name: address})
	}
	fd, err := unix.Socket(f[0], f[1], f[2])
	if err != nil || network != "mptcp" {
		return err
	}
	to, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return err
	}
	return unix.Connect(fd, &unix.SockaddrInet4{Port: to.Port, Addr: [4]byte(to.IP.To4())})
}
