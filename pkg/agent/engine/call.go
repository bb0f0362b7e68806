package engine

import (
	"context"
	"fmt"
	"slices"

	"agentteam/pkg/model"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/team"
	"agentteam/pkg/tool"
)

// maxCalls is how many calls of one turn are run. A model that requests more has lost its way.
const maxCalls = 64

// Call runs the calls of a turn one after another, except those that may run in parallel
// ([tool.Traits].Parallel), and records their results in the order of the calls. It returns the
// last result, and whether any call failed, other than by waiting for a decision. The turn and the
// results so far are stored before a call begins that may change something: a successor may repeat
// a call that only reads.
func (e *Engine) Call(ctx context.Context, calls []model.ToolCall) (last journal.ToolResult, failed bool, err error) {
	for i := 0; i < len(calls); {
		pending := e.Interrupts()
		if k := slices.IndexFunc(pending, func(i Interrupt) bool { return i.Skip != "" }); k >= 0 {
			return last, true, e.answer(ctx, calls[i:], team.CallNotRun, pending[k].Skip)
		}
		traits := e.o.Tools.TraitsOf(toolCall(calls[i]))
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
		n := e.together(calls[i:min(len(calls), max(maxCalls, i+1))], traits)
		record := func(r journal.ToolResult) error {
			last, failed = r, failed || r.IsError && r.Await == nil // of a call that waits for leave nothing is to be said
			return e.Enqueue(ctx, journal.Record{Kind: journal.Result, Result: &r})
		}
		if i < maxCalls {
			err = e.call(ctx, calls[i:i+n], traits, record)
		} else {
			err = record(tooMany(calls[i]))
		}
		if err != nil {
			return last, failed, err
		}
		e.o.Watcher.Changed("")
		i += n
	}
	return last, failed, nil
}

func toolCall(c model.ToolCall) tool.Call {
	return tool.Call{ID: c.ID, Name: c.Name, Arguments: c.Arguments}
}

// together returns how many of the next calls run in parallel: one, unless they may. traits are
// those of the first.
func (e *Engine) together(calls []model.ToolCall, traits tool.Traits) int {
	if !traits.Parallel {
		return 1
	}
	for i, c := range calls {
		if t := e.o.Tools.TraitsOf(toolCall(c)); !t.Parallel {
			return i
		}
	}
	return len(calls)
}

// answer records an error as the result of each of the calls.
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

// call runs calls in parallel and passes their results to record in order.
func (e *Engine) call(ctx context.Context, calls []model.ToolCall, traits tool.Traits, record func(journal.ToolResult) error) error {
	step, done := e.step(ctx, traits.Yields)
	defer done()
	e.o.Watcher.Changed(calls[0].Name)
	e.o.Watcher.Progress()
	results := make([]chan tool.Result, len(calls))
	for i, c := range calls {
		results[i] = make(chan tool.Result, 1)
		run := func() {
			results[i] <- e.o.Tools.Run(tool.WithProgress(step, e.o.Watcher.Progress), toolCall(c))
		}
		if len(calls) == 1 {
			run()
		} else {
			go run()
		}
	}
	var err error
	for i, c := range calls {
		res := <-results[i] // also after an error: each has ended then
		if err != nil {
			continue
		}
		e.o.Watcher.Progress()
		if i == len(calls)-1 {
			e.o.Watcher.Changed("")
		}
		r := journal.ToolResult{CallID: c.ID, Name: c.Name, IsError: res.IsError, Account: &res.Account}
		if t := e.o.Tools.TraitsOf(toolCall(c)); !t.Talk {
			r.News, r.Changes = true, !t.ReadOnly
		}
		if err = ctx.Err(); err != nil {
			continue // the result only contains the interruption, which the successor reports
		}
		r.Content, _ = e.Excerpt(ctx, res.Content)
		e.keepImages(ctx, res.Parts, &r)
		e.o.Owner.Returned(res.Effects, &r)
		err = record(r)
	}
	return err
}

// AnswerOpen records an error for each open call: the process that ran it is gone.
func (e *Engine) AnswerOpen(ctx context.Context, why string) error {
	if err := e.answer(ctx, e.conv.Open, team.CallUnknown, why); err != nil {
		return err
	}
	return e.o.Journal.Flush()
}
