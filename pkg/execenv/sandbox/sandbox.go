// Package sandbox confines the commands that agents start. It finds the strongest level that works on this machine, and gives each
// member a [command.Runner] whose commands see and use no more than the member's [Box]. A process beside each command, package
// supervisor, ends all remaining processes of it.
//
// Package permission decides which commands are asked for, the caller which paths a command needs. docs/operations.md has the levels'
// limits.
package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"agentteam/pkg/team"
	"agentteam/pkg/tool/command"
)

// Sandbox runs commands at one level. It may be copied and used concurrently; the zero
// Sandbox runs none. [Find] makes one.
type Sandbox struct {
	level   team.Sandbox
	name    string // with the version
	lacking string // why a stronger level that was wished for does not work; "" if none was
	program string // of bubblewrap
	slow    bool   // a stronger level that was wished for did not answer in time
}

// Level returns Bubblewrap, Confined or Unconfined.
func (s Sandbox) Level() team.Sandbox { return s.level }

// String returns the level with its version, for people, under auto with the reason why it is not a stronger one: "confined (Landlock
// ABI 7) (bubblewrap: /usr/bin/bwrap is not there)".
func (s Sandbox) String() string {
	if s.lacking == "" {
		return s.name
	}
	return fmt.Sprintf("%s (%s)", s.name, s.lacking)
}

// Provisional reports whether a stronger level may work, but did not answer in time on a busy machine: search again.
func (s Sandbox) Provisional() bool { return s.slow }

// Find returns the strongest sandbox that wish allows and in which a harmless command runs. SandboxAuto means Bubblewrap, then
// Confined; only the wish for Unconfined leads to that. It blocks for milliseconds, at most for seconds. Errors: InvalidArgument for
// an unknown wish; Unavailable, with the tried levels and a hint.
func Find(ctx context.Context, wish team.Sandbox) (Sandbox, error) {
	return strongest(wish, func(level team.Sandbox) (Sandbox, error) { return find(ctx, level) })
}

// strongest is [Find]; find returns the sandbox of one level, if it works.
func strongest(wish team.Sandbox, find func(level team.Sandbox) (Sandbox, error)) (Sandbox, error) {
	var levels []team.Sandbox
	switch wish {
	case team.SandboxAuto, "":
		levels = []team.Sandbox{team.Bubblewrap, team.Confined}
	case team.Bubblewrap, team.Confined, team.Unconfined:
		levels = []team.Sandbox{wish}
	default:
		return Sandbox{}, team.Errorf(team.InvalidArgument, "sandbox: %q is not a level", wish).WithHint("want auto, bubblewrap, the weaker confined, or none")
	}
	var failed []string
	slow := false
	for _, level := range levels {
		s, err := find(level)
		if err == nil {
			s.lacking, s.slow = strings.Join(failed, "; "), slow
			return s, nil
		}
		failed, slow = append(failed, fmt.Sprintf("%s: %v", level, err)), slow || errors.Is(err, context.DeadlineExceeded)
	}
	return Sandbox{}, team.Errorf(team.Unavailable, "no sandbox works here: %s", strings.Join(failed, "; ")).WithHint(hint)
}

const hint = "install bubblewrap 0.8 or newer and allow user namespaces, or use Linux 6.12 or newer with Landlock; `sandbox: none` runs commands with all rights of the process"

// Causes of a [command.Exit], in addition to those of package command.
var (
	ErrMemory    = errors.New("the limit of memory has been reached")
	ErrProcesses = errors.New("the limit of processes has been reached")
	ErrThreads   = errors.New("the limit of threads has been reached")
	ErrFileSize  = errors.New("the limit of a file's size has been reached")
)

// Limits bound the resources of a command and all its processes.
type Limits struct {
	Memory    int64 // bytes, of all processes together; default 4 GiB
	Processes int   // at the same time; default 512
	Threads   int   // at the same time, of all processes together; default 4,096
	FileSize  int64 // bytes, of each file; default 4 GiB
}

// String returns the limits for people, with defaults for unset ones.
func (l Limits) String() string {
	l, err := l.withDefaults()
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%s of memory, %d processes, %d threads, %s in a file", size(l.Memory), l.Processes, l.Threads, size(l.FileSize))
}

// size writes a number of bytes for people.
func size(bytes int64) string {
	if bytes%(1<<30) == 0 {
		return fmt.Sprintf("%d GiB", bytes>>30)
	}
	return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20))
}

func (l Limits) withDefaults() (Limits, error) {
	if l.Memory < 0 || l.Processes < 0 || l.Threads < 0 || l.FileSize < 0 {
		return l, team.Errorf(team.InvalidArgument, "a limit of a sandbox is negative: %+v", l)
	}
	l.Memory = cmp.Or(l.Memory, 4<<30)
	l.Processes = cmp.Or(l.Processes, 512)
	l.Threads = cmp.Or(l.Threads, 4096)
	l.FileSize = cmp.Or(l.FileSize, 4<<30)
	return l, nil
}

// Box lists what the commands of one member see and may use. At level Unconfined only Limits and Env count. All paths are absolute.
type Box struct {
	Dir      string            // the workspace, writable; commands start in it or below
	Home     string            // HOME, writable, for one member; made if it is not there, as is Home + ".tmp" for temporary files
	ReadOnly []string          // may be read and executed, never written; may be absent. Confined lets nothing be made, renamed or removed in a folder itself that holds one
	Write    []string          // may be written
	Hidden   []string          // below Dir: are not there. Confined refuses what is, unless it is a symbolic link to a place outside the box
	Shown    map[string]string // places below Dir, each with what is shown there for reading, if that is there; at level Bubblewrap only
	Env      []string          // "NAME=value" each, beside what [command.Environ] lets through
	Limits   Limits

	// Proxy serves what a command sends to HTTP_PROXY and HTTPS_PROXY until ctx ends; output is the command's. nil: no network. Bubblewrap only.
	Proxy func(ctx context.Context, l net.Listener, output io.Writer)
}

// Runner returns the runner of commands in b. If one of Limits ends a command, its [command.Exit] has the Cause [ErrMemory],
// [ErrProcesses], [ErrThreads] or [ErrFileSize]. Errors: InvalidArgument for an invalid box; Unavailable for a Proxy at level
// Confined, and from the zero Sandbox. Run fails with InvalidState if a path of the box was replaced and leads elsewhere.
func (s Sandbox) Runner(b Box) (command.Runner, error) {
	var err error
	if b.Limits, err = b.Limits.withDefaults(); err != nil {
		return nil, err
	}
	if s.level == "" {
		return nil, team.Errorf(team.Unavailable, "no sandbox was found, so no command is run").WithHint(hint)
	}
	if b.Proxy != nil && s.level == team.Confined {
		return nil, team.Errorf(team.Unavailable, "commands have no network in the weaker sandbox %q", s.level).WithHint("install bubblewrap, or set `network: none`")
	}
	return s.runner(b)
}

// temp returns the folder for temporary files. It is beside Home, so a command cannot replace it.
func (b Box) temp() string { return Temp(b.Home) }

// Temp returns the folder for temporary files of boxes with a Home.
func Temp(home string) string { return home + ".tmp" }

// below reports whether path is dir or below it.
func below(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}
