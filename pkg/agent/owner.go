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

// owner is an agent as its engine sees it: the owner, who knows what the agent holds, the watcher,
// who shows what it does, and the journal and the memory in which all is kept.
type owner struct{ *Agent }

// Leave returns once the agent may begin a step; it makes sure that its task is still its own before
// one that counts.
func (w owner) Leave(ctx context.Context, s engine.Step) error {
	if s != engine.Ask {
		if err := w.answers(ctx); err != nil { // of the call before
			return err
		}
		defer func() { w.before, _ = w.o.Slot.Task() }()
		return w.mayGoOn(ctx, s == engine.Write)
	}
	w.state.begun, _ = w.hold()
	w.beat(team.Running)
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

// Returned notes what a call has led to, for the run and in its result.
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
	w.state.ended, w.state.rests = w.state.ended || e.Ends, e.Rests
	if t := e.Moved; t != nil && w.before.ID != "" && t.ID == w.before.ID && t.Status != team.InProgress {
		r.Outcome = &journal.Outcome{Task: t.ID, Title: t.Title, Text: outcome(*t)}
		w.done, w.state = append(w.done, *r.Outcome), w.state.moves()
	}
}

// maxToolName is how much of a tool's name a beat tells: the model may have made it up.
const maxToolName = 64

// Changed shows which tool runs, "" for none, and how the conversation is.
func (w owner) Changed(tool string) {
	var at *time.Time
	if tool != "" {
		now := time.Now().UTC()
		at = &now
	}
	w.o.Heart.Set(func(b *team.Heartbeat) { b.Tool, b.ToolAt = team.Clean(tool, maxToolName), at })
	w.beatAgain()
}

// Progress notes that the agent has not stalled.
func (w owner) Progress() { w.o.Heart.Progress() }

// Retry shows that the model is tried again. The event outlives the call that is tried.
func (w owner) Retry(r model.Retry) {
	w.beatAgain()
	if r.Tried > 1 { // the beats tell of the others, and a refusal of their end
		return
	}
	w.telling.Go(func() {
		w.emit(w.writes, team.EventBody{Type: team.Retry, Message: team.Clean(r.String(), engine.MaxTrouble), Code: string(r.Reason),
			Value: engine.JSON(team.Retrying{Tried: r.Tried, Of: r.Of, WaitSeconds: r.Wait.Seconds()})})
	})
}

// Append stores a record of this run.
func (w owner) Append(ctx context.Context, r journal.Record) (journal.Record, error) {
	return w.o.Journal.Append(ctx, w.stamped(r))
}

// Enqueue has a record of this run stored, also if the agent's process is asked to stop meanwhile.
func (w owner) Enqueue(_ context.Context, r journal.Record) journal.Record {
	return w.o.Journal.Enqueue(w.writes, w.stamped(r))
}

// Flush returns once all records are stored.
func (w owner) Flush() error { return w.o.Journal.Flush() }

// stamped is a record with its run and, of what the model did, the task that is held.
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

// Kept is what a shorter conversation keeps: the work, the mail that stands and the orders of people.
func (w owner) Kept(c engine.Cut) engine.Kept {
	k := w.conv.kept(c, w.taskText())
	if k.Missing = w.o.Dialect.Say(k.Missing); w.holds() {
		k.Name = "your task"
	}
	return k
}

// Context is the whole conversation with next in place of its messages.
func (w owner) Context(next engine.Conversation, c engine.Cut) json.RawMessage {
	return engine.JSON(w.conv.shorter(next, c))
}
