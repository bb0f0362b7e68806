package agent

import (
	"context"
	"errors"
	"fmt"

	"agentteam/pkg/agent/engine"
	"agentteam/pkg/model"
	"agentteam/pkg/team"
)

// A task is at fault for a refusal only if the same agent is answered without it (rule 17).

// probe returns the next step for a task whose request was refused: the task is at fault if the
// model answers without it; else the agent parks, or backs off because the endpoint is unavailable.
// used is the cost of the probe.
func (a *Agent) probe(ctx context.Context) (next step, used model.Usage, err error) {
	answers, used, err := a.engine.Probe(ctx)
	if r, refused := errors.AsType[*model.Refusal](err); refused && r.OverBudget {
		_, err := a.awaitsBudget(ctx, err)
		return wait, r.Used, err
	} else if refused {
		if r.Advice == model.TryAgain {
			return wait, used, nil
		}
		return park, used, nil
	}
	if answers {
		return declineTask, used, err
	}
	return park, used, err
}

// decline removes the refused task from the conversation, and the agent continues without it. The
// task goes back with a decline; or it fails, if the models of two members have refused it, or no
// other member could take it.
func (a *Agent) decline(ctx context.Context, r *model.Refusal, cause string) error {
	next := a.conv.dropped()
	if t, holds := a.o.Slot.Task(); holds {
		back, err := a.declined(ctx, t, r, cause)
		switch {
		case errors.Is(err, team.ErrUnreadable):
			return nil // the task's holder is determined before the agent asks again
		case err != nil:
			return err
		}
		outcome := "given back: refused by your model's endpoint"
		if back.Status == team.Failed {
			outcome = "failed: refused by the model's endpoint"
		}
		// Without its title, which the endpoint may refuse.
		next.Past = append(next.Past, past{Task: t.ID, Title: "left out", Outcome: outcome})
	}
	if more, err := a.drop(ctx, cause, next); more || err != nil {
		return err
	}
	return a.end(ctx)
}

// drop continues with a conversation without the agent's work. It lists mail that the model has not
// seen; more reports whether there is any.
func (a *Agent) drop(ctx context.Context, cause string, next *Conversation) (more bool, err error) {
	// Without its words, which the endpoint may refuse.
	if unseen := a.conv.unseenMail(engine.Whole, false); unseen != "" {
		next.Input(a.o.Dialect.Say("What you were at is gone, since your model's endpoint refused it."+unseen+"\nread_mail with an id shows it."), false)
		next.Unseen, next.Ended, more = true, false, true
	}
	a.state.episodes = 0
	return more, a.renew(ctx, cause, next)
}

// declined gives the task back as refused. Its loss is not an error.
func (a *Agent) declined(ctx context.Context, t team.Task, r *model.Refusal, cause string) (team.Task, error) {
	why, window := team.DeclineRefused, 0
	if r.Reason == model.ContextLength {
		why, window = team.DeclineTooLarge, a.engine.Window()
	}
	peers, err := a.o.Team.Peers(ctx)
	if err != nil {
		a.log.WarnContext(ctx, "nobody knows who else could take the task", "task", t.ID, "err", err)
	}
	back, err := a.o.Slot.GiveBack(ctx, t.ID, team.GiveBack{
		Freed: team.Freed{Reason: "the model of " + string(a.o.Member.AgentID) + " refuses this task by itself: " + cause}, Why: why,
		Alone: err == nil && !peers.Untried(t, a.o.Member.AgentID, window)})
	if err == nil {
		a.log.WarnContext(ctx, "task refused", "task", t.ID, "status", back.Status, "reason", back.Reason)
	}
	if team.HoldLost(err) {
		err = nil
	}
	return back, err
}

// giveUseless ends a run without a usable answer: answers were empty, cut at their limit, or
// repeated calls. The task goes back, which is an attempt if the agent's run before was usable:
// else the fault is the agent's rather than the task's. After the third such run in a row the agent
// parks.
func (a *Agent) giveUseless(ctx context.Context) (over bool, err error) {
	why, attempt := a.cutShort(), a.state.usable
	a.state = a.state.useless()
	if !a.state.sick() || a.leads() {
		return true, a.giveUp(ctx, why, attempt)
	}
	if err := a.o.Journal.Flush(); err != nil {
		return false, err
	}
	return false, a.stopUseless(ctx, fmt.Sprintf("%d runs in a row came to nothing; the last: %s", a.state.uselessRuns, why), why, attempt)
}

// stopUseless gives back the task of an agent without usable answers, and parks it.
func (a *Agent) stopUseless(ctx context.Context, cause, why string, attempt bool) error {
	if err := a.engine.Refused(ctx, &model.Refusal{Reason: "no_usable_answer"}, model.Park, cause); err != nil {
		return err
	}
	if err := a.putBack(ctx, "your answers were of no use", func(id team.TaskID) error {
		_, err := a.o.Slot.GiveBack(ctx, id, team.GiveBack{Freed: team.Freed{Reason: why, Attempt: attempt}})
		return err
	}); err != nil {
		return err
	}
	return a.parkUseless(ctx, cause)
}

// parkUseless parks an agent that gives no usable answers. It asks again without its work, since
// the work may be the cause.
func (a *Agent) parkUseless(ctx context.Context, cause string) error {
	a.state.cuts, a.state.warned = 0, false
	if err := a.renew(ctx, cause, a.conv.fresh("", a.engine.Lasting())); err != nil {
		return err
	}
	if err := a.note(ctx, "You have no task now. "+engine.ProbeText); err != nil {
		return err
	}
	return a.park(ctx, givesNone, cause)
}

// raise lets the next answers of the run fill the window, if that is more than before: the last
// answer reached its limit before any text. It does so once in a run.
func (a *Agent) raise() bool {
	if a.state.raised || !a.engine.Spares() {
		return false
	}
	a.state.raised = true
	a.state.cuts--
	return true
}
