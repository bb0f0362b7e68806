package workspace_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"agentteam/pkg/command"
	"agentteam/pkg/team"
	"agentteam/pkg/tool/workspace"
)

// fullFolder is where this test, started once more in separate namespaces, has a file system.
const fullFolder = "WORKSPACE_TEST_FULL"

// On a file system that is full a write changes nothing and leaves nothing, and what is there can
// be read.
func TestFullDisk(t *testing.T) {
	if dir := os.Getenv(fullFolder); dir != "" {
		fullDisk(t, dir)
		return
	}
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestFullDisk$")
	cmd.Env = append(os.Environ(), fullFolder+"="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	output, err := cmd.CombinedOutput()
	switch {
	case errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.ENOSPC) || bytes.Contains(output, []byte("no mount")):
		t.Skipf("no file system can be mounted here: %v: %s", err, output)
	case err != nil:
		t.Errorf("%v\n%s", err, output)
	}
}

func fullDisk(t *testing.T, dir string) {
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=128k,mode=0700"); err != nil {
		t.Fatal("no mount: ", err)
	}
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
