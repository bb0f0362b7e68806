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

	"agentteam/pkg/shutdown"
	"agentteam/pkg/team"
	"agentteam/pkg/tool"
)

const bashDescription = `Run a command in the workspace: builds, tests, git. To read and search files use read_file, grep and glob. Returns stdout and stderr together and, if it is not 0, "exit status N" as the last line. Each call is a new shell without input: cd and variables do not carry over, and background processes are killed at its end. Do not sleep to wait for others.`

const (
	defaultTimeout = 120         // seconds
	maxTimeout     = 600         // seconds
	maxCommand     = 128<<10 - 1 // bytes; Linux takes no longer argument (MAX_ARG_STRLEN)
)

type bashArgs struct {
	Command string `json:"command" jsonschema:"may have several lines"`
	Timeout int    `json:"timeout,omitempty" jsonschema:"seconds (default 120, at most 600)"`
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
	case state.Exited() || limited.Err() == nil && !w.overdue(): // by itself, also at the last moment
		return report(output, state), nil
	case w.overdue() && ctx.Err() == nil: // by the guard, which was quicker
		return nil, team.Errorf(team.Unavailable, "ended, since NATS does not confirm the membership; partial output:\n%s", output)
	case ctx.Err() != nil:
		err = team.Errorf(team.Unavailable, "cancelled (%w)", context.Cause(ctx))
		return nil, tool.Plain(err, ended(output, "[cancelled: %v]", context.Cause(ctx)))
	}
	err = team.Errorf(team.InvalidState, "timed out after %d s", seconds)
	return nil, tool.Plain(err, ended(output, "[timed out after %d s and was killed: set timeout, at most %d, or do it in smaller steps]", seconds, maxTimeout))
}

// ended is the output of a command that was killed, with a last line that says why.
func ended(output, why string, args ...any) string {
	if output != "" && !strings.HasSuffix(output, "\n") {
		output += "\n"
	}
	return output + fmt.Sprintf(why, args...)
}

// overdue reports whether commands may not run now.
func (w *Workspace) overdue() bool {
	if w.allowed == nil {
		return false
	}
	until, _ := w.allowed()
	return !time.Now().Before(until)
}

// report is the output, and unless all went well a last line "exit status N" or
// "signal: killed".
func report(output string, state *os.ProcessState) string {
	if state.Success() {
		return output
	}
	return ended(output, "%v", state)
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
		_, _ = io.Copy(io.MultiWriter(&captured, progress{ctx}), r) // until the last writer is gone or the deadline below
	}()
	cmd := exec.CommandContext(ctx, "bash", "-c", command)
	cmd.Dir, cmd.Env = w.dir, w.environ
	cmd.Stdout, cmd.Stderr = stdout, stdout
	err = runInGroup(cmd, w.allowed)
	stdout.Close()
	// A process that left the group lives on, and may have kept the output open.
	_ = r.SetReadDeadline(time.Now().Add(shutdown.Tools)) // a pipe takes deadlines
	<-end
	return captured.String(), cmd.ProcessState, err
}

// progress tells whoever runs the call of each write.
type progress struct{ ctx context.Context }

func (p progress) Write(b []byte) (int, error) {
	tool.Progress(p.ctx)
	return len(b), nil
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
	case state.Exited() || limited.Err() == nil && !w.overdue():
		return report(output, state), state.Success(), nil
	case ctx.Err() != nil:
		return "", false, team.Errorf(team.Unavailable, "cancelled: %w", context.Cause(ctx))
	case w.overdue():
		return "", false, team.Errorf(team.Unavailable, "ended, since NATS does not confirm the membership")
	}
	return ended(output, "[killed after %v]", checkLimit), false, nil
}
