package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"agentteam/pkg/board"
	"agentteam/pkg/broker"
	"agentteam/pkg/journal"
	"agentteam/pkg/model"
	"agentteam/pkg/team"
	"agentteam/pkg/tool"
)

// run is one run: from waking to going idle.
func (a *Agent) run(ctx context.Context) error {
	a.runID, a.ended = newRunID(), false
	a.beat(team.Running)
	a.emit(ctx, team.EventBody{Type: team.RunStarted, ThreadID: string(a.o.Member.AgentID)})
	before := a.conv.usage

	turns, err := a.turns(ctx)
	switch {
	case errors.Is(err, ErrShutdown), err == nil:
		used := a.conv.usage
		used.PromptTokens -= before.PromptTokens
		used.CompletionTokens -= before.CompletionTokens
		a.emit(ctx, team.EventBody{Type: team.RunFinished, ThreadID: string(a.o.Member.AgentID),
			Result: asJSON(map[string]any{"turns": turns, "usage": used})})
	case ctx.Err() == nil && !errors.Is(err, errRefused) && !errors.Is(err, journal.ErrSuperseded):
		a.emit(ctx, team.EventBody{Type: team.RunError, Message: err.Error(), Code: string(team.CodeOf(err))})
	}
	if err != nil && !errors.Is(err, errRefused) {
		return err
	}
	// Else it goes on at once, with what it has yet to hear of.
	if h, holds := a.hold(); a.o.Member.AgentID != team.Leader && !a.conv.unseen && !a.lost.any() && (!holds || h == a.begun) {
		a.notify(ctx, team.Message{Type: team.MsgIdle, To: team.Leader, Content: a.idleText()})
	}
	return nil
}

func (a *Agent) idleText() string {
	if a.waits() {
		return fmt.Sprintf("%s waits for an answer from %s", a.o.Member.AgentID, a.conv.await.From)
	}
	return string(a.o.Member.AgentID) + " is idle"
}

// turns asks the model and runs its tools until it has nothing more to do, and
// returns how many turns that took.
func (a *Agent) turns(ctx context.Context) (n int, err error) {
	var nudged hold
	for {
		if n == a.o.MaxTurns { // before mail is taken in, which then wakes the agent again
			return n, a.giveUp(ctx, fmt.Sprintf("%s reached the limit of %d turns in one run", a.o.Member.AgentID, n))
		}
		if err := a.drain(ctx); err != nil {
			return n, err
		}
		reply, err := a.ask(ctx)
		switch {
		case errors.Is(err, errAway):
			a.beat(team.WaitingModel)
			if err := a.pause(ctx, modelRest); err != nil {
				return n, err
			}
			continue
		case errors.Is(err, errInterrupted):
			continue
		case err != nil:
			return n, err
		}
		n++
		switch {
		case len(reply.Message.ToolCalls) > 0:
			if err := a.callTools(ctx, reply.Message.ToolCalls); err != nil {
				return n, err
			}
			if a.ended {
				return n, a.end(ctx)
			}
			continue
		case reply.FinishReason == "length":
			if err := a.record(ctx, journal.Record{Kind: journal.Note, Text: "Your last answer was cut at the output limit; tool calls in it were not run. Go on in smaller steps."}); err != nil {
				return n, err
			}
			continue
		}
		// Text only: the agent would go idle. It may not with a task in its hand,
		// unless it waits for an answer (rule 11).
		t, holds := a.o.Hand.Task()
		held := hold{t.ID, t.Epoch}
		switch {
		case !holds, a.conv.await != nil, held != a.begun: // the last came while the model answered, and is told next
			return n, a.end(ctx)
		case held == nudged:
			return n, a.giveUp(ctx, fmt.Sprintf("%s went idle without completing it", a.o.Member.AgentID))
		}
		nudged = held
		if err := a.record(ctx, journal.Record{Kind: journal.Note, Text: fmt.Sprintf(
			"You stopped, but %s (%s) is still in progress and yours. Go on working; or complete it with update_task and a result_summary; or release it with release_task; or ask somebody with send_message and await_reply.", t.ID, t.Title)}); err != nil {
			return n, err
		}
	}
}

// giveUp ends the run by force: the task, if there is one, goes back to the board
// and that counts as an attempt. With a task that has come since the model was last asked,
// another run begins; but not a second time in a row, since a model that takes and
// releases tasks might go on for ever.
func (a *Agent) giveUp(ctx context.Context, reason string) error {
	if t, ok := a.o.Hand.Task(); ok {
		if a.begun != (hold{t.ID, t.Epoch}) && !a.spared {
			a.spared = true
			return nil
		}
		switch _, err := a.o.Hand.Release(ctx, t.ID, reason, true); {
		case errors.Is(err, broker.ErrUnreadable):
			// The next run begins once it can be read: it may still be the agent's.
			return a.record(ctx, journal.Record{Kind: journal.Note, Text: fmt.Sprintf("%s was to be put back, which cannot be done now: %v.", t.ID, err)})
		case board.Lost(err):
			if err := a.noteLost(ctx); err != nil {
				return err
			}
			if _, holds := a.hold(); holds { // another, which has come meanwhile
				return nil
			}
		case err != nil:
			return err
		default:
			a.log.WarnContext(ctx, "task released", "task", t.ID, "reason", reason)
			if err := a.record(ctx, journal.Record{Kind: journal.Note, Text: string(t.ID) + " was released: " + reason + "."}); err != nil {
				return err
			}
		}
	}
	return a.end(ctx)
}

// end records that a run is over.
func (a *Agent) end(ctx context.Context) error {
	a.spared = false
	return a.record(ctx, journal.Record{Kind: journal.End})
}

// What ask may come back with besides an answer.
var (
	errAway        = errors.New("the model is away")
	errInterrupted = errors.New("the model was interrupted, for the task may be the agent's no more")
)

// ask gets one complete answer of the model, records it, and tells of it. Errors:
// errAway (try again later), errInterrupted (look what has changed and ask again),
// errRefused.
func (a *Agent) ask(ctx context.Context) (model.Reply, error) {
	a.begun, _ = a.hold()
	a.beat(team.Running)
	if err := a.mayGoOn(ctx, true); err != nil {
		return model.Reply{}, err
	}
	a.begun, _ = a.hold() // another may have come while it waited
	step, done := a.step(ctx)
	reply, err := a.complete(step)
	interrupted := step.Err() != nil
	done()
	switch {
	case err == nil:
		return reply, a.recordTurn(ctx, reply)
	case ctx.Err() != nil:
		return reply, ctx.Err()
	case interrupted:
		return reply, errInterrupted
	}
	a.log.WarnContext(ctx, "model call failed", "err", err)
	a.emit(ctx, team.EventBody{Type: team.RunError, Message: err.Error(), Code: string(team.CodeOf(err))})
	if !errors.Is(err, team.Unavailable) {
		return reply, a.refused(ctx, err)
	}
	return reply, errAway
}

// pause lets some time go by, in the middle of a run. What comes meanwhile is taken in:
// it may be a request to shut down. The loss of a task ends it, and is noted by whoever
// begins the next turn.
func (a *Agent) pause(ctx context.Context, d time.Duration) error {
	rested := time.After(d)
	lost := a.lost.signal
	if a.lost.any() { // which has ended an earlier one, or was not heard of in time
		lost = nil
	}
	for {
		var err error
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-rested:
			return nil
		case d := <-a.o.Mail:
			err = a.receive(ctx, d)
		case t := <-a.o.Given:
			err = a.given(ctx, t)
		case <-lost:
			if a.lost.any() {
				a.lost.wake()
				return nil
			}
		}
		if err != nil {
			return err
		}
	}
}

// maxCause is how much of a model's refusal is told, in characters: an endpoint may
// answer with a whole page.
const maxCause = 1000

// errRefused ends a run whose model refuses for good.
var errRefused = errors.New("the model refuses")

// refused gives the task back, so that the board's limit of attempts ends what
// nobody can do, and tells whoever can mend it.
func (a *Agent) refused(ctx context.Context, cause error) error {
	err := a.giveUp(ctx, "the model of "+string(a.o.Member.AgentID)+" refuses: "+team.Clean(cause.Error(), maxCause))
	if a.o.Broken != nil {
		a.o.Broken(ctx, cause)
	}
	return cmp.Or(err, errRefused)
}

func (a *Agent) complete(ctx context.Context) (model.Reply, error) {
	if a.o.Model == nil {
		return model.Reply{}, team.Errorf(team.InvalidArgument, "no model is configured for %s", a.o.Member.AgentID).
			WithHint("set OPENAI_MODEL, and OPENAI_API_KEY or OPENAI_BASE_URL, for the leader and teammate processes")
	}
	messages := append([]*model.Message{{Role: "system", Content: a.o.System}}, a.conv.messages...)
	specs := a.o.Tools.Specs()
	tools := make([]model.ToolSpec, len(specs))
	for i, s := range specs {
		tools[i] = model.ToolSpec{Name: s.Name, Description: s.Description, Schema: s.Schema}
	}
	return a.o.Model.Complete(ctx, model.Request{Model: a.o.Member.Model, Messages: messages, Tools: tools, MaxTokens: a.o.MaxTokens}, nil)
}

func (a *Agent) recordTurn(ctx context.Context, r model.Reply) error {
	err := a.record(ctx, journal.Record{Kind: journal.Turn, Turn: asJSON(r)})
	if err != nil {
		return err
	}
	a.beat(team.Running)
	id := newRunID()
	if r.Message.Content != "" {
		a.said.Store(&r.Message.Content)
		a.emit(ctx, team.EventBody{Type: team.TextChunk, MessageID: id, Role: "assistant", Delta: r.Message.Content})
	}
	for _, c := range r.Message.ToolCalls {
		a.emit(ctx, team.EventBody{Type: team.ToolCallChunk, MessageID: id, ToolCallID: c.ID, ToolCallName: c.Name, Delta: c.Arguments})
	}
	return nil
}

// callTools runs the calls of a turn one after another and records each result
// before the next call begins.
func (a *Agent) callTools(ctx context.Context, calls []model.ToolCall) error {
	for _, c := range calls {
		if err := a.mayGoOn(ctx, a.o.Tools.Writes(c.Name)); err != nil {
			return err
		}
		step, done := a.step(ctx)
		res := a.o.Tools.Run(step, tool.Call{ID: c.ID, Name: c.Name, Arguments: c.Arguments})
		done()
		if ctx.Err() != nil {
			return ctx.Err() // what it returned is of the interruption; the successor says so
		}
		r := journal.ToolResult{CallID: c.ID, Name: c.Name, Content: res.Content, IsError: res.IsError}
		if w, ok := res.Value.(Awaiter); ok {
			r.Await = w.Awaits()
		}
		if e, ok := res.Value.(Ender); ok && e.EndsRun() {
			a.ended = true
		}
		if err := a.record(ctx, journal.Record{Kind: journal.Result, Result: &r}); err != nil {
			return err
		}
		a.beat(team.Running)
		a.emit(ctx, team.EventBody{Type: team.ToolCallResult, MessageID: newRunID(), ToolCallID: c.ID, ToolCallName: c.Name, Role: "tool", Content: res.Content})
	}
	return nil
}
