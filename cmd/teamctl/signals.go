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

// errUnread ends a command that runs until stopped, once nobody reads its output.
var errUnread = errors.New("nobody reads the output any more")

// goesOn reports whether cmd shows events until a person stops it. Other commands finish their work even if
// nobody reads the output.
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

// whileRead returns a context that ends with errUnread once nobody reads stdout or stderr any more, like that
// of run | head. From then on writes are errors; by default they would kill the process, which may have a
// cluster to stop.
func whileRead(ctx context.Context) context.Context {
	shutdown.SurviveClosedPipes()
	ctx, end := context.WithCancelCause(ctx)
	go whenUnread(os.Stdout.Fd(), end)
	go whenUnread(os.Stderr.Fd(), end)
	return ctx
}

// whenUnread waits until nobody reads from the other end of a descriptor any more, then it calls end with
// errUnread. For a file it never returns. A closed terminal sends SIGHUP instead, which processes that should
// outlive it ignore.
func whenUnread(fd uintptr, end context.CancelCauseFunc) {
	for !term.IsTerminal(fd) {
		told := []unix.PollFd{{Fd: int32(fd)}} // errors and hang-ups are always reported
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
