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
	tasks  []loss                  // to be noted
	cut    bool                    // nothing more of the turn is to be begun
	stop   context.CancelCauseFunc // ends the step under way; nil: none is
	signal chan struct{}           // there is something to note
}

// loss is a task that was taken from the agent, and why.
type loss struct {
	task team.TaskID
	why  error
}

// errRevoked ends the step that an agent is at when its task is taken away.
var errRevoked = errors.New("the task was taken away")

// revoked is told by the hand that the agent's task was taken from it: what the agent is
// just doing is cancelled, and what else its model's last turn asked for, until the model
// was told.
func (a *Agent) revoked(id team.TaskID, why error) {
	a.log.Warn("task lost", "task", id, "err", why)
	a.lost.mu.Lock()
	a.lost.tasks, a.lost.cut = append(a.lost.tasks, loss{id, why}), true
	if a.lost.stop != nil {
		a.lost.stop(errRevoked)
	}
	a.lost.mu.Unlock()
	a.lost.wake()
}

func (l *lost) wake() {
	select {
	case l.signal <- struct{}{}:
	default:
	}
}

// any reports whether there is something to note.
func (l *lost) any() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.tasks) > 0
}

// newTurn lets steps begin again, unless there is more to note.
func (l *lost) newTurn() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = len(l.tasks) > 0
}

func (l *lost) isCut() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cut
}

// step returns the context of one model call or tool call. It ends also when the
// agent's task is taken away, or may have been: see [Heart.Within].
func (a *Agent) step(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	within, release := a.o.Heart.Within(ctx)
	a.lost.mu.Lock()
	a.lost.stop = cancel
	if a.lost.cut { // in between
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

// hold returns the present one; ok is false if there is none.
func (a *Agent) hold() (h hold, ok bool) {
	t, ok := a.o.Hand.Task()
	return hold{t.ID, t.Epoch}, ok
}

// noteLost records what was taken away, so that the model knows. The call that found the
// loss may have taken another task, or the same one again, and was cut off as it said so:
// that task is told, too.
func (a *Agent) noteLost(ctx context.Context) error {
	a.lost.mu.Lock()
	tasks := a.lost.tasks
	a.lost.tasks = nil
	a.lost.mu.Unlock()
	for _, l := range tasks {
		err := a.record(ctx, journal.Record{Kind: journal.Note, Text: fmt.Sprintf("%s was taken from you: %v. Stop working on it.", l.task, l.why)})
		if err != nil {
			return err
		}
	}
	if t, holds := a.o.Hand.Task(); len(tasks) > 0 && holds && !a.conv.told(t) {
		return a.begin(ctx, t)
	}
	return nil
}

// unreadableRest is how long the agent waits before it looks again at a task of its own
// that cannot be read.
const unreadableRest = 5 * time.Second

// readable calls f until its answer is another than that the record of the agent's task
// cannot be read. In between the agent does nothing but take in what comes: whether the
// task is still its own is not known before somebody has mended the record, or has freed
// the task. The leader is told, since it may wait for the agent.
func (a *Agent) readable(ctx context.Context, f func() error) error {
	for told := false; ; told = true {
		err := f()
		if !errors.Is(err, broker.ErrUnreadable) {
			return err
		}
		if !told {
			a.log.WarnContext(ctx, "waiting until the task can be read", "err", err)
			if a.o.Member.AgentID != team.Leader {
				a.notify(ctx, team.Message{Type: team.MsgMessage, To: team.Leader,
					Content: fmt.Sprintf("I wait until my task can be read again: %v", err)})
			}
		}
		if err := a.pause(ctx, wants{}, unreadableRest); err != nil {
			return err
		}
	}
}

// mayGoOn returns once the agent may begin its next step. It waits while the
// membership is uncertain. Before a step that counts (a model's turn, a tool that
// writes) it makes sure that the agent's task is still its own, if that was not
// confirmed within a sixth of the lease; if it is not, the step is over as it begins.
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
		if !a.lost.isCut() { // the agent itself has put it back, which it was told had failed
			a.revoked(id, err)
		}
		return nil
	}
	return err
}
