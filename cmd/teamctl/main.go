// Command teamctl is how people use agentteam: it starts clusters, sets goals,
// shows what goes on and works on the board. Each command is a file of this folder.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"agentteam/pkg/team"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	a := newApp(os.Stdout, os.Stderr)
	err := a.run(ctx, os.Args[1:])
	stop()
	if err != nil {
		a.printError(err)
	}
	os.Exit(team.ExitCode(err))
}
