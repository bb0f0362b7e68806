package workspace

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"agentteam/pkg/team"
	"agentteam/pkg/tool"
	"agentteam/pkg/tool/command"
)

// Begin begins a job of the member, see [Options].
type Begin func(is team.Job, run func(ctx context.Context, out io.Writer) (ended string)) (team.Job, error)

// errGone ends the work that is bound to a tree.
var errGone = errors.New("its owner has left the tree in which it was begun")

// maxLine bounds the shown characters of a background command.
const maxLine = 80

// shellOf returns the function of the tool bash: a background command keeps its workspace until it has ended, and ends
// with the tree of its task. Error: InvalidState where no agent would be notified of its end.
func shellOf(use func(context.Context) (*Workspace, func(), error), background bool) func(context.Context, bashArgs) (tool.Output, error) {
	foreground := in(use, (*Workspace).bash)
	return func(ctx context.Context, in bashArgs) (tool.Output, error) {
		if !in.Background {
			return foreground(ctx, in)
		}
		if !background {
			return tool.Output{}, team.Errorf(team.InvalidState, "nothing runs in the background here").WithHint("run it without run_in_background, with a timeout")
		}
		if err := in.check(); err != nil {
			return tool.Output{}, err
		}
		w, done, err := use(ctx)
		if err != nil {
			return tool.Output{}, err
		}
		out, err := w.background(in, done)
		if err != nil {
			done()
		}
		return out, err
	}
}

// background runs a command in the background; done is called once it has ended. Errors: those of [Begin] and of
// Options.MayRun.
func (w *Workspace) background(in bashArgs, done func()) (tool.Output, error) {
	if err := w.o.MayRun(); err != nil {
		return tool.Output{}, err
	}
	is := team.Job{Kind: team.JobCommand, About: team.OneLine(team.Clean(in.Command, maxLine))}
	is, err := w.o.Begin(is, func(ctx context.Context, out io.Writer) string {
		defer done()
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		stop := make(chan struct{})
		defer close(stop)
		go func() {
			select {
			case <-w.o.gone:
				cancel(errGone)
			case <-stop:
			}
		}()
		defer w.o.Running()()
		seen := command.Capture{Head: maxOutput}
		exit, err := w.runner.Run(ctx, w.command(in.Command, io.MultiWriter(out, &seen), time.Duration(in.Timeout)*time.Second))
		all := seen.String()
		_, _ = io.WriteString(out, strings.TrimPrefix(explained(all, all, exit), all)) // what cannot be kept is missing in what was printed, too
		return howEnded(exit, err)
	})
	if err != nil {
		return tool.Output{}, err
	}
	return tool.Output{Value: is, Brief: is.ID + " runs in the background; a notice comes when it has ended", Effects: tool.Effects{Jobs: []team.Job{is}}}, nil
}

// howEnded returns how a background command has ended, in a few words.
func howEnded(exit command.Exit, err error) string {
	switch {
	case errors.Is(err, command.ErrLost):
		return team.OneLine(team.Clean(err.Error(), 200))
	case err != nil:
		return "it was not started: " + team.OneLine(team.Clean(err.Error(), 200))
	case errors.Is(exit.Cause, command.ErrTimeout):
		return "killed, since its time was up"
	case exit.Cause != nil:
		return "killed: " + exit.Cause.Error()
	}
	return exit.How
}
