package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"agentteam/pkg/team"
	"agentteam/pkg/team/blob"
	"agentteam/pkg/tool"
	"agentteam/pkg/tool/command"
)

const bashDescription = `Run a command in the workspace: builds, tests, git. To read and search files use read_file, grep and glob. Returns stdout and stderr together and, if it is not 0, "exit status N" as the last line. Each call is a new shell without input: cd and variables do not carry over, and background processes are killed at its end.`

// inBackground is the argument that only members have who are notified of ended jobs.
const inBackground = "run_in_background"

const (
	defaultTimeout = 120         // seconds
	maxTimeout     = 600         // seconds
	maxCommand     = 128<<10 - 1 // bytes; Linux takes no longer argument (MAX_ARG_STRLEN)
)

// MaxTime is the longest time limit of the tool bash.
const MaxTime = maxTimeout * time.Second

type bashArgs struct {
	Command string `json:"command" jsonschema:"may have several lines"`
	Timeout int    `json:"timeout,omitempty" jsonschema:"seconds (default 120, at most 600)"`

	Background bool `json:"run_in_background,omitempty" jsonschema:"get its id now, and be told when it has ended; no time limit unless given"`
}

// bash is the tool bash. A failing command is not an error of the tool: the result has its exit status. Errors:
// invalid_argument; invalid_state at the time limit and unavailable for a cancelled call, both with the output so far;
// unavailable also if bash cannot be started.
func (w *Workspace) bash(ctx context.Context, in bashArgs) (tool.Output, error) {
	if err := in.check(); err != nil {
		return tool.Output{}, err
	}
	if err := w.o.MayRun(); err != nil {
		return tool.Output{}, err
	}
	defer w.o.Running()()
	seconds := cmp.Or(in.Timeout, defaultTimeout)
	output, exit, err := w.shell(ctx, in.Command, time.Duration(seconds)*time.Second)
	switch {
	case errors.Is(err, command.ErrNotAllowed), errors.Is(err, command.ErrLost):
		return tool.Output{}, fmt.Errorf("%w; partial output:\n%s", err, output)
	case err != nil && ctx.Err() != nil:
		return tool.Output{}, tool.Plain(err, ended(output, "[cancelled: %v]", context.Cause(ctx)))
	case err != nil:
		return tool.Output{}, err
	case exit.Cause == nil:
		return tool.Output{Value: report(output, exit)}, nil
	case errors.Is(exit.Cause, command.ErrTimeout):
		output = ended(output, "[timed out after %d s and was killed: set timeout, at most %d, or do it in smaller steps]", seconds, maxTimeout)
	default:
		output = ended(output, "[killed: %v]", exit.Cause)
	}
	return tool.Output{}, tool.Plain(team.Errorf(team.InvalidState, "%w", exit.Cause), output)
}

// check returns InvalidArgument for a command that cannot be run.
func (in bashArgs) check() error {
	switch {
	case strings.TrimSpace(in.Command) == "":
		return team.Errorf(team.InvalidArgument, "command: empty")
	case strings.ContainsRune(in.Command, 0):
		return team.Errorf(team.InvalidArgument, "command: holds a zero byte")
	case len(in.Command) > maxCommand:
		return team.Errorf(team.InvalidArgument, "command: %d bytes, at most %d", len(in.Command), maxCommand).
			WithHint("write a script with write_file and run that")
	case in.Timeout < 0 || in.Timeout > maxTimeout:
		return team.Errorf(team.InvalidArgument, "timeout: %d, want seconds from 1 to %d", in.Timeout, maxTimeout)
	}
	return nil
}

// ended returns the output of a command with why as its last line.
func ended(output, why string, args ...any) string {
	if output != "" && !strings.HasSuffix(output, "\n") {
		output += "\n"
	}
	return output + fmt.Sprintf(why, args...)
}

// report returns the output and, unless the exit status is 0, a last line "exit status N" or "signal: killed".
func report(output string, exit command.Exit) string {
	if exit.Code == 0 {
		return output
	}
	return ended(output, "%s", exit.How)
}

// command returns the command that runs a command line.
func (w *Workspace) command(line string, output io.Writer, limit time.Duration) command.Command {
	return command.Command{Args: []string{"bash", "-c", line}, Dir: w.dir, Env: []string{"AGENTTEAM_WORKSPACE=" + w.dir},
		Output: output, Limit: limit, Allowed: w.o.Allowed}
}

// shell runs a command line and returns its output; exit.Cause is the limit that ended it, if one did. Errors:
// unavailable if bash cannot be started, if ctx ends, or if commands are no longer allowed.
func (w *Workspace) shell(ctx context.Context, line string, limit time.Duration) (output string, exit command.Exit, err error) {
	var captured command.Capture
	exit, err = w.runner.Run(ctx, w.command(line, io.MultiWriter(&captured, progress{ctx}), limit))
	tool.Note(ctx, func(a *team.Account) {
		a.Sandbox = exit.Sandbox // and not that by which the call was judged: settings may have changed
		if err == nil {
			a.Exit = &exit.Code
		}
	})
	keep := w.o.Keep
	if errors.Is(exit.Cause, command.ErrNotAllowed) { // there is nobody to keep it
		keep = nil
	}
	if output = captured.String(); keep != nil && len(output) > maxOutput {
		output = blob.Readable(output) // the excerpt has the characters of what is kept
	}
	output = explained(blob.Shown(ctx, output, output, maxOutput, keep), output, exit)
	switch {
	case errors.Is(err, command.ErrLost):
		err = team.Errorf(team.Unavailable, "%w", err)
	case err != nil:
		err = team.Errorf(team.Unavailable, "bash was not started: %w", err)
	case errors.Is(exit.Cause, command.ErrNotAllowed):
		err = team.Errorf(team.Unavailable, "%w", exit.Cause)
	case exit.Cause != nil && ctx.Err() != nil:
		err = team.Errorf(team.Unavailable, "cancelled: %w", exit.Cause)
	}
	return output, exit, err
}

// maxOutput bounds the shown bytes of a command's output.
const maxOutput = 30_000

// progress reports each write to the caller of the tool.
type progress struct{ ctx context.Context }

func (p progress) Write(b []byte) (int, error) {
	tool.Progress(p.ctx)
	return len(b), nil
}

// checkLimit bounds the check of a task.
const checkLimit = 5 * time.Minute

// Check runs a task's check, a shell command, as the tool bash would, and returns its output and whether it succeeded.
// After five minutes it has failed. Errors: Unavailable if bash cannot be started or ctx ends.
func (w *Workspace) Check(ctx context.Context, line string) (output string, passed bool, err error) {
	output, exit, err := w.shell(ctx, line, checkLimit)
	switch {
	case err != nil:
		return "", false, err
	case exit.Cause == nil:
		return report(output, exit), exit.Code == 0, nil
	case errors.Is(exit.Cause, command.ErrTimeout):
		return ended(output, "[killed after %v]", checkLimit), false, nil
	}
	return ended(output, "[killed: %v]", exit.Cause), false, nil
}
