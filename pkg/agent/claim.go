package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"agentteam/pkg/agent/engine"
	"agentteam/pkg/shutdown"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/team"
)

// loss is the cause of an interrupt: a task was taken from the agent while it worked.
type loss struct {
	task  team.Task // as it was held
	why   error
	noted bool // the model was notified; used by the agent's goroutine only
}

func (*loss) Error() string { return "the task was taken away" }

// revoked is called by the slot when the agent's task was taken away. It cancels the running step
// and skips the remaining tool calls of this turn. Steps begin again once the model was notified.
func (a *Agent) revoked(t team.Task, why error) {
	a.log.Warn("task lost", "task", t.ID, "err", why)
	a.o.Jobs.EndTask(t.ID, fmt.Errorf("%s was taken from its owner", t.ID))
	l := &loss{task: t, why: why}
	a.engine.Interrupt(engine.Interrupt{Cause: l, Any: true, Over: func() bool { return l.noted }})
	a.wake()
}

// JobsEndWithin bounds the end of jobs: of a tool call, and of records that are not in the journal
// yet.
const JobsEndWithin = shutdown.Tools + shutdown.Journal

// beforeRelease is called by the slot before it releases the agent's task. It ends the jobs of the
// task first: the next holder may work in the same folder.
func (a *Agent) beforeRelease(ctx context.Context, id team.TaskID) {
	a.endJobs(ctx, id, fmt.Errorf("its owner gives %s up", id))
}

// endJobs ends the jobs of a task and waits for that, up to JobsEndWithin.
func (a *Agent) endJobs(ctx context.Context, id team.TaskID, why error) {
	wait := a.o.Jobs.EndTask(id, why)
	ctx, cancel := context.WithTimeout(ctx, JobsEndWithin)
	defer cancel()
	if err := wait(ctx); err != nil {
		a.log.WarnContext(ctx, "not all that was begun for the task has ended yet", "task", id, "err", err)
	}
}

// wake signals that a task is lost. It does not block.
func (a *Agent) wake() {
	select {
	case a.losses <- struct{}{}:
	default:
	}
}

// lost returns the losses of this turn.
func (a *Agent) lost() (all []*loss) {
	for _, i := range a.engine.Interrupts() {
		if l, ok := i.Cause.(*loss); ok {
			all = append(all, l)
		}
	}
	return all
}

// hasLost reports whether the model was not yet notified of a loss.
func (a *Agent) hasLost() bool {
	return slices.ContainsFunc(a.lost(), func(l *loss) bool { return !l.noted })
}

// hold returns the agent's current hold; ok is false if it holds no task.
func (a *Agent) hold() (h holding, ok bool) {
	t, ok := a.o.Slot.Task()
	return holding{t.ID, t.Epoch}, ok
}

func (a *Agent) holds() bool {
	_, ok := a.o.Slot.Task()
	return ok
}

// noteLost notifies the model of the tasks that were taken away. A call that found the loss may
// have claimed another task, or the same one again, and been cancelled before its result was
// recorded. Then the model is notified of that task as well.
func (a *Agent) noteLost(ctx context.Context) error {
	told := false
	for _, l := range a.lost() {
		if l.noted {
			continue
		}
		told, a.moved = true, true
		a.storeLost(l)
		err := a.engine.Record(ctx, journal.Record{Kind: journal.Note, Text: fmt.Sprintf("%s was taken from you: %s. Stop working on it.",
			l.task.ID, strings.TrimPrefix(l.why.Error(), string(l.task.ID)+" is no longer yours: "))})
		if err != nil {
			return err
		}
	}
	if t, holds := a.o.Slot.Task(); told && holds && !a.conv.notified(t) {
		return a.begin(ctx, t)
	}
	return nil
}

// storeLost ends the jobs of a task that was taken away and then has its files stored, also if the
// loop is about to end.
func (a *Agent) storeLost(l *loss) {
	l.noted = true
	a.endJobs(a.writes, l.task.ID, fmt.Errorf("%s was taken from its owner", l.task.ID))
	a.o.Team.Lost(l.task)
}

// unreadableBackoff is how long the agent waits before it reads its own unreadable task again.
const unreadableBackoff = 5 * time.Second

// readable calls f until the record of the agent's task can be read. In between the agent only
// takes in input: until a person repairs the record or frees the task, its holder is unknown. The
// leader is notified once, since it may wait for the agent.
func (a *Agent) readable(ctx context.Context, f func() error) error {
	for told := false; ; told = true {
		err := f()
		if !errors.Is(err, team.ErrUnreadable) {
			return err
		}
		if !told {
			a.log.WarnContext(ctx, "waiting until the task can be read", "err", err)
			if !a.leads() {
				a.notify(ctx, team.Message{Type: team.MsgMessage, To: team.Leader,
					Content: fmt.Sprintf("I wait until my task can be read again, which a person must repair: %v", err)})
			}
		}
		if err := a.pause(ctx, wants{}, unreadableBackoff); err != nil {
			return err
		}
	}
}

// mayGoOn returns once the agent may begin its next step. It waits while the membership is
// uncertain. Before a step that counts (a model's turn, a tool that writes) it confirms the agent's
// task if the last confirmation is older than a sixth of the lease. If the task is lost, the next
// step is cancelled as it begins.
func (a *Agent) mayGoOn(ctx context.Context, counts bool) error {
	var t team.Task
	err := a.readable(ctx, func() error {
		if err := a.o.Heart.Certain(ctx); err != nil {
			return err
		}
		holds := false
		if t, holds = a.o.Slot.Task(); !holds || !counts || time.Since(a.o.Slot.Confirmed()) < a.o.Lease/6 {
			return nil
		}
		_, err := a.o.Slot.Confirm(ctx, t.ID)
		return err
	})
	if team.HoldLost(err) {
		if len(a.lost()) == 0 { // the agent itself put it back, with a call that seemed to fail
			a.revoked(t, err)
		}
		return nil
	}
	return err
}

// taskText returns the block that describes the held task; "" if the agent holds none.
func (a *Agent) taskText() string {
	t, holds := a.o.Slot.Task()
	switch {
	case !holds:
		return ""
	case t.ID != a.conv.Task.ID: // it took the task by a call
		return taskBlock(t, nil, team.Inherited{}, newRunID()[18:])
	}
	return a.conv.Block
}
