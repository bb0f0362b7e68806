package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"agentteam/pkg/journal"
	"agentteam/pkg/team"
)

// lost are tasks that were taken from the agent while it was at work.
type lost struct {
	mu     sync.Mutex
	tasks  []loss                  // to be noted
	cut    bool                    // the rest of the turn is skipped
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

// revoked is called by the hand when the agent's task was taken away. It cancels the running
// step and skips the remaining tool calls of this turn. Steps begin again once the model has
// been told.
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

// step returns the context of one model call or tool call. It also ends when the agent's
// task is taken away, or may have been ([Heart.Within]). done must be called.
func (a *Agent) step(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	within, release := a.o.Heart.Within(ctx)
	a.lost.mu.Lock()
	a.lost.stop = cancel
	if a.lost.cut { // a task was lost just before this step
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

// hold returns the agent's present hold; ok is false if it holds no task.
func (a *Agent) hold() (h holding, ok bool) {
	t, ok := a.o.Hand.Task()
	return holding{t.ID, t.Epoch}, ok
}

func (a *Agent) holds() bool {
	_, ok := a.o.Hand.Task()
	return ok
}

// noteLost tells the model which tasks were taken away. A call that found the loss may have
// claimed another task, or the same one again, and been cancelled before its result was
// told. Then the model is told of that task as well.
func (a *Agent) noteLost(ctx context.Context) error {
	a.lost.mu.Lock()
	tasks := a.lost.tasks
	a.lost.tasks = nil
	a.lost.mu.Unlock()
	for _, l := range tasks {
		err := a.record(ctx, journal.Record{Kind: journal.Note, Text: fmt.Sprintf("%s was taken from you: %s. Stop working on it.",
			l.task, strings.TrimPrefix(l.why.Error(), string(l.task)+" is no longer yours: "))})
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

// readable calls f until the record of the agent's task can be read. In between the agent
// only takes in input: until somebody has mended the record or freed the task, nobody knows
// whose the task is. The leader is told once, since it may wait for the agent.
func (a *Agent) readable(ctx context.Context, f func() error) error {
	for told := false; ; told = true {
		err := f()
		if !errors.Is(err, team.ErrUnreadable) {
			return err
		}
		if !told {
			a.log.WarnContext(ctx, "waiting until the task can be read", "err", err)
			if a.o.Member.AgentID != team.Leader {
				a.notify(ctx, team.Message{Type: team.MsgMessage, To: team.Leader,
					Content: fmt.Sprintf("I wait until my task can be read again, which a person must repair: %v", err)})
			}
		}
		if err := a.pause(ctx, wants{}, unreadableRest); err != nil {
			return err
		}
	}
}

// mayGoOn returns once the agent may begin its next step. It waits while the membership is
// uncertain. Before a step that counts (a model's turn, a tool that writes) it confirms the
// agent's task, if the last confirmation is older than a sixth of the lease. If the task is
// lost, the next step is cancelled as it begins.
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
	if team.HoldLost(err) {
		if !a.lost.isCut() { // the agent itself put it back, with a call that seemed to fail
			a.revoked(id, err)
		}
		return nil
	}
	return err
}
