package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"agentteam/pkg/board"
	"agentteam/pkg/broker"
	"agentteam/pkg/journal"
	"agentteam/pkg/team"
)

// lost are tasks that were taken from the agent while it was at work.
type lost struct {
	mu     sync.Mutex
	tasks  []team.TaskID
	stop   context.CancelCauseFunc // ends the step under way; nil: none is
	signal chan struct{}           // there is something to note
}

// errRevoked ends the step that an agent is at when its task is taken away.
var errRevoked = errors.New("the task was taken away")

// Revoked tells the agent that a task is no longer its own: what it is just doing is
// cancelled, and its model is told. It may be called at any time.
func (a *Agent) Revoked(id team.TaskID) {
	a.lost.mu.Lock()
	defer a.lost.mu.Unlock()
	a.lost.tasks = append(a.lost.tasks, id)
	if a.lost.stop != nil {
		a.lost.stop(errRevoked)
	}
	select {
	case a.lost.signal <- struct{}{}:
	default:
	}
}

// step returns the context of one model call or tool call. It ends also when the
// agent's task is taken away, or may have been: see [Heart.Within].
func (a *Agent) step(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	within, release := a.o.Heart.Within(ctx)
	a.lost.mu.Lock()
	a.lost.stop = cancel
	if len(a.lost.tasks) > 0 { // in between
		cancel(errRevoked)
	}
	a.lost.mu.Unlock()
	return within, func() {
		a.lost.mu.Lock()
		a.lost.stop = nil
		a.lost.mu.Unlock()
		release()
		cancel(nil)
	}
}

// noteLost records what was taken away, so that the model knows.
func (a *Agent) noteLost(ctx context.Context) error {
	a.lost.mu.Lock()
	tasks := a.lost.tasks
	a.lost.tasks = nil
	a.lost.mu.Unlock()
	for _, id := range tasks {
		if err := a.noteTaken(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// noteTaken says of one task why it is no longer the agent's. One that it has again
// meanwhile is none of those.
func (a *Agent) noteTaken(ctx context.Context, id team.TaskID) error {
	_, err := a.o.Hand.Confirm(ctx, id)
	switch {
	case board.Lost(err):
		return a.record(ctx, journal.Record{Kind: journal.Note, Text: fmt.Sprintf("%s was taken from you: %v. Stop working on it.", id, err)})
	case errors.Is(err, broker.ErrUnreadable):
		return nil // nobody knows; see readable
	}
	return err
}

// unreadableRest is how long the agent waits before it looks again at a task of its own
// that cannot be read.
const unreadableRest = 5 * time.Second

// readable calls f until its answer is another than that the record of the agent's task
// cannot be read. In between the agent does nothing but take in what comes: whether the
// task is still its own is not known before somebody has mended the record, or has freed
// the task.
func (a *Agent) readable(ctx context.Context, f func() error) error {
	for tries := 0; ; tries++ {
		err := f()
		if !errors.Is(err, broker.ErrUnreadable) {
			return err
		}
		if tries == 0 {
			a.log.WarnContext(ctx, "waiting until the task can be read", "err", err)
		}
		if err := a.pause(ctx, unreadableRest); err != nil {
			return err
		}
	}
}

// mayGoOn returns once the agent may begin its next step. It waits while the
// membership is uncertain. Before a step that counts (a model's turn, a tool that
// writes) it makes sure that the agent's task is still its own, if that was not
// confirmed within a sixth of the lease; if it is not, the model is told.
func (a *Agent) mayGoOn(ctx context.Context, counts bool) error {
	var id team.TaskID
	err := a.readable(ctx, func() error {
		if err := a.o.Heart.Certain(ctx); err != nil {
			return err
		}
		t, holds := a.o.Hand.Task()
		if !holds || !counts || time.Since(a.o.Hand.Confirmed()) < a.o.Lease/6 {
			return nil
		}
		id = t.ID
		_, err := a.o.Hand.Confirm(ctx, id)
		return err
	})
	if board.Lost(err) {
		a.log.WarnContext(ctx, "task lost", "task", id, "err", err)
		a.Revoked(id)
		return nil
	}
	return err
}
