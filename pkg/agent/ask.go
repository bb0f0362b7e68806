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
	most := 0
	if a.state.raised {
		most = a.gauge.spare(a.conv)
	}
	reply, err := a.complete(step, a.conv.Messages, most, a.speak(id))
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
func asRefusal(err error) *model.Refusal {
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
	a.able.Store(a.conv.Able)
	if parked && a.state.parks == 0 {
		a.log.InfoContext(ctx, "the model answers again")
		a.o.Parked(ctx, "")
	}
	return nil
}

// refused does what a refusal leads to; over reports whether that ended the run. A refusal
// never changes a task's attempts, and counts against a task only if the agent is answered
// without it.
func (a *Agent) refused(ctx context.Context, r *model.Refusal) (over bool, err error) {
	a.gauge.learn(r)
	_, holds := a.hold()
	p := situation{leader: a.o.Member.AgentID == team.Leader, first: a.conv.GoalTurns == 0, holds: holds, large: a.gauge.mostly(a.taskText()), next: a.conv.rungAfter(r.Reason)}
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
	case declineTask:
		return true, a.decline(ctx, r, cause)
	case endGoal:
		a.o.EndGoal(ctx, cause)
		return true, a.end(ctx)
	}
	if blamed { // the task is not asked about again once it is somebody else's
		if _, err := a.drop(ctx, cause, a.conv.dropped()); err != nil {
			return false, err
		}
	}
	if a.state.wasteful(r) {
		return false, a.park(ctx, breaksOff, cause)
	}
	return false, a.park(ctx, refuses, cause)
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

// What the leader is told of an agent that parks.
const (
	refuses   = "My model refuses to answer"
	givesNone = "My model gives no usable answers"
	breaksOff = "My model's answers break off or do not come"
)

// park rests while the endpoint refuses the agent, or gives no usable answers, and returns when it is time to ask
// again. The task goes back to the board. The leader is told once, until a turn has
// succeeded again.
func (a *Agent) park(ctx context.Context, what, cause string) error {
	d := a.state.parkRest()
	a.state.parks++
	first := a.state.parks == 1 // of this incarnation
	if first {
		a.log.WarnContext(ctx, "no usable answer from the model; waiting until that is mended", "err", cause)
		a.o.Parked(ctx, cause) // before the task goes back, so that no other task is assigned
	}
	if err := a.release(ctx, cause); err != nil {
		return err
	}
	retry := time.Now().Add(d).UTC()
	a.trouble = "" // its record tells the cause
	a.beatUntil(team.WaitingModel, &retry)
	if first && a.o.Member.AgentID != team.Leader {
		// A predecessor may have told it: the leader reads one message of an id.
		a.notify(ctx, team.Message{ID: "parked-" + a.conv.Spell, Type: team.MsgMessage, To: team.Leader,
			Content: what + ", so I cannot work until somebody mends that. I hold no task, take none, and ask again by myself. The cause: " + cause})
	}
	err := a.pause(ctx, wants{retry: true}, d)
	a.o.Heart.Progress() // who was parked until now has not stalled
	return err
}

// release gives the task back, which is not at fault: without an attempt, and for whoever is next.
func (a *Agent) release(ctx context.Context, cause string) error {
	return a.putBack(ctx, "your model gave no usable answer", func(id team.TaskID) error {
		_, err := a.o.Hand.Release(ctx, id, "the model of "+string(a.o.Member.AgentID)+" gives no usable answer: "+cause, false)
		return err
	})
}

// putBack puts the task back by what back does, and tells the agent why; it does nothing if the
// agent holds none.
func (a *Agent) putBack(ctx context.Context, why string, back func(team.TaskID) error) error {
	t, holds := a.o.Hand.Task()
	if !holds {
		return nil
	}
	err := back(t.ID)
	switch {
	case errors.Is(err, team.ErrUnreadable):
		return nil // it may still be the agent's, which is known before it asks again
	case team.HoldLost(err):
		return a.noteLost(ctx)
	case err != nil:
		return err
	}
	return a.note(ctx, string(t.ID)+" was given back, since "+why+". Do not go on with it. You get the next task by itself.")
}

func usageJSON(u model.Usage) []byte {
	if u == (model.Usage{}) {
		return nil
	}
	return asJSON(u)
}
