package agent

import (
	"context"
	"errors"
	"time"

	"agentteam/pkg/agent/engine"
	"agentteam/pkg/model"
	"agentteam/pkg/team"
)

// refused handles a refusal; over reports whether it ended the run. A refusal never changes a
// task's attempts, and counts against a task only if the agent is answered without it.
func (a *Agent) refused(ctx context.Context, r *model.Refusal) (over bool, err error) {
	_, holds := a.hold()
	p := situation{leader: a.leads(), first: a.conv.GoalTurns == 0, holds: holds, large: a.engine.Mostly(a.taskText()), next: a.engine.NextRung(r.Reason)}
	a.state = a.state.refused(r, a.conv.Rung)
	s := a.state.afterRefusal(r, p)
	blamed := s == blame
	if blamed {
		var used model.Usage
		if s, used, err = a.probe(ctx); err != nil {
			return false, err
		}
		r.Used = r.Used.Add(used)
	}
	cause := engine.Cause(r)
	if a.state.wasteful(r) {
		cause += "; " + a.state.wasted()
	}
	if err := a.engine.Refused(ctx, r, adviceOf(s, r), cause); err != nil {
		return false, err
	}
	switch s {
	case wait:
		a.engine.Trouble = team.Clean(cause, engine.MaxTrouble)
		a.heartbeat(team.WaitingModel)
		return false, a.pause(ctx, wants{}, a.state.outageBackoff(r))
	case shorten:
		return false, a.engine.Shorten(ctx, r, p.next)
	case declineTask:
		return true, a.decline(ctx, r, cause)
	case endGoal:
		a.o.Team.EndGoal(ctx, cause)
		return true, a.end(ctx)
	}
	if blamed { // the agent does not ask about the task again once another member holds it
		more, err := a.drop(ctx, cause, a.conv.dropped())
		if err == nil && !more && !a.holds() { // else the conversation has no input
			err = a.note(ctx, "You have no task now. "+engine.ProbeText)
		}
		if err != nil {
			return false, err
		}
	}
	if a.state.wasteful(r) {
		return false, a.park(ctx, breaksOff, cause)
	}
	return false, a.park(ctx, refuses, cause)
}

// adviceOf returns the advice that the journal records for a refusal: park if the agent parks, else
// the model client's advice.
func adviceOf(s step, r *model.Refusal) model.Advice {
	if s == park {
		return model.Park
	}
	return r.Advice
}

// Notices to the leader about an agent that parks.
const (
	refuses   = "My model refuses to answer"
	givesNone = "My model gives no usable answers"
	breaksOff = "My model's answers break off or do not come"
)

// park waits while the endpoint refuses the agent, or gives no usable answers, and returns when it
// is time to ask again. The task goes back to the board. The leader is notified once, until a turn
// has succeeded again.
func (a *Agent) park(ctx context.Context, what, cause string) error {
	d := a.state.parkedBackoff()
	a.state.suspended++
	first := a.state.suspended == 1 // of this incarnation
	if first {
		a.log.WarnContext(ctx, "no usable answer from the model; waiting until that is repaired", "err", cause)
		a.o.Team.Parked(ctx, cause) // before the task goes back, so that no other task is assigned
	}
	if err := a.release(ctx, cause); err != nil {
		return err
	}
	retry := time.Now().Add(d).UTC()
	a.engine.Trouble = "" // its record has the cause
	a.heartbeatUntil(team.WaitingModel, &retry)
	if first && !a.leads() {
		// An earlier process may have sent it: the leader reads one message of an id.
		a.notify(ctx, team.Message{ID: "parked-" + a.conv.Episode, Type: team.MsgMessage, To: team.Leader,
			Content: what + ", so I cannot work until somebody mends that. I hold no task, take none, and ask again by myself. The cause: " + cause})
	}
	err := a.pause(ctx, wants{retry: true}, d)
	a.o.Heart.Progress() // a parked agent has not stalled
	return err
}

// release gives the task back for the next holder, without an attempt: the task is not at fault.
func (a *Agent) release(ctx context.Context, cause string) error {
	return a.putBack(ctx, "your model gave no usable answer", func(id team.TaskID) error {
		_, err := a.o.Slot.Release(ctx, id, team.Freed{Reason: "the model of " + string(a.o.Member.AgentID) + " gives no usable answer: " + cause})
		return err
	})
}

// putBack gives the task back by calling back, and notes the reason for the model; it does nothing
// if the agent holds none.
func (a *Agent) putBack(ctx context.Context, why string, back func(team.TaskID) error) error {
	t, holds := a.o.Slot.Task()
	if !holds {
		return nil
	}
	err := back(t.ID)
	switch {
	case errors.Is(err, team.ErrUnreadable):
		return nil // it may still be the agent's, which is determined before it asks again
	case team.HoldLost(err):
		return a.noteLost(ctx)
	case err != nil:
		return err
	}
	return a.note(ctx, string(t.ID)+" was given back, since "+why+". Do not go on with it. You get the next task by itself.")
}
