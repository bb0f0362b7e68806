package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"agentteam/pkg/agent/engine"
	"agentteam/pkg/model"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/team"
	"agentteam/pkg/tool"
)

// owner adapts an agent to its engine: as its [engine.Owner], [engine.Watcher], [engine.Journal]
// and [engine.Memory].
type owner struct{ *Agent }

// Leave returns once the agent may begin a step; before a step that counts it confirms the agent's
// task.
func (w owner) Leave(ctx context.Context, s engine.Step) error {
	if s != engine.Ask {
		if err := w.answers(ctx); err != nil { // of the call before
			return err
		}
		defer func() { w.before, _ = w.o.Slot.Task() }()
		return w.mayGoOn(ctx, s == engine.Write)
	}
	w.state.begun, _ = w.hold()
	w.heartbeat(team.Running)
	if err := w.mayGoOn(ctx, true); err != nil {
		return err
	}
	w.state.begun, _ = w.hold() // another may have come while it waited
	w.changed = w.o.Team.ModelChanged()
	return nil
}

// Within returns the context of a step, which ends when the agent's task may have been taken away.
func (w owner) Within(ctx context.Context) (context.Context, context.CancelFunc) {
	return w.o.Heart.Within(ctx)
}

// Returned records the effects of a call, for the run and in its result.
func (w owner) Returned(e tool.Effects, r *journal.ToolResult) {
	if e.Await != nil {
		await := *e.Await
		await.Task, r.Await = cmp.Or(await.Task, w.before.ID), &await
	}
	r.Verdict, r.Jobs, r.Sent = e.Verdict, e.Jobs, e.Sent
	if e.Touched != "" {
		w.touched = append(w.touched, e.Touched)
	}
	if e.Sent != nil || e.Await != nil || e.Touched != "" && r.Changes && !r.IsError {
		w.state = w.state.moves()
	}
	w.state.ended, w.state.waits = w.state.ended || e.Ends, e.Backoff
	if t := e.Moved; t != nil && w.before.ID != "" && t.ID == w.before.ID && t.Status != team.InProgress {
		r.Outcome = &journal.Outcome{Task: t.ID, Title: t.Title, Text: outcome(*t)}
		w.done, w.state = append(w.done, *r.Outcome), w.state.moves()
	}
}

// maxToolName is how many characters of a tool's name a heartbeat contains: the model may have
// invented it.
const maxToolName = 64

// Changed publishes which tool runs, "" for none, and the conversation's state.
func (w owner) Changed(tool string) {
	var at *time.Time
	if tool != "" {
		now := time.Now().UTC()
		at = &now
	}
	w.o.Heart.Set(func(b *team.Heartbeat) { b.Tool, b.ToolAt = team.Clean(tool, maxToolName), at })
	w.heartbeatAgain()
}

// Progress records that the agent has not stalled.
func (w owner) Progress() { w.o.Heart.Progress() }

// Retry publishes that the model call is retried. The event may be sent after the call.
func (w owner) Retry(r model.Retry) {
	w.heartbeatAgain()
	if r.Tried > 1 { // heartbeats show the others, and a refusal shows their end
		return
	}
	w.telling.Go(func() {
		w.emit(w.writes, team.EventBody{Type: team.Retry, Message: team.Clean(r.String(), engine.MaxTrouble), Code: string(r.Reason),
			Value: engine.JSON(team.Retrying{Tried: r.Tried, Of: r.Of, WaitSeconds: r.Wait.Seconds()})})
	})
}

// Append stores a record with this run's id.
func (w owner) Append(ctx context.Context, r journal.Record) (journal.Record, error) {
	return w.o.Journal.Append(ctx, w.stamped(r))
}

// Enqueue has a record of this run stored, also if the agent's process is asked to stop meanwhile.
func (w owner) Enqueue(_ context.Context, r journal.Record) journal.Record {
	return w.o.Journal.Enqueue(w.writes, w.stamped(r))
}

// Flush returns once all records are stored.
func (w owner) Flush() error { return w.o.Journal.Flush() }

// stamped returns a record with its run and, for records of the model's work, the held task.
func (w owner) stamped(r journal.Record) journal.Record {
	r.RunID = w.runID
	switch r.Kind {
	case journal.Turn, journal.Result, journal.Refused, journal.Compact:
		t, _ := w.o.Slot.Task()
		r.TaskID = t.ID
	}
	return r
}

// Add takes in a record.
func (w owner) Add(r journal.Record) error {
	err := w.conv.Add(r)
	w.noteTaken()
	return err
}

// Kept returns what a shorter conversation keeps: the work, mail that stays valid, and orders of
// people.
func (w owner) Kept(c engine.Cut) engine.Kept {
	k := w.conv.kept(c, w.taskText())
	if k.Missing = w.o.Dialect.Say(k.Missing); w.holds() {
		k.Name = "your task"
	}
	return k
}

// Context returns the whole conversation with next in place of its messages.
func (w owner) Context(next engine.Conversation, c engine.Cut) json.RawMessage {
	return engine.JSON(w.conv.shorter(next, c))
}
