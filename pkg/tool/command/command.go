// Package command runs the programs that agents start, such as bash and the checks of tasks, within bounds: the
// environment has no secrets, time is limited, and nothing of the process group outlives the command or this process.
//
// It does not confine commands: a process that starts its own session (setsid) escapes. The runners of package sandbox
// confine; they share [Watch] with [Plain].
package command

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"time"

	"agentteam/pkg/team"
)

// Command is a program to run, with its bounds.
type Command struct {
	Args   []string      // the program, a path or a name to find in PATH, and its arguments; required
	Dir    string        // where it starts; required
	Env    []string      // "NAME=value" each; beside what is harmless of this process's
	Output io.Writer     // gets stdout and stderr, in the order of the writes; must not block for long; required
	Limit  time.Duration // how long it may run; default: until its context ends

	// Allowed returns until when it may run, and a channel that is closed when that moves.
	// It ends then although this process is frozen. Default: it may run on.
	Allowed func() (until time.Time, moved <-chan struct{})
}

// Exit states how a command has ended.
type Exit struct {
	Code  int    // its exit status; -1 if a signal ended it
	How   string // "exit status 3", "signal: killed"
	Cause error  // why it was ended: [ErrTimeout], [ErrNotAllowed], the context's cause; nil if by itself

	Sandbox team.Sandbox // in which it ran; "" = none was begun
	Offline bool         // the sandbox has no network
	Divided bool         // the sandbox let nothing be made, renamed or removed directly in its folder
}

// Causes of an [Exit].
var (
	ErrTimeout    = errors.New("the time limit has passed")
	ErrNotAllowed = errors.New("ended, since NATS does not confirm the membership")
)

// ErrLost marks the error of a runner that does not know how a command ended which it had started.
var ErrLost = errors.New("its end is not known: it may have run in part")

// Runner runs commands. Safe for concurrent use.
type Runner interface {
	// Run returns when c has ended, by itself or because it was ended; what is left of it
	// is killed then. It is an error if c could not be started.
	Run(ctx context.Context, c Command) (Exit, error)
}

// Plain runs commands with all the rights of this process.
type Plain struct{}

// Run implements [Runner].
func (Plain) Run(ctx context.Context, c Command) (Exit, error) {
	w, err := c.Watch(ctx)
	if err != nil {
		return Exit{}, err
	}
	defer w.End()
	cmd := exec.CommandContext(w.Context, c.Args[0], c.Args[1:]...)
	cmd.Dir, cmd.Env = c.Dir, append(Environ(os.Environ()), c.Env...)
	cmd.Stdout, cmd.Stderr = w.Output, w.Output
	err = runInGroup(cmd, w)
	if cmd.ProcessState == nil {
		if cause := w.Cause(); cause != nil { // before it could begin
			return Exit{Code: -1, How: "signal: killed", Cause: cause, Sandbox: team.Unconfined}, nil
		}
		return Exit{}, err
	}
	exit := Exit{Code: cmd.ProcessState.ExitCode(), How: cmd.ProcessState.String(), Sandbox: team.Unconfined}
	if !cmd.ProcessState.Exited() { // not if it did, also at the last moment
		exit.Cause = w.Cause()
	}
	return exit, nil
}
