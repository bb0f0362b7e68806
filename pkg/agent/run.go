package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"agentteam/pkg/agent/engine"
	"agentteam/pkg/model"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/team"
	"agentteam/pkg/team/explain"
)

// run is one run: from waking to going idle.
func (a *Agent) run(ctx context.Context) error {
	a.runID, a.state = newRunID(), a.state.newRun()
	a.unused = time.Time{}
	a.o.Heart.Progress() // the agent's pause was not a stall
	a.heartbeat(team.Running)
	a.emit(ctx, team.EventBody{Type: team.RunStarted, ThreadID: string(a.o.Member.AgentID)})
	before := a.conv.Usage

	err := a.turns(ctx)
	switch {
	case errors.Is(err, ErrShutdown), err == nil:
		used := a.conv.Usage
		used.PromptTokens -= before.PromptTokens
		used.CompletionTokens -= before.CompletionTokens
		a.emit(ctx, team.EventBody{Type: team.RunFinished, ThreadID: string(a.o.Member.AgentID),
			Result: engine.JSON(map[string]any{"turns": a.state.turns, "usage": map[string]int{
				"prompt_tokens": used.PromptTokens, "completion_tokens": used.CompletionTokens}})})
	case ctx.Err() == nil && !errors.Is(err, team.ErrSuperseded):
		a.emit(ctx, team.EventBody{Type: team.RunError, Message: err.Error(), Code: string(team.CodeOf(err))})
	}
	if err != nil {
		return err
	}
	// Otherwise it continues immediately with unseen input, or the leader knows: it has the
	// question that the agent waits for.
	h, holds := a.hold()
	wait, waits := a.waiting()
	asked := waits && wait.Awaits == team.Leader && len(a.done) == 0
	if a.leads() || a.conv.Unseen || a.hasLost() || holds && h != a.state.begun {
		return nil
	}
	if a.moved && !asked {
		a.notify(ctx, team.Message{Type: team.MsgIdle, To: team.Leader, Content: a.idleText()})
	}
	a.done, a.moved = nil, false
	return nil
}

// idleText returns the outcome of the run: the leader gets no other notice.
func (a *Agent) idleText() string {
	var b strings.Builder
	for _, o := range a.done {
		fmt.Fprintf(&b, "%s (%s) %s\n", o.Task, o.Title, o.Text)
	}
	b.WriteString(string(a.o.Member.AgentID) + " ")
	if wait, waits := a.waiting(); waits {
		return b.String() + wait.Notice
	}
	return b.String() + "is idle"
}

// remind notes for the model that a member waits for its answer, and that a text is not one; told
// is false if none waits, or all were mentioned before.
func (a *Agent) remind(ctx context.Context) (told bool, err error) {
	for _, b := range a.o.Team.Asking() {
		if a.reminded[b.Asked] || !a.conv.asked(b) {
			continue
		}
		if a.reminded == nil {
			a.reminded = map[string]bool{}
		}
		a.reminded[b.Asked] = true
		if b.State == team.WaitingApproval {
			return true, a.note(ctx, fmt.Sprintf("%s waits for your decision on its plan %s (%q), and your text is none. Decide with approve_plan.", b.AgentID, b.Asked, b.About))
		}
		return true, a.note(ctx, fmt.Sprintf("Your text is not sent to %s, which waits for your answer to mail %s (%q). Answer it with send_message, or end your turn again if there is nothing to say.",
			b.AgentID, b.Asked, b.About))
	}
	return false, nil
}

// overviewWithin bounds the read of the team's state before a turn.
const overviewWithin = time.Second

// noteOverview adds the team's state as the newest input of the next turn, if it has changed since
// it was last shown.
func (a *Agent) noteOverview(ctx context.Context) error {
	look, done := context.WithTimeout(ctx, overviewWithin)
	o, err := a.o.Team.Overview(look)
	done()
	if err != nil {
		a.log.DebugContext(ctx, "no look at the team before the turn", "err", err)
		return nil
	}
	text := overviewText(o)
	if text == a.conv.Overview || a.conv.Overview == "" && text == overviewText(explain.Overview{}) {
		return nil
	}
	return a.engine.Enqueue(ctx, journal.Record{Kind: journal.Overview, Text: text})
}

// takeMode applies the mode that a person has set.
func (a *Agent) takeMode() {
	if a.o.Mode == nil {
		return
	}
	if system, t := a.o.Mode(); system != a.o.System {
		a.o.System, a.o.Tools = system, t
		a.engine.Instruct(system, t)
	}
}

func overviewText(o explain.Overview) string { return "[Team] " + o.String() }

// turns asks the model and runs its tools until it has nothing more to do.
func (a *Agent) turns(ctx context.Context) error {
	for {
		// Before mail is taken in, which then wakes the agent again.
		a.checkProgress(ctx)
		if over, err := a.act(ctx, a.state.beforeTurn(a.o.MaxTurns, a.mayStay(), a.conv.Circles())); over || err != nil {
			return err
		}
		if err := a.drain(ctx); err != nil {
			return err
		}
		a.takeMode()
		if err := a.engine.MakeRoom(ctx); err != nil {
			if over, err := a.awaitsBudget(ctx, err); !over || err != nil {
				return err
			}
			continue
		}
		if err := a.noteFolders(ctx); err != nil {
			return err
		}
		if err := a.noteOverview(ctx); err != nil {
			return err
		}
		reply, err := a.ask(ctx)
		var refusal *model.Refusal
		var over bool
		switch {
		case errors.Is(err, engine.ErrInterrupted): // check the changes and ask again
		case errors.As(err, &refusal) && refusal.OverBudget:
			_, err = a.awaitsBudget(ctx, err)
		case errors.As(err, &refusal):
			over, err = a.refused(ctx, refusal)
		case err == nil:
			over, err = a.follow(ctx, reply)
		}
		if over || err != nil && !errors.Is(err, engine.ErrInterrupted) {
			return err
		}
	}
}

// ask gets one complete answer of the model. Errors: *model.Refusal; [engine.ErrInterrupted].
func (a *Agent) ask(ctx context.Context) (model.Reply, error) {
	reply, err := a.engine.Turn(ctx, a.state.raised)
	a.telling.Wait()
	if err != nil {
		return reply, err
	}
	parked := a.state.suspended > 0
	a.state = a.state.answered(reply)
	a.heartbeat(team.Running)
	if reply.Message.Content != "" {
		a.announced.Store(&reply.Message.Content)
	}
	a.able.Store(a.conv.Able)
	if parked && a.state.suspended == 0 {
		a.log.InfoContext(ctx, "the model answers again")
		a.o.Team.Parked(ctx, "")
	}
	return reply, nil
}

// follow acts on an answer of the model; over reports whether that ended the run.
func (a *Agent) follow(ctx context.Context, reply model.Reply) (over bool, err error) {
	calls := reply.Message.ToolCalls
	if len(calls) > 0 {
		last, failed, err := a.engine.Call(ctx, calls)
		if err == nil {
			err = a.answers(ctx)
		}
		if err == nil && reply.Written != "" && !reply.Fenced && a.state.written <= maxWritten {
			err = a.noteWritten(ctx, reply.Written)
		}
		switch {
		case err != nil:
			return false, err
		case a.state.ended:
			return true, a.end(ctx)
		case failed:
			return false, nil
		}
		return a.endsWith(ctx, last)
	}
	t, holds := a.o.Slot.Task()
	waits := a.conv.Await != nil && a.waits() // else the awaited answer is not about this task
	switch {
	case a.state.suspended > 0: // it is parked, and the answer is not usable
		return false, a.parkUseless(ctx, a.conv.Parked.Cause)
	case reply.Written != "" && (holds || !reply.Fenced) && (a.state.written <= maxWritten || holds && !a.leads()):
		return a.written(ctx, reply.Written)
	case engine.CutOff(reply) && engine.Empty(reply) && a.raise():
		return false, a.note(ctx, "Your last answer was cut at the output limit before it said anything. The limit is higher now. Think shorter, and answer.")
	case engine.CutOff(reply):
		return false, a.note(ctx, "Your last answer was cut at the output limit; tool calls in it were not run. Go on in smaller steps.")
	case engine.Empty(reply) && holds && !waits:
		return false, a.note(ctx, "Your last answer was empty. Go on with "+string(t.ID)+".")
	}
	next := a.state.afterText(holding{t.ID, t.Epoch}, holds, waits, a.o.Jobs.Waits())
	if next == goIdle {
		if told, err := a.remind(ctx); told || err != nil {
			return false, err
		}
	}
	return a.act(ctx, next)
}

// written handles a call that the model wrote as text, which was not run: the model is notified,
// and an agent whose model keeps doing it parks.
func (a *Agent) written(ctx context.Context, name string) (over bool, err error) {
	if a.state.written <= maxWritten {
		return false, a.noteWritten(ctx, name)
	}
	a.state.written = 0
	if err := a.o.Journal.Flush(); err != nil {
		return false, err
	}
	cause := fmt.Sprintf("its model writes calls of tools, such as %s, as text, and makes none", name)
	return false, a.stopUseless(ctx, cause, cause, false)
}

func (a *Agent) noteWritten(ctx context.Context, name string) error {
	return a.note(ctx, fmt.Sprintf("You wrote a call of %s as text, and it was not run. Make it as a call of the tool.", name))
}

// endsWith ends the run after a call that needs no further turn: it has completed the task, awaits
// an answer, or rests; no call of the turn has failed, and no input has arrived. Another turn would
// only answer "Done.".
func (a *Agent) endsWith(ctx context.Context, last journal.ToolResult) (over bool, err error) {
	_, holds := a.hold()
	done := last.Outcome != nil && !holds && !a.leads()
	if !done && !a.state.waits && (last.Await == nil || !a.waits()) {
		return false, nil
	}
	before := len(a.conv.Messages)
	if err := a.drain(ctx); err != nil {
		return false, err
	}
	if len(a.conv.Messages) != before || a.conv.Messages[before-1].Role == "user" { // mail, or the next task
		return false, nil
	}
	return true, a.end(ctx)
}

// act performs a step of the state between turns.
func (a *Agent) act(ctx context.Context, s step) (over bool, err error) {
	t, holds := a.o.Slot.Task()
	switch s {
	case goIdle:
		return true, a.end(ctx)
	case nudge:
		a.state = a.state.reminded(holding{t.ID, t.Epoch})
		if wait, waits := a.waiting(); waits {
			return false, a.note(ctx, fmt.Sprintf("You stopped, but %s (%s) is still in progress and yours. If it waits for %s, which runs in the background, end your turn again: you are told of its end. Else go on working.", t.ID, neutral(t.Title), neutral(wait.About)))
		}
		return false, a.note(ctx, fmt.Sprintf(
			"You stopped, but %s (%s) is still in progress and yours. Go on working; or with update_task complete it (with a result_summary) or give it back (status \"pending\", with a reason); or ask somebody with send_message and await_reply.", t.ID, neutral(t.Title)))
	case remark:
		a.state.noted = true
		return false, a.note(ctx, fmt.Sprintf("You have had %d of %d turns in this run. Bring what you are at to an end; after the last turn your task is given back.", a.state.turns, a.o.MaxTurns))
	case report:
		a.state.reported = true
		a.reportStill(ctx)
	case warn:
		a.state.warned = true
		return false, a.note(ctx, "You make the same calls again and again, and they give the same results. Do something else, or end your turn: you are woken when something changes."+atTask(holds, "If you cannot go on, release your task with the reason."))
	case giveBack:
		return true, a.giveUp(ctx, a.cutShort(), true)
	case giveUseless:
		return a.giveUseless(ctx)
	}
	return false, nil
}

func atTask(holds bool, text string) string {
	if !holds {
		return ""
	}
	return " " + text
}

// cutShort returns the reason why a run is ended by force.
func (a *Agent) cutShort() string {
	switch {
	case a.o.MaxTurns > 0 && a.state.turns >= a.o.MaxTurns:
		return fmt.Sprintf("%s reached the limit of %d turns in one run", a.o.Member.AgentID, a.state.turns)
	case a.state.still >= a.mayStay():
		return fmt.Sprintf("%s made %d turns without progress", a.o.Member.AgentID, a.state.still)
	case a.state.cuts >= maxCuts:
		return fmt.Sprintf("%s gave %d answers in a row that were cut or empty", a.o.Member.AgentID, a.state.cuts)
	case a.state.warned && a.conv.Circles():
		return fmt.Sprintf("%s went in circles: the same calls with the same results", a.o.Member.AgentID)
	}
	return fmt.Sprintf("%s went idle without completing it", a.o.Member.AgentID)
}

// giveUp ends the run by force. The task goes back to the board, which may count as an attempt. A
// task that arrived after the last model call is kept for one more run, because the model has not
// seen it, but only once in a row: a model that keeps taking and dropping tasks must not loop.
func (a *Agent) giveUp(ctx context.Context, reason string, attempt bool) error {
	a.state = a.state.moves() // else the next run would end like this one, before its first turn
	if err := a.o.Journal.Flush(); err != nil {
		return err
	}
	if t, ok := a.o.Slot.Task(); ok {
		if a.state.begun != (holding{t.ID, t.Epoch}) && !a.state.spared {
			a.state.spared = true
			return nil
		}
		switch _, err := a.o.Slot.GiveBack(ctx, t.ID, team.GiveBack{Freed: team.Freed{Reason: reason, Attempt: attempt}}); {
		case errors.Is(err, team.ErrUnreadable):
			// The next run begins once it can be read: it may still be the agent's.
			return a.note(ctx, fmt.Sprintf("%s was to be put back, which cannot be done now: %v.", t.ID, err))
		case team.HoldLost(err):
			if err := a.noteLost(ctx); err != nil {
				return err
			}
			if _, holds := a.hold(); holds { // another task has come meanwhile
				return nil
			}
		case err != nil:
			return err
		default:
			a.log.WarnContext(ctx, "task released", "task", t.ID, "reason", reason)
			if err := a.note(ctx, string(t.ID)+" was released: "+reason+"."); err != nil {
				return err
			}
		}
	}
	return a.end(ctx)
}

// end records that a run is over.
func (a *Agent) end(ctx context.Context) error {
	a.state, a.moved = a.state.over(), a.moved || a.conv.Moved
	return a.engine.Record(ctx, journal.Record{Kind: journal.End})
}

// note adds a note of the runtime to the conversation.
func (a *Agent) note(ctx context.Context, text string) error {
	return a.engine.Record(ctx, journal.Record{Kind: journal.Note, Text: a.o.Dialect.Say(text)})
}

// outcome returns the outcome of a task in a line.
func outcome(t team.Task) string {
	text := string(t.Status)
	if t.Status == team.Pending {
		text = "given back"
	}
	for _, s := range []string{t.ResultSummary, t.Reason} {
		if s != "" {
			return text + ": " + engine.Head(team.OneLine(s), 400)
		}
	}
	return text
}
