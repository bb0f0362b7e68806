// Command teamctl is how people use agentteam: it starts clusters, sets goals,
// shows what goes on and works on the board. Each command is a file of this folder.
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
