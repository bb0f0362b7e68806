package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

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
	case err == nil:
		return nil
	case ctx.Err() != nil, errors.Is(err, team.Unavailable):
		return err
	}
	return a.record(ctx, journal.Record{Kind: journal.Note, Text: fmt.Sprintf("%s was taken from you: %v. Stop working on it.", id, err)})
}

// mayGoOn returns once the agent may begin its next step. It waits while the
// membership is uncertain. Before a step that counts (a model's turn, a tool that
// writes) it makes sure that the agent's task is still its own, if that was not
// confirmed within a sixth of the lease; if it is not, the model is told.
func (a *Agent) mayGoOn(ctx context.Context, counts bool) error {
	if err := a.o.Heart.Certain(ctx); err != nil {
		return err
	}
	t, holds := a.o.Hand.Task()
	if !holds || !counts || time.Since(a.confirmed) < a.o.Lease/6 {
		return nil
	}
	began := time.Now()
	_, err := a.o.Hand.Confirm(ctx, t.ID)
	switch {
	case err == nil:
		a.confirmed = began
		return nil
	case ctx.Err() != nil, errors.Is(err, team.Unavailable):
		return err
	}
	a.log.WarnContext(ctx, "task lost", "task", t.ID, "err", err)
	a.Revoked(t.ID)
	return nil
}
