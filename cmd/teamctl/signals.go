package main

import (
	"context"
	"errors"
	"os"
	"syscall"

	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"agentteam/pkg/shutdown"
)

// errUnread ends a command that goes on, once nobody reads what it says.
var errUnread = errors.New("nobody reads the output any more")

// goesOn reports whether cmd shows what happens until somebody stops it. Another command
// carries out what it was asked for, whether or not anybody reads the answer.
func goesOn(cmd *cobra.Command) bool {
	given := func(flag string) bool {
		f := cmd.Flags().Lookup(flag)
		return f != nil && f.Value.String() == "true"
	}
	switch cmd.Name() {
	case "up", "run", "demo", "attach", "chat", "top":
		return !given("detach")
	}
	return given("follow") || given("watch")
}

// whileRead returns a context that ends with errUnread once nobody reads stdout or stderr
// any more, as that of run | head. From then on writing to them is an error; by default it
// would kill the process, which may have a cluster to stop.
func whileRead(ctx context.Context) context.Context {
	shutdown.SurviveClosedPipes()
	ctx, end := context.WithCancelCause(ctx)
	go whenUnread(os.Stdout.Fd(), end)
	go whenUnread(os.Stderr.Fd(), end)
	return ctx
}

// whenUnread waits until nobody reads what is written to a descriptor any more, and then
// calls end with errUnread. Of a file it never returns. A terminal that is closed says so
// by SIGHUP, which whoever wants to outlive it ignores.
func whenUnread(fd uintptr, end context.CancelCauseFunc) {
	for !term.IsTerminal(fd) {
		told := []unix.PollFd{{Fd: int32(fd)}} // errors and hang-ups are told in any case
		switch n, err := unix.Poll(told, -1); {
		case errors.Is(err, syscall.EINTR):
		case err != nil || n == 0: // it cannot be known
			return
		case told[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0:
			end(errUnread)
			return
		}
	}
}
