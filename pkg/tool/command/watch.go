package command

import (
	"context"
	"io"
	"os"
	"sync"
	"time"

	"agentteam/pkg/shutdown"
)

// Watch bounds one run of a [Command], whatever [Runner] starts it: its output, its time limit, its permission to run.
// Not safe for concurrent use.
type Watch struct {
	Context context.Context // ends when the command has to
	Output  *os.File        // is stdout and stderr of the command

	ctx     context.Context // without the time limit
	cancel  context.CancelFunc
	allowed func() (time.Time, <-chan struct{})
	report  func(left time.Duration) error // of Guard
	telling sync.Mutex
	source  *os.File
	copied  chan struct{}
	ended   chan struct{}
}

// Watch starts the watch of one run, before the command is started. The caller ends it.
func (c Command) Watch(ctx context.Context) (*Watch, error) {
	r, out, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	w := &Watch{
		Context: ctx, ctx: ctx, cancel: func() {}, allowed: c.Allowed,
		// With a writer as the command's output, package exec would wait for each process that holds the output open.
		Output: out, source: r, copied: make(chan struct{}), ended: make(chan struct{}),
	}
	if c.Limit > 0 {
		w.Context, w.cancel = context.WithTimeoutCause(ctx, c.Limit, ErrTimeout)
	}
	go func() {
		defer close(w.copied)
		_, _ = io.Copy(c.Output, r) // until the last process that writes is gone, or the deadline of End
	}()
	return w, nil
}

// Guard calls tell with the time that the command may still run, if [Command].Allowed limits it, and again whenever
// that changes, until the watch ends or tell fails. tell must have the command ended in time even if this process is
// frozen. It returns the error of the first call.
func (w *Watch) Guard(tell func(left time.Duration) error) error {
	if w.allowed == nil {
		return nil
	}
	w.report = tell
	moved, err := w.again()
	if err != nil {
		return err
	}
	go func() {
		for err == nil {
			select {
			case <-w.ended:
				return
			case <-moved:
				moved, err = w.again() // fails once the guard is gone, and the command with it
			}
		}
	}()
	return nil
}

// Report repeats the last call of [Watch.Guard], and returns its error: the guard is gone.
func (w *Watch) Report() error {
	if w.report == nil {
		return nil
	}
	_, err := w.again()
	return err
}

func (w *Watch) again() (moved <-chan struct{}, err error) {
	w.telling.Lock() // what is told last is the newest
	defer w.telling.Unlock()
	until, moved := w.allowed()
	// 0 is sent as a very short time: to some readers, 0 means something else.
	return moved, w.report(max(time.Until(until), time.Millisecond))
}

// Cause returns why this process ended the command: [ErrNotAllowed], [ErrTimeout], the context's cause; nil if it did
// not.
func (w *Watch) Cause() error {
	if w.ctx.Err() == nil && w.allowed != nil {
		if until, _ := w.allowed(); !time.Now().Before(until) { // by the guard, which was quicker
			return ErrNotAllowed
		}
	}
	return context.Cause(w.Context)
}

// End waits until the output is copied. A process that outlives the command may keep the output open: End waits for it
// for at most [shutdown.Tools].
func (w *Watch) End() {
	w.cancel()
	close(w.ended)
	w.Output.Close()
	_ = w.source.SetReadDeadline(time.Now().Add(shutdown.Tools)) // a pipe takes deadlines
	<-w.copied
	w.source.Close()
}
