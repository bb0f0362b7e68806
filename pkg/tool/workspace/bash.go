package workspace

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"agentteam/pkg/team"
)

const bashDescription = `Runs a command with bash in the workspace and returns its output, stdout and stderr together, and as the last line "exit status N" if that is not 0. There is no input and no terminal. Each call is a new shell, and when it ends, what it left in the background is killed.`

const (
	defaultTimeout = 120         // seconds
	maxTimeout     = 600         // seconds
	maxCommand     = 128<<10 - 1 // bytes; Linux takes no longer argument (MAX_ARG_STRLEN)

	// escapeGrace is how long the output of a process is awaited that left the
	// group, and so lives on, but kept the output open.
	escapeGrace = time.Second
)

type bashArgs struct {
	Command string `json:"command" jsonschema:"the command, or a script of several lines"`
	Timeout int    `json:"timeout,omitempty" jsonschema:"seconds until it is killed (default 120, at most 600)"`
}

// bash is the tool bash. A command that fails is no error of the tool: its exit
// status is in the result. Errors: invalid_argument; invalid_state if the time
// was up and unavailable if the call was cancelled, both with the output until
// then; unavailable also if bash cannot be started.
func (w *Workspace) bash(ctx context.Context, in bashArgs) (any, error) {
	switch {
	case strings.TrimSpace(in.Command) == "":
		return nil, team.Errorf(team.InvalidArgument, "command: empty")
	case strings.ContainsRune(in.Command, 0):
		return nil, team.Errorf(team.InvalidArgument, "command: holds a zero byte")
	case len(in.Command) > maxCommand:
		return nil, team.Errorf(team.InvalidArgument, "command: %d bytes, at most %d", len(in.Command), maxCommand).
			WithHint("write a script with write_file and run that")
	case in.Timeout < 0 || in.Timeout > maxTimeout:
		return nil, team.Errorf(team.InvalidArgument, "timeout: %d, want seconds from 1 to %d", in.Timeout, maxTimeout)
	}
	seconds := cmp.Or(in.Timeout, defaultTimeout)
	limited, cancel := context.WithTimeout(ctx, time.Duration(seconds)*time.Second)
	defer cancel()
	output, state, err := w.shell(limited, in.Command)
	switch {
	case state == nil:
		return nil, team.Errorf(team.Unavailable, "bash was not started: %w", err)
	case state.Exited() || limited.Err() == nil: // by itself, also at the last moment
		return report(output, state), nil
	case ctx.Err() != nil:
		return nil, team.Errorf(team.Unavailable, "cancelled (%v); partial output:\n%s", context.Cause(ctx), output)
	}
	return nil, team.Errorf(team.InvalidState, "timed out after %d s; partial output:\n%s", seconds, output).
		WithHint("set timeout (at most %d), or do it in smaller steps", maxTimeout)
}

// report is the output, and unless all went well a last line "exit status N" or
// "signal: killed".
func report(output string, state *os.ProcessState) string {
	if state.Success() {
		return output
	}
	if output != "" && !strings.HasSuffix(output, "\n") {
		output += "\n"
	}
	return output + state.String()
}

// shell runs a command and returns when it has ended, by itself or because ctx
// has. state is nil if it could not be started.
func (w *Workspace) shell(ctx context.Context, command string) (output string, state *os.ProcessState, err error) {
	// A pipe of our own, not an io.Writer as Stdout: with that, exec would wait
	// for whatever process holds the output open.
	r, stdout, err := os.Pipe()
	if err != nil {
		return "", nil, err
	}
	defer r.Close()
	var captured capture
	end := make(chan struct{})
	go func() {
		defer close(end)
		_, _ = io.Copy(&captured, r) // until the last writer is gone or the deadline below
	}()
	cmd := exec.CommandContext(ctx, "bash", "-c", command)
	cmd.Dir, cmd.Env = w.dir, w.environ
	cmd.Stdout, cmd.Stderr = stdout, stdout
	err = runInGroup(cmd)
	stdout.Close()
	_ = r.SetReadDeadline(time.Now().Add(escapeGrace)) // a pipe takes deadlines
	<-end
	return captured.String(), cmd.ProcessState, err
}

// checkLimit bounds the check of a task.
const checkLimit = 5 * time.Minute

// Check runs a task's check, a shell command, as the tool bash would, and returns
// its output and whether it succeeded. One that takes longer than five minutes has
// failed. Errors: Unavailable if bash cannot be started or ctx ends.
func (w *Workspace) Check(ctx context.Context, command string) (output string, passed bool, err error) {
	limited, cancel := context.WithTimeout(ctx, checkLimit)
	defer cancel()
	output, state, err := w.shell(limited, command)
	switch {
	case state == nil:
		return "", false, team.Errorf(team.Unavailable, "bash was not started: %w", err)
	case state.Exited() || limited.Err() == nil:
		return report(output, state), state.Success(), nil
	case ctx.Err() != nil:
		return "", false, team.Errorf(team.Unavailable, "cancelled: %w", context.Cause(ctx))
	}
	return output + fmt.Sprintf("\n[killed after %v]", checkLimit), false, nil
}
