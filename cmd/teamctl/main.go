// Command teamctl is the command line of agentteam: it starts clusters, sets goals, shows the work and
// changes the task board. Each command has its own file.
package main

import (
	"context"
	"errors"
	"os"

	"agentteam/pkg/shutdown"
	"agentteam/pkg/team"
)

func main() {
	ctx, stop := shutdown.Signals(context.Background())
	out := &output{File: os.Stdout}
	a := newApp(out, os.Stderr)
	err := a.run(ctx, os.Args[1:])
	if failed := out.err(); failed != nil && err == nil {
		err = failed
	}
	stop()
	// Whoever has closed the output knows that this interrupts the command.
	if unread := a.cmd != nil && context.Cause(a.cmd.Context()) == errUnread; err != nil && (!unread || !errors.Is(err, errInterrupted)) {
		a.printError(err)
	}
	os.Exit(team.ExitCode(err))
}
