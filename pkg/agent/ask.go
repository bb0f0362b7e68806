package agent

import (
	"context"
	"errors"
	"sync"
	"time"

	"agentteam/pkg/journal"
	"agentteam/pkg/model"
	"agentteam/pkg/team"
)

// errInterrupted ends a model call because the agent may no longer hold its task, or urgent
// mail came.
var errInterrupted = errors.New("the model was interrupted")

// ask gets one complete answer of the model and records it. Errors: *model.Refusal;
// errInterrupted (look what has changed and ask again).
func (a *Agent) ask(ctx context.Context) (model.Reply, error) {
	a.state.begun, _ = a.hold()
	a.beat(team.Running)
	if err := a.mayGoOn(ctx, true); err != nil {
		return model.Reply{}, err
	}
	a.state.begun, _ = a.hold() // another may have come while it waited
	a.changed = a.o.ModelChanged()
	step, done := a.step(ctx)
	step, free := a.urgent.yielding(step)
	id := journal.NewID() // whoever watches the text knows it by the id of its record
	reply, err := a.complete(step, a.conv.Messages, 0, a.speak(id))
	interrupted := step.Err() != nil
	free()
	done()
	switch {
	case err == nil:
		return reply, a.recordTurn(ctx, id, reply)
	case ctx.Err() != nil:
		return reply, ctx.Err()
	case interrupted:
		return reply, errInterrupted
	}
	if u := (unstored{}); errors.As(err, &u) {
		return reply, u.error
	}
	a.log.WarnContext(ctx, "model call failed", "err", err)
	return reply, asRefusal(err)
}

// asRefusal turns any other error of a call into a refusal: then the request could not
// even be made.
func asRefusal(err error) error {
	var r *model.Refusal
	if errors.As(err, &r) {
		return r
	}
	return &model.Refusal{Advice: model.GiveUp, Reason: model.InvalidRequest, Err: err}
}

// complete asks the model what follows on messages, and has its text told by said, which
// may be nil.
func (a *Agent) complete(ctx context.Context, messages []*model.Message, maxTokens int, said *speech) (model.Reply, error) {
	if a.o.Model == nil {
		return model.Reply{}, &model.Refusal{Advice: model.Park, Reason: model.NoEndpoint,
			Err: team.Errorf(team.InvalidArgument, "no model is configured for %s", a.o.Member.AgentID).
				WithHint("set OPENAI_MODEL, and OPENAI_API_KEY or OPENAI_BASE_URL, for the leader and teammate processes")}
	}
	r := a.gauge.request(messages)
	var telling sync.WaitGroup
	defer telling.Wait()
	r.Ready = func() error {
		// A successor must not find a result to be unknown that a model has been told of.
		if err := a.o.Journal.Flush(); err != nil {
			return unstored{err}
		}
		return nil
	}
	r.MaxTokens, r.OnRetry = maxTokens, func(t model.Retry) {
		a.trouble = team.Clean(t.String(), maxTrouble)
		a.beatAgain()
		if t.Tried == 1 { // the beats tell of the others, and a refusal of their end
			telling.Go(func() { a.emit(ctx, retryEvent(t)) })
		}
	}
	var onDelta func(string)
	if said != nil {
		onDelta, r.OnTry = said.add, said.begin
		defer said.end()
	}
	reply, err := a.o.Model.Complete(ctx, r, onDelta)
	if err == nil {
		a.gauge.told(messages, reply.Alias, reply.Usage)
		a.trouble = ""
		a.o.Heart.Progress()
	}
	return reply, err
}

// maxTrouble is how much of a model's trouble a beat tells, in characters.
const maxTrouble = 200

// retryEvent tells whoever watches that the model gives no turn yet, and why.
func retryEvent(r model.Retry) team.EventBody {
	return team.EventBody{Type: team.Retry, Message: team.Clean(r.String(), maxTrouble), Code: string(r.Reason),
		Value: asJSON(team.Retrying{Tried: r.Tried, Of: r.Of, WaitSeconds: r.Wait.Seconds()})}
}

// unstored is why the journal could not store what leads to a request.
type unstored struct{ error }

func (u unstored) Unwrap() error { return u.error }

// recordTurn takes in a turn of the model, under that id. What came before it was stored before
// the model was asked.
func (a *Agent) recordTurn(ctx context.Context, id string, r model.Reply) error {
	parked := a.state.parks > 0
	if err := a.enqueue(journal.Record{ID: id, Kind: journal.Turn, Turn: asJSON(r), TaskID: a.atWork()}); err != nil {
		return err
	}
	a.state = a.state.answered(r)
	a.beat(team.Running)
	if r.Message.Content != "" {
		a.said.Store(&r.Message.Content)
	}
	if parked {
		a.log.InfoContext(ctx, "the model answers again")
		a.o.Parked(ctx, "")
	}
	return nil
}

// refused does what a refusal leads to; over reports whether that ended the run. A refusal
// never changes a task's attempts, and fails a task only if it is refused alone.
func (a *Agent) refused(ctx context.Context, r *model.Refusal) (over bool, err error) {
	a.gauge.learn(r)
	_, holds := a.hold()
	p := situation{leader: a.o.Member.AgentID == team.Leader, first: a.conv.GoalTurns == 0, holds: holds, large: a.gauge.mostly(a.taskText()), next: a.conv.rungAfter(r.Reason)}
	a.state = a.state.refused(r, a.conv.Rung)
	s := a.state.afterRefusal(r, p)
	cause := causeOf(r)
	if a.state.wasteful(r) {
		cause += "; " + a.state.wasted()
	}
	if err := a.record(ctx, journal.Record{Kind: journal.Refused, TaskID: a.atWork(), Refusal: &journal.Refusal{
		Advice: string(adviceOf(s, r)), Reason: string(r.Reason), Cause: cause, Alias: r.Alias, Usage: usageJSON(r.Used)}}); err != nil {
		return false, err
	}
	switch s {
	case rest:
		a.trouble = team.Clean(cause, maxTrouble)
		a.beat(team.WaitingModel)
		return false, a.pause(ctx, wants{}, a.state.outageRest(r))
	case shorten:
		return false, a.shorten(ctx, r, p.next)
	case failTask:
		return true, a.failTask(ctx, cause)
	case endGoal:
		a.o.EndGoal(ctx, cause)
		return true, a.end(ctx)
	}
	return false, a.park(ctx, cause)
}

// adviceOf returns the advice that the journal keeps of a refusal: park if the agent parks,
// else what the model client advised.
func adviceOf(s step, r *model.Refusal) model.Advice {
	if s == park {
		return model.Park
	}
	return r.Advice
}

// maxCause is how much of a model's refusal is told, in characters: an endpoint may
// answer with a whole page.
const maxCause = 1000

// causeOf is a refusal for people, with what they can do about it.
func causeOf(r *model.Refusal) string {
	text := r.Error()
	if hint := team.HintOf(r); hint != "" {
		text += " (" + hint + ")"
	}
	return team.Clean(text, maxCause)
}

// failTask ends the task as failed: the endpoint refuses it alone.
func (a *Agent) failTask(ctx context.Context, cause string) error {
	t, _ := a.o.Hand.Task()
	reason := "the model of " + string(a.o.Member.AgentID) + " refuses this task by itself: " + cause
	if _, err := a.o.Hand.Fail(ctx, t.ID, reason); err != nil && !team.HoldLost(err) {
		return err
	}
	a.log.WarnContext(ctx, "task failed", "task", t.ID, "reason", reason)
	next := a.conv.dropped()
	// Without its title, which may be what is not let through.
	next.Past = append(next.Past, past{Task: t.ID, Title: "left out", Outcome: "failed: refused by the model's endpoint"})
	if err := a.renew(ctx, cause, next); err != nil {
		return err
	}
	return a.end(ctx)
}

// park rests while the endpoint refuses the agent, and returns when it is time to ask
// again. The task goes back to the board. The leader is told once, until a turn has
// succeeded again.
func (a *Agent) park(ctx context.Context, cause string) error {
	d := a.state.parkRest()
	a.state.parks++
	first := a.state.parks == 1 // of this incarnation
	if first {
		a.log.WarnContext(ctx, "the model refuses; waiting until that is mended", "err", cause)
		a.o.Parked(ctx, cause) // before the task goes back, so that no other task is assigned
	}
	if err := a.putBack(ctx, cause); err != nil {
		return err
	}
	retry := time.Now().Add(d).UTC()
	a.trouble = "" // its record tells the cause
	a.beatUntil(team.WaitingModel, &retry)
	if first && a.o.Member.AgentID != team.Leader {
		// A predecessor may have told it: the leader reads one message of an id.
		a.notify(ctx, team.Message{ID: "parked-" + a.conv.Spell, Type: team.MsgMessage, To: team.Leader,
			Content: "My model refuses to answer, so I cannot work until somebody mends that. I hold no task, take none, and ask again by myself. The cause: " + cause})
	}
	err := a.pause(ctx, wants{retry: true}, d)
	a.o.Heart.Progress() // who was parked until now has not stalled
	return err
}

// putBack gives the task back without an attempt: it is not at fault.
func (a *Agent) putBack(ctx context.Context, cause string) error {
	t, holds := a.o.Hand.Task()
	if !holds {
		return nil
	}
	_, err := a.o.Hand.Release(ctx, t.ID, "the model of "+string(a.o.Member.AgentID)+" refuses: "+cause, false)
	switch {
	case errors.Is(err, team.ErrUnreadable):
		return nil // it may still be the agent's, which is known before it asks again
	case team.HoldLost(err):
		return a.noteLost(ctx)
	case err != nil:
		return err
	}
	return a.note(ctx, string(t.ID)+" was given back, since your model's endpoint refused to answer. Do not go on with it. You get the next task by itself.")
}

func usageJSON(u model.Usage) []byte {
	if u == (model.Usage{}) {
		return nil
	}
	return asJSON(u)
}
