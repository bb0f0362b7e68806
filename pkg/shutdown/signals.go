package shutdown

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// SurviveClosedPipes makes a write to a closed stdout or stderr an error, for the rest of the
// process: by default it ends the process, which may have a task to give back. Processes
// that this one starts are not affected.
func SurviveClosedPipes() {
	// No goroutine reads the channel: a SIGPIPE may also come from a network connection.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
}

// Signals returns a context that ends with the first signal that asks the process to stop: Ctrl-C, SIGTERM, or
// SIGHUP, which a closed terminal sends. A process that was started to outlive its terminal (nohup) ignores
// SIGHUP. After stop, signals have their default effect again.
func Signals(ctx context.Context) (_ context.Context, stop func()) {
	asked := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		asked = append(asked, syscall.SIGHUP)
	}
	return signal.NotifyContext(ctx, asked...)
}
