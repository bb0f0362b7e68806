package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"agentteam/pkg/team"
	"agentteam/pkg/tool/command"
)

// bubblewraps are the places of bubblewrap. PATH may lead into a workspace.
var bubblewraps = []string{"/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap", "/run/current-system/sw/bin/bwrap"}

// patience limits the harmless command of [Find].
const patience = 10 * time.Second

// find returns the sandbox of a level if it works.
func find(ctx context.Context, level team.Sandbox) (s Sandbox, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	defer func() {
		if err != nil && ctx.Err() != nil {
			s, err = Sandbox{}, fmt.Errorf("no answer within %v: %w", patience, ctx.Err())
		}
	}()
	switch level {
	case team.Unconfined:
		return Sandbox{level: level, name: string(level)}, nil
	case team.Bubblewrap:
		s, err = findBubblewrap(ctx)
	case team.Confined:
		abi, none := landlockABI()
		s, err = landlock(abi, none, inContainer())
	}
	if err != nil {
		return Sandbox{}, err
	}
	if err := lists(descendants); err != nil {
		return Sandbox{}, err
	}
	if err := s.try(ctx); err != nil {
		return Sandbox{}, err
	}
	return s, nil
}

// descendants is the kernel's list of the processes that a thread has started. A supervisor finds there what to count and to end.
const descendants = "/proc/thread-self/children"

// lists fails if the kernel has no such list: without it a supervisor would find nothing, and report nothing.
func lists(file string) error {
	if _, err := os.ReadFile(file); err != nil {
		return fmt.Errorf("this kernel does not list what processes have started (CONFIG_PROC_CHILDREN): %w", err)
	}
	return nil
}

// bwrap returns the path of bubblewrap; "" if it is not there.
func bwrap() string {
	for _, path := range bubblewraps {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return ""
}

func findBubblewrap(ctx context.Context) (Sandbox, error) {
	path := bwrap()
	if path == "" {
		return Sandbox{}, fmt.Errorf("%s is not there", bubblewraps[0])
	}
	version, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return Sandbox{}, fmt.Errorf("%s --version: %w", path, err)
	}
	return Sandbox{level: team.Bubblewrap, name: strings.TrimSpace(string(version)), program: path}, nil
}

// InstallCommand returns the command that installs bubblewrap on this machine; "" if a program of that name exists.
func InstallCommand() string {
	if bwrap() != "" {
		return ""
	}
	for _, i := range installers {
		if _, err := exec.LookPath(strings.Fields(i)[0]); err == nil {
			return "sudo " + i + " bubblewrap"
		}
	}
	return "the package bubblewrap of this system"
}

// installers are the commands that install a package; the first existing one counts.
var installers = []string{"apt-get install", "dnf install", "pacman -S", "apk add", "zypper install"}

// leastABI keeps commands from signalling other processes; aloneABI is enough if there are none.
const (
	leastABI = 6
	aloneABI = 3
)

// landlock returns the sandbox under a version of Landlock; err states why there is none.
func landlock(abi int, err error, inContainer bool) (Sandbox, error) {
	switch {
	case err != nil:
		return Sandbox{}, fmt.Errorf("this kernel has no Landlock: %w", err)
	case abi < aloneABI:
		return Sandbox{}, fmt.Errorf("the Landlock of this kernel has ABI %d, %d is needed", abi, leastABI)
	case abi < leastABI && !inContainer:
		return Sandbox{}, fmt.Errorf("the Landlock of this kernel has ABI %d, %d (Linux 6.12) is needed outside of containers", abi, leastABI)
	}
	name := fmt.Sprintf("confined (Landlock ABI %d)", abi)
	if abi < leastABI {
		name = fmt.Sprintf("confined (Landlock ABI %d: commands may signal what else runs in this container)", abi)
	}
	return Sandbox{level: team.Confined, name: name}, nil
}

// inContainer reports whether this process is in a container, as far as engines leave a mark.
func inContainer() bool {
	for _, path := range []string{"/.dockerenv", "/run/.containerenv", "/run/secrets/kubernetes.io"} {
		if _, err := os.Stat(path); err == nil {
			return true
		}
	}
	return os.Getenv("container") != ""
}

// try runs a harmless command, which writes in a permitted place and reads in a forbidden one.
func (s Sandbox) try(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "agentteam-sandbox-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := Box{Dir: filepath.Join(dir, "work"), Home: filepath.Join(dir, "home")}
	outside := filepath.Join(dir, "outside")
	if err := errors.Join(os.Mkdir(b.Dir, 0o700), os.WriteFile(outside, []byte("x"), 0o600)); err != nil {
		return err
	}
	r, err := s.Runner(b)
	if err != nil {
		return err
	}
	var output bytes.Buffer
	const script = `echo x > inside || exit; if cat "$1" > /dev/null 2>&1; then echo "it does not confine"; exit 9; fi; echo confined`
	exit, err := r.Run(ctx, command.Command{Args: []string{"/bin/sh", "-c", script, "sh", outside}, Dir: b.Dir, Output: &output})
	said := strings.Join(strings.Fields(output.String()), " ")
	switch {
	case err != nil:
		return err
	case exit.Cause != nil:
		return fmt.Errorf("a command was ended: %w", exit.Cause)
	case exit.Code != 0 || said != "confined":
		return fmt.Errorf("a command failed, %s: %s", exit.How, said)
	}
	return nil
}
