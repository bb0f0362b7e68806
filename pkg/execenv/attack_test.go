package execenv_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"agentteam/pkg/agent/completion"
	"agentteam/pkg/config"
	"agentteam/pkg/team"
	"agentteam/pkg/tool"
	"agentteam/pkg/tool/workspace"
)

// canary is what no command and no tool of a member may show.
const canary = "canary-of-the-user"

// levels runs a test at each level that confines, with a file that members must not see.
func levels(t *testing.T, test func(r *rig)) {
	for _, level := range []team.Sandbox{team.Bubblewrap, team.Confined} {
		t.Run(string(level), func(t *testing.T) {
			r := newRig(t, level)
			put(t, r.outside("secret"), canary)
			test(r)
			if data, err := os.ReadFile(r.outside("secret")); string(data) != canary {
				t.Errorf("the user's file is now %q, %v", data, err)
			}
		})
	}
}

// outside is a path beside the workspace.
func (r *rig) outside(name string) string { return filepath.Join(filepath.Dir(r.dir), name) }

type args map[string]any

// call has a member call a tool.
func (r *rig) call(ctx context.Context, name string, a args) tool.Result {
	r.Helper()
	ws, err := r.open("coder-1")
	if err != nil {
		r.Fatal(err)
	}
	set, err := tool.NewSet(nil, ws.Tools()...)
	if err != nil {
		r.Fatal(err)
	}
	text, err := json.Marshal(a)
	if err != nil {
		r.Fatal(err)
	}
	return set.Run(ctx, tool.Call{Name: name, Arguments: string(text)})
}

// Whatever way a command takes, it sees nothing of the user's, of the leader's or of another member's.
func TestWaysOut(t *testing.T) {
	levels(t, func(r *rig) {
		port := listen(r)
		udp, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err != nil {
			r.Fatal(err)
		}
		defer udp.Close()
		_, dns, _ := net.SplitHostPort(udp.LocalAddr().String())
		program, err := os.ReadFile("/bin/echo")
		if err != nil {
			r.Fatal(err)
		}
		if err := os.WriteFile(r.outside("program"), program, 0o755); err != nil {
			r.Fatal(err)
		}
		other, err := r.open("coder-2")
		if err != nil {
			r.Fatal(err)
		}
		if output, passed, err := other.Check(r.Context(), "echo "+canary+" | tee ~/note > $TMPDIR/note"); !passed || err != nil {
			r.Fatalf("another member's notes: %s, %v", output, err)
		}
		r.Setenv("SOME_API_KEY", canary)
		const loader = "set -- /lib64/ld-linux-*.so.* /lib/ld-linux-*.so.*; [ -e $1 ] || shift; "
		if got := r.run(loader + "$1 /bin/echo of all"); got != "of all" {
			r.Errorf("the loader with a program that may be run: %s", got)
		}
		base := filepath.Dir(r.dir)
		for name, line := range map[string]string{
			"up":              "cat ../secret " + base + "/secret",
			"root of process": "cat /proc/self/root" + base + "/secret /proc/1/root" + base + "/secret /proc/self/cwd/../secret",
			"symbolic link":   "ln -s " + base + "/secret soft; cat soft",
			"hard link":       "ln ../secret hard; cat hard",
			"move":            "mv ../secret moved; cat moved; cp ../secret copied; cat copied",
			"mode":            "chmod 777 ../secret; cat ../secret",
			"loader":          loader + "$1 ../program canary-of'-the-user'",
			"copied program":  "cp ../program p; ./p canary-of'-the-user'",
			"leader's port":   "cat < /dev/tcp/127.0.0.1/" + port,
			"its name":        "cat < /dev/tcp/localhost/" + port,
			"metadata":        "cat < /dev/tcp/169.254.169.254/80",
			"DNS":             "echo secret > /dev/udp/127.0.0.1/" + dns + "; getent hosts secret.example.org && echo " + canary,
			"other's home":    "cat ~/../coder-2/note",
			"other's files":   "cat ~/../coder-2.tmp/note ${TMPDIR/coder-1/coder-2}/note /tmp/note",
			"environment":     "env; cat /proc/self/environ /proc/$PPID/environ",
			"sight":           "ls -a .. ../user ~/.. ${TMPDIR}/.. /home /run /root | grep -q -e secret -e coder-2 && echo " + canary,
		} {
			if got := r.run(line + " 2>&1"); strings.Contains(got, canary) {
				r.Errorf("%s: %s", name, got)
			}
		}
		// What is sent by UDP has no answer: nothing must have come.
		_ = udp.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
		if n, from, err := udp.ReadFrom(make([]byte, 8)); err == nil {
			r.Errorf("%d bytes came from %s", n, from)
		}
	})
}

// listen is a port of the leader's on this machine, which says too much.
func listen(r *rig) (port string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			io.WriteString(conn, canary)
			conn.Close()
		}
	}()
	_, port, _ = net.SplitHostPort(l.Addr().String())
	return port
}

// shelf takes deliverables.
type shelf map[string]string

func (s shelf) Put(_ context.Context, name string, r io.ReadSeeker) (string, error) {
	data, err := io.ReadAll(r)
	s[name] = string(data)
	return "digest", err
}

// What a command leaves in the workspace harms neither the file tools nor the part that stores
// deliverables, which are in no sandbox.
func TestTrapsForTools(t *testing.T) {
	levels(t, func(r *rig) {
		r.run("ln -s ../secret soft; ln -s .. up; ln ../secret hard; mkfifo pipe; ln -s /dev/zero zero; mknod device c 1 5; truncate -s 3G giant; exit 0")
		if _, err := os.Lstat(filepath.Join(r.dir, "device")); err == nil {
			r.Error("a command has made a device")
		}
		for _, path := range []string{"soft", "up/secret", "hard", "pipe", "zero", "device", "giant", "../secret", r.outside("secret")} {
			for name, a := range map[string]args{
				"read_file": {}, "edit_file": {"old_string": "canary", "new_string": "mine"}, "grep": {"pattern": "canary"},
			} {
				a["path"] = path
				if got := r.call(r.Context(), name, a); strings.Contains(got.Content, canary) || len(got.Content) > 100_000 {
					r.Errorf("%s %s: %.200s", name, path, got.Content)
				}
			}
			if path == "giant" { // may be replaced, and is stored up to a limit
				continue
			}
			if got := r.call(r.Context(), "write_file", args{"path": path, "content": "mine"}); !got.IsError && path != "hard" && path != "device" {
				r.Errorf("write_file %s: %s", path, got.Content)
			}
		}
		if got := r.call(r.Context(), "grep", args{"pattern": "canary"}); strings.Contains(got.Content, canary) {
			r.Errorf("grep: %s", got.Content)
		}
		ws, err := r.open("coder-1")
		if err != nil {
			r.Fatal(err)
		}
		for _, path := range []string{"soft", "up/secret", "pipe", "zero", "giant"} {
			files := shelf{}
			if _, err := completion.Verify(r.Context(), team.Task{ID: "T-001", DeliverablePath: path}, ws, files); err == nil || len(files) > 0 {
				r.Errorf("the deliverable %s: %v, stored %q", path, err, files)
			}
		}
	})
}

// What a command takes too much of ends it, and the model is told which limit it was.
func TestGreed(t *testing.T) {
	levels(t, func(r *rig) {
		for line, want := range map[string]string{
			"for i in $(seq 600); do sleep 600 & done; wait": "[killed: the limit of processes has been reached: a command may have 512 at the same time]",
			"truncate -s 5G big":                             "[killed: the limit of a file's size has been reached: a file may have 4 GiB]",
			"echo x > /dev/full":                             "No space left on device",
			"yes | head -c 50000000":                         "bytes", // left out between head and tail
		} {
			if got := r.call(r.Context(), "bash", args{"command": line}); !strings.Contains(got.Content, want) || len(got.Content) > 40_000 {
				r.Errorf("%s: %.300s", line, got.Content)
			}
		}
		// Output without end is no reason to hold more of it, and ends with its call.
		ctx, cancel := context.WithCancelCause(r.Context())
		written := 0
		endless := tool.WithProgress(ctx, func() {
			if written++; written == 1000 {
				cancel(errors.New("enough"))
			}
		})
		if got := r.call(endless, "bash", args{"command": "yes"}); !strings.HasSuffix(got.Content, "[cancelled: enough]") || len(got.Content) > 40_000 {
			r.Errorf("endless output: %d bytes, ...%.100s", len(got.Content), got.Content[max(0, len(got.Content)-100):])
		}
	})
}

// No argument of a tool and no file that a command writes loosens the sandbox.
func TestSandboxIsNotSwitchedOff(t *testing.T) {
	levels(t, func(r *rig) {
		for _, flag := range []string{"dangerouslyDisableSandbox", "sandbox", "unconfined"} {
			if got := r.call(r.Context(), "bash", args{"command": "cat ../secret 2>&1", flag: true}); strings.Contains(got.Content, canary) {
				r.Errorf("%s: %s", flag, got.Content)
			}
		}
		// The settings were not there when the team began.
		if err := os.Remove(filepath.Join(r.dir, "team.yaml")); err != nil {
			r.Fatal(err)
		}
		r.run(`printf 'sandbox: none\nnetwork: full\npermission_mode: bypassPermissions\npaths: {read: [%s]}\n' "$(cd .. && pwd)" > team.yaml; mkdir -p .agentteam/x; ln -sfn / .agentteam`)
		if got := r.run("cat ../secret 2>&1"); strings.Contains(got, canary) {
			r.Errorf("after that: %s", got)
		}
		r.Setenv("XDG_CONFIG_HOME", r.outside("config"))
		c, err := config.Load(config.Sources{Dir: r.dir, Env: func(string) (string, bool) { return "", false }})
		if err != nil {
			r.Fatal(err)
		}
		if c.Sandbox != team.SandboxAuto || !reflect.DeepEqual(c.Policy, team.Policy{}) || c.Decided() == nil {
			r.Errorf("the next process has the sandbox %s, and %+v", c.Sandbox, c.Policy)
		}
	})
}

// A check that rewrites itself reaches no more than its member does, and its verdict is that of
// what has run.
func TestCheckThatRewritesItself(t *testing.T) {
	levels(t, func(r *rig) {
		put(r.T, filepath.Join(r.dir, "check.sh"), "printf 'cat ../secret; exit 0\n' > check.new; mv check.new check.sh; cat ../secret\nexit 3\n")
		ws, err := r.open("coder-1")
		if err != nil {
			r.Fatal(err)
		}
		task := team.Task{ID: "T-001", Check: "bash check.sh 2>&1"}
		_, err = completion.Verify(r.Context(), task, ws, shelf{})
		var failed *completion.CheckError
		if !errors.As(err, &failed) || !strings.HasSuffix(failed.Output, "exit status 3") || strings.Contains(failed.Output, canary) {
			r.Errorf("the first time: %v", err)
		}
		if output, _, err := ws.Check(r.Context(), task.Check); err != nil || strings.Contains(output, canary) {
			r.Errorf("as rewritten: %s, %v", output, err)
		}
	})
}

// A program that a member plants where the user's PATH leads is not run in place of another.
func TestPlantedPath(t *testing.T) {
	levels(t, func(r *rig) {
		r.Setenv("PATH", strings.Join([]string{filepath.Join(r.dir, "bin"), ".", "", os.Getenv("PATH")}, ":"))
		r.run(`mkdir -p bin ~/bin ~/.local/bin; for dir in bin . ~/bin ~/.local/bin; do for p in bash cat bwrap; do printf '#!/bin/sh\necho planted\n' > $dir/$p; chmod 755 $dir/$p; done; done`)
		if got := r.run("cat main.go; bash -c 'echo real'"); got != "package main\nreal" {
			r.Errorf("after that: %s", got)
		}
	})
}

// In a tree of its own a member's commands read the objects of the line, and change nothing of them, nor of another tree.
func TestObjectsOfLineAreReadOnly(t *testing.T) {
	levels(t, func(r *rig) {
		lines := r.outside("lines")
		for _, name := range []string{"line.git/objects/pack/one", "line.git/refs/heads/main", "trees/mine/src/a.go", "trees/other/src/a.go"} {
			put(r.T, filepath.Join(lines, name), "there")
		}
		w := workspace.Work{Team: r.record, Member: team.Member{AgentID: "coder-1", Role: "coder"}, Tree: &workspace.Tree{
			Root: filepath.Join(lines, "trees/mine"), Dir: filepath.Join(lines, "trees/mine/src"), ReadOnly: []string{filepath.Join(lines, "line.git/objects")}}}
		ws, release, err := r.source.Open(r.Context(), w, workspace.Options{})
		if err != nil {
			r.Fatal(err)
		}
		defer release()
		run := func(line string) string {
			output, _, err := ws.Check(r.Context(), line)
			if err != nil {
				r.Error(err)
			}
			return strings.TrimSpace(output)
		}
		if got := run("cat ../../../line.git/objects/pack/one && echo x > a.go && echo x > ../top && cat a.go"); got != "therex" {
			r.Errorf("its own work: %s", got)
		}
		check := []func(){unchanged(r.T, filepath.Join(lines, "line.git")), unchanged(r.T, filepath.Join(lines, "trees/other"))}
		for _, line := range []string{
			"echo x > ../../../line.git/objects/pack/one", "echo x > ../../../line.git/objects/pack/two", "rm -rf ../../../line.git", "mv ../../../line.git/objects ../away", "mkdir -p ../../../line.git/objects/info; echo x > ../../../line.git/objects/info/alternates",
			"ln ../../../line.git/objects/pack/one here && echo x > here", "echo x > ../../../line.git/refs/heads/main", "echo x > ../../other/src/a.go", "rm -rf ../../other",
		} {
			run(line)
		}
		for _, same := range check {
			same()
		}
	})
}
