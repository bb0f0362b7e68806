package engine

import (
	"context"
	"fmt"
	"slices"

	"agentteam/pkg/journal"
	"agentteam/pkg/model"
	"agentteam/pkg/team"
	"agentteam/pkg/tool"
)

// maxCalls is how many calls of one turn are run. A model that asks for more has lost its
// way.
const maxCalls = 64

// Call runs the calls of a turn one after another and records their results. It
// returns the last, and whether one has failed by itself. The turn and the results so far are
// stored before a call begins that may change something: a call that only reads may be
// made again by a successor.
func (e *Engine) Call(ctx context.Context, calls []model.ToolCall) (last journal.ToolResult, failed bool, err error) {
	for i, c := range calls {
		pending := e.Interrupts()
		if k := slices.IndexFunc(pending, func(i Interrupt) bool { return i.Skip != "" }); k >= 0 {
			return last, true, e.answer(ctx, calls[i:], team.CallNotRun, pending[k].Skip)
		}
		traits := e.o.Tools.Traits(c.Name)
		if !traits.ReadOnly {
			if err := e.o.Journal.Flush(); err != nil {
				return last, failed, err
			}
		}
		step := Read
		if traits.Writes {
			step = Write
		}
		if err := e.o.Owner.Leave(ctx, step); err != nil {
			return last, failed, err
		}
		if last = tooMany(c); i < maxCalls {
			if last, err = e.call(ctx, c, traits); err != nil {
				return last, failed, err
			}
		}
		result := last
		failed = failed || last.IsError && last.Await == nil // of a call that waits for leave nothing is to be said
		if err := e.Enqueue(ctx, journal.Record{Kind: journal.Result, Result: &result}); err != nil {
			return last, failed, err
		}
		e.o.Watcher.Changed("")
	}
	return last, failed, nil
}

// answer gives calls of which there is no result an error instead.
func (e *Engine) answer(ctx context.Context, calls []model.ToolCall, state team.CallState, why string) error {
	for _, c := range calls {
		r := unanswered(c, state, why)
		if err := e.Enqueue(ctx, journal.Record{Kind: journal.Result, Result: &r}); err != nil {
			return err
		}
	}
	return nil
}

func unanswered(c model.ToolCall, state team.CallState, why string) journal.ToolResult {
	return journal.ToolResult{CallID: c.ID, Name: c.Name, IsError: true, Content: why, Account: &team.Account{Arguments: team.DigestOf(c.Arguments), State: state}}
}

func tooMany(c model.ToolCall) journal.ToolResult {
	return unanswered(c, team.CallNotRun, fmt.Sprintf(`{"error":"this call was not run: one turn may have %d","code":"invalid_argument","status":"error"}`, maxCalls))
}

// call runs one call.
func (e *Engine) call(ctx context.Context, c model.ToolCall, traits tool.Traits) (journal.ToolResult, error) {
	step, done := e.step(ctx, traits.Yields)
	e.o.Watcher.Changed(c.Name)
	e.o.Watcher.Progress()
	res := e.o.Tools.Run(tool.WithProgress(step, e.o.Watcher.Progress), tool.Call{ID: c.ID, Name: c.Name, Arguments: c.Arguments})
	e.o.Watcher.Changed("")
	e.o.Watcher.Progress()
	done()
	r := journal.ToolResult{CallID: c.ID, Name: c.Name, IsError: res.IsError, Account: &res.Account}
	if ctx.Err() != nil {
		return r, ctx.Err() // the result only tells of the interruption, which the successor reports
	}
	r.Content, _ = e.Excerpt(ctx, res.Content)
	e.keepImages(ctx, res.Parts, &r)
	e.o.Owner.Returned(res.Effects, &r)
	return r, nil
}

// AnswerOpen answers the calls that are open with an error: the process in which they ran is gone.
func (e *Engine) AnswerOpen(ctx context.Context, why string) error {
	if err := e.answer(ctx, e.conv.Open, team.CallUnknown, why); err != nil {
		return err
	}
	return e.o.Journal.Flush()
}
