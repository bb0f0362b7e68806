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

	"agentteam/pkg/team"
	"agentteam/pkg/tool/command"
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
		// With no processor time left, the kernel kills it.
		for _, what := range []string{"prlimit", "setpriority", "affinity", "ioprio", "setpriority of the user"} {
			if got := r.probe(what, pid); got == "done\n" && (what != "setpriority of the user" || r.Level() == team.Confined) {
				r.Errorf("%s of another process was changed", what)
			}
		}
		r.put(r.outside("file"), "x")
		r.put(filepath.Join(r.box.Dir, "file"), "x")
		for _, what := range []string{"setuid", "setxattr"} {
			if got := r.probe(what, r.outside("file")); got == "done\n" {
				r.Errorf("%s of a file outside: %s", what, got)
			}
		}
		if exit, output := r.bash(`nice -n 5 true && chmod 755 file && chmod u+x,g-w file && cp -p file copy && taskset -c 0 true`); exit.Code != 0 {
			r.Errorf("daily work: %+v: %s", exit, output)
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
