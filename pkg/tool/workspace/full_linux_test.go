package workspace_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"agentteam/pkg/team"
	"agentteam/pkg/teamtest/testenv"
	"agentteam/pkg/tool/command"
	"agentteam/pkg/tool/workspace"
)

// mounting is the test that was started once more in separate namespaces.
const mounting = "WORKSPACE_TEST_MOUNTING"

// mayMount runs a test once more, in separate namespaces in which it may mount, and reports whether this is that run. Where there can be
// none the test is left out, but not in CI.
func mayMount(t *testing.T) bool {
	if os.Getenv(mounting) == t.Name() {
		return true
	}
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), mounting+"="+t.Name())
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	output, err := cmd.CombinedOutput()
	refused := errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.ENOSPC) || bytes.Contains(output, []byte("no mount"))
	if refused {
		testenv.Need(t, fmt.Errorf("no file system can be mounted here: %v: %s", err, output))
	}
	if err != nil {
		t.Errorf("%v\n%s", err, output)
	}
	return false
}

// mount mounts a file system for one test.
func mount(t *testing.T, source, target, kind string, flags uintptr, data string) {
	t.Helper()
	if err := syscall.Mount(source, target, kind, flags, data); err != nil {
		t.Fatal("no mount: ", err)
	}
	t.Cleanup(func() { syscall.Unmount(target, 0) }) // else it ends with this process
}

func TestDevices(t *testing.T) {
	if !mayMount(t) {
		return
	}
	p := open(t, workspace.Options{})
	p.put("zero", "")
	mount(t, "/dev/zero", p.path("zero"), "", syscall.MS_BIND, "")
	for name, a := range p.touching("zero") {
		p.fails(team.InvalidArgument, name, a)
	}
	if got := p.ok("grep", args{"pattern": "x"}); got != "(no matches)" {
		t.Errorf("grep beside a device: %s", got)
	}
}

// On a file system that is full a write changes nothing and leaves nothing, and what is there can
// be read.
func TestFullDisk(t *testing.T) {
	if !mayMount(t) {
		return
	}
	dir := t.TempDir()
	mount(t, "tmpfs", dir, "tmpfs", 0, "size=128k,mode=0700")
	w, err := workspace.Open(dir, command.Plain{}, workspace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	p := place{t, dir, newSet(t, w)}
	p.put("old", "one\ntwo\n")
	large := strings.Repeat("x", 20_000)
	filler, err := os.Create(p.path("filler"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(filler, endless{}); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the file system is not full: %v", err)
	}
	filler.Close()
	for _, call := range []struct {
		tool string
		args args
	}{
		{"write_file", args{"path": "new", "content": large}},
		{"write_file", args{"path": "sub/folder/new", "content": large}},
		{"write_file", args{"path": "old", "content": large}},
		{"edit_file", args{"path": "old", "old_string": "two", "new_string": large}},
		{"multi_edit", args{"path": "old", "edits": []args{{"old_string": "one", "new_string": "1"}, {"old_string": "two", "new_string": large}}}},
	} {
		if got := p.fails(team.Unavailable, call.tool, call.args); !strings.Contains(got, "no space left") {
			t.Errorf("%s %s: %s", call.tool, call.args["path"], got)
		}
	}
	names, err := filepath.Glob(p.path("*"))
	more, _ := filepath.Glob(p.path(".*")) // the pattern is correct
	if all := append(names, more...); err != nil || len(all) > 3 || p.get("old") != "one\ntwo\n" {
		t.Errorf("afterwards there is %q: %q", all, p.get("old"))
	}
	if got := p.ok("read_file", args{"path": "old"}) + p.ok("grep", args{"pattern": "two"}); !strings.Contains(got, "old:2:two") {
		t.Errorf("reading: %s", got)
	}
	if err := os.Remove(p.path("filler")); err != nil {
		t.Fatal(err)
	}
	p.ok("write_file", args{"path": "old", "content": large})
}

// endless is read without end.
type endless struct{}

func (endless) Read(b []byte) (int, error) { return len(b), nil }
