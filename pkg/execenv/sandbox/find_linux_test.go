package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentteam/pkg/team"
)

// Below the version of Landlock that keeps signals in, the level counts in a container only, and says so.
func TestLandlock(t *testing.T) {
	for _, tt := range []struct {
		abi       int
		none      error
		container bool
		name, err string
	}{
		{none: syscall.ENOSYS, container: true, err: "this kernel has no Landlock"},
		{none: syscall.EOPNOTSUPP, err: "this kernel has no Landlock"},
		{abi: 2, container: true, err: "has ABI 2, 6 is needed"},
		{abi: 3, container: true, name: "confined (Landlock ABI 3: commands may signal what else runs in this container)"},
		{abi: 5, err: "has ABI 5, 6 (Linux 6.12) is needed outside of containers"},
		{abi: 5, container: true, name: "confined (Landlock ABI 5: commands may signal what else runs in this container)"},
		{abi: 6, name: "confined (Landlock ABI 6)"},
		{abi: 7, container: true, name: "confined (Landlock ABI 7)"},
	} {
		s, err := landlock(tt.abi, tt.none, tt.container)
		if s.name != tt.name || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("ABI %d, %v, in a container: %v: %q, %v", tt.abi, tt.none, tt.container, s, err)
		}
	}
}

// What is found states why it is not a stronger level; where none works the error has all reasons and what to do.
func TestStrongest(t *testing.T) {
	only := func(works ...team.Sandbox) func(team.Sandbox) (Sandbox, error) {
		return func(level team.Sandbox) (Sandbox, error) {
			for _, w := range works {
				if w == level {
					return Sandbox{level: level, name: "the " + string(level)}, nil
				}
			}
			return Sandbox{}, errors.New("not today")
		}
	}
	for _, tt := range []struct {
		wish        team.Sandbox
		works       []team.Sandbox
		found, fail string
	}{
		{team.SandboxAuto, []team.Sandbox{team.Bubblewrap, team.Confined}, "the bubblewrap", ""},
		{"", []team.Sandbox{team.Confined, team.Unconfined}, "the confined (bubblewrap: not today)", ""},
		{team.Confined, []team.Sandbox{team.Bubblewrap, team.Confined}, "the confined", ""},
		{team.SandboxAuto, []team.Sandbox{team.Unconfined}, "", "no sandbox works here: bubblewrap: not today; confined: not today"},
		{team.Bubblewrap, []team.Sandbox{team.Confined, team.Unconfined}, "", "no sandbox works here: bubblewrap: not today"},
	} {
		s, err := strongest(tt.wish, only(tt.works...))
		if s.Provisional() {
			t.Errorf("%q, where %q works: what does not work may", tt.wish, tt.works)
		}
		if s.String() != tt.found || (err == nil) != (tt.fail == "") {
			t.Errorf("%q, where %q works: %q, %v", tt.wish, tt.works, s, err)
		}
		if err != nil && (err.Error() != tt.fail || !errors.Is(err, team.Unavailable) || !strings.Contains(team.HintOf(err), "install bubblewrap")) {
			t.Errorf("%q, where %q works: %v (%s)", tt.wish, tt.works, err, team.HintOf(err))
		}
	}
}

// Bubblewrap that is there and may not start is one line, with its own words and what to do. Only auto has another level in its place.
func TestBubblewrapMayNotStart(t *testing.T) {
	program := filepath.Join(t.TempDir(), "bwrap")
	const script = "#!/bin/sh\n[ \"$1\" != --version ] || { echo bubblewrap 0.8.0; exit; }\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n"
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	defer func(all []string) { bubblewraps = all }(bubblewraps)
	bubblewraps = []string{program}
	const why = "bubblewrap: a command failed, exit status 1: bwrap: No permissions to create new namespace"
	s, err := Find(t.Context(), team.Bubblewrap)
	if !errors.Is(err, team.Unavailable) || err.Error() != "no sandbox works here: "+why || !strings.Contains(team.HintOf(err), "allow user namespaces") || s.Level() != "" {
		t.Errorf("%q, %v (%s)", s, err, team.HintOf(err))
	}
	if _, err := s.Runner(Box{}); !errors.Is(err, team.Unavailable) {
		t.Errorf("what was found runs commands: %v", err)
	}
	if s, err = Find(t.Context(), team.SandboxAuto); err == nil && (s.Level() != team.Confined || !strings.HasSuffix(s.String(), "("+why+")")) ||
		err != nil && !strings.Contains(err.Error(), why+"; confined: ") {
		t.Errorf("under auto: %q, %v", s, err)
	}
}

// A level that does not answer in time may work: what is found in its place is not for good.
func TestBusyMachine(t *testing.T) {
	s, err := strongest(team.SandboxAuto, func(level team.Sandbox) (Sandbox, error) {
		if level == team.Bubblewrap {
			return Sandbox{}, fmt.Errorf("no answer: %w", context.DeadlineExceeded)
		}
		return Sandbox{level: level}, nil
	})
	if err != nil || s.Level() != team.Confined || !s.Provisional() {
		t.Errorf("found %+v, %v", s, err)
	}
	ctx, cancel := context.WithDeadline(t.Context(), time.Now())
	defer cancel()
	if _, err := find(ctx, team.Confined); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a level in no time: %v", err)
	}
}

// On a kernel that does not show what a command has started no level counts: nothing would be counted or ended.
func TestKernelListsProcesses(t *testing.T) {
	if err := lists(descendants); err != nil {
		t.Error(err)
	}
	if err := lists("/proc/thread-self/no-such-list"); err == nil || !strings.Contains(err.Error(), "CONFIG_PROC_CHILDREN") {
		t.Errorf("without a list: %v", err)
	}
}

// The command that installs bubblewrap is one that the system has.
func TestInstallCommand(t *testing.T) {
	if got := InstallCommand(); strings.Contains(got, "\n") {
		t.Errorf("%q", got)
	}
	defer func(all []string) { bubblewraps = all }(bubblewraps)
	bubblewraps = nil
	for there, want := range map[string]string{
		"apt-get": "sudo apt-get install bubblewrap", "pacman zypper": "sudo pacman -S bubblewrap", "": "the package bubblewrap of this system",
	} {
		bin := t.TempDir()
		for _, name := range strings.Fields(there) {
			if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		t.Setenv("PATH", bin)
		if got := InstallCommand(); got != want {
			t.Errorf("%q: %q, want %q", there, got, want)
		}
	}
}
