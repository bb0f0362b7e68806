package agent

import (
	"context"
	"errors"
	"fmt"

	"agentteam/pkg/journal"
	"agentteam/pkg/model"
	"agentteam/pkg/team"
)

// A task is at fault for a refusal only if the same agent is answered without it (rule 17).

// probeText is all that a probe asks, beside what stands in every request.
const probeText = "Answer with the word ready."

// probe asks the model one line, with the system message and the tools of every request, and
// returns what follows for a task whose request was refused: it is at fault, or the agent parks,
// or rests because the endpoint is away. used is what the probe has cost.
func (a *Agent) probe(ctx context.Context) (next step, used model.Usage, err error) {
	step, done := a.step(ctx)
	defer done()
	reply, err := a.complete(step, []*model.Message{{Role: "user", Content: probeText}}, 0, nil)
	switch {
	case err == nil:
		return declineTask, reply.Usage, nil
	case ctx.Err() != nil:
		return 0, used, ctx.Err()
	case step.Err() != nil:
		return 0, used, errInterrupted
	}
	refusal := asRefusal(err)
	if refusal.Advice == model.TryAgain {
		return rest, refusal.Used, nil
	}
	return park, refusal.Used, nil
}

// decline puts back the task that the endpoint refuses, and that is at fault; or it fails, if
// the models of two members have refused it, or nobody else could take it.
func (a *Agent) decline(ctx context.Context, r *model.Refusal, cause string) error {
	t, _ := a.o.Hand.Task()
	why, window := team.DeclineRefused, 0
	if r.Reason == model.ContextLength {
		why, window = team.DeclineTooLarge, a.gauge.window()
	}
	peers, err := a.o.Peers(ctx)
	if err != nil {
		a.log.WarnContext(ctx, "nobody knows who else could take the task", "task", t.ID, "err", err)
	}
	back, err := a.o.Hand.GiveBack(ctx, t.ID, team.GiveBack{
		Reason: "the model of " + string(a.o.Member.AgentID) + " refuses this task by itself: " + cause, Why: why,
		Alone: err == nil && !peers.Untried(t, a.o.Member.AgentID, window)})
	switch {
	case errors.Is(err, team.ErrUnreadable):
		return a.park(ctx, refuses, cause) // whose the task is, is known before it asks again
	case err != nil && !team.HoldLost(err):
		return err
	case err == nil:
		a.log.WarnContext(ctx, "task refused", "task", t.ID, "status", back.Status, "reason", back.Reason)
	}
	outcome := "given back: refused by your model's endpoint"
	if back.Status == team.Failed {
		outcome = "failed: refused by the model's endpoint"
	}
	next := a.conv.dropped()
	// Without its title, which may be what is not let through.
	next.Past = append(next.Past, past{Task: t.ID, Title: "left out", Outcome: outcome})
	if err := a.renew(ctx, cause, next); err != nil {
		return err
	}
	return a.end(ctx)
}

// giveUseless ends a run whose answers were of no use: they were empty, cut at their limit, or
// calls in a circle. The task goes back, which is an attempt if the agent's run before was of
// use: else the fault is the agent's rather than the task's. After the third such run in a row
// the agent parks.
func (a *Agent) giveUseless(ctx context.Context) (over bool, err error) {
	why, attempt := a.cutShort(), a.state.usable
	a.state = a.state.useless()
	if !a.state.sick() || a.o.Member.AgentID == team.Leader {
		return true, a.giveUp(ctx, why, attempt)
	}
	if err := a.o.Journal.Flush(); err != nil {
		return false, err
	}
	cause := fmt.Sprintf("%d runs in a row came to nothing; the last: %s", a.state.uselessRuns, why)
	if err := a.record(ctx, journal.Record{Kind: journal.Refused, TaskID: a.atWork(), Refusal: &journal.Refusal{
		Advice: string(model.Park), Reason: "no_usable_answer", Cause: cause}}); err != nil {
		return false, err
	}
	if err := a.putBack(ctx, "your answers were of no use", func(id team.TaskID) error {
		_, err := a.o.Hand.GiveBack(ctx, id, team.GiveBack{Reason: why, Attempt: attempt})
		return err
	}); err != nil {
		return false, err
	}
	return false, a.parkUseless(ctx, cause)
}

// parkUseless parks an agent that gives no usable answers. It asks again without what it was at,
// since that may be what it fails at.
func (a *Agent) parkUseless(ctx context.Context, cause string) error {
	a.state.cuts, a.state.warned = 0, false
	if err := a.renew(ctx, cause, a.conv.fresh("", a.gauge.lasting())); err != nil {
		return err
	}
	if err := a.note(ctx, "You have no task now. "+probeText); err != nil {
		return err
	}
	return a.park(ctx, givesNone, cause)
}

// raise lets the next answers of the run be as long as the window leaves, if that is more than
// before: the last one met its limit before it had said a word. It does so once in a run.
func (a *Agent) raise() bool {
	if a.state.raised || a.gauge.spare(a.conv) <= a.gauge.model.Limits(a.gauge.alias).MaxOutput {
		return false
	}
	a.state.raised = true
	a.state.cuts--
	return true
}
