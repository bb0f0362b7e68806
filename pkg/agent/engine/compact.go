package engine

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"agentteam/pkg/model"
	"agentteam/pkg/model/tokens"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/team/blob"
)

//go:embed summary.md
var summaryFile string

// summaryPrompt asks for a summary of a conversation. The request has the same system message and
// tools as all others, so that the endpoint's cache of them stays valid.
var summaryPrompt = strings.TrimSpace(summaryFile)

// excerptTokens is how much of one result or message is shown while the window is unknown; more
// than any tool returns.
const excerptTokens = 32_000

// putWithin bounds the storing of a long text: the agent's work does not wait longer for it.
const putWithin = 10 * time.Second

// Excerpt returns text as the conversation may contain it: in full, or head and tail with a
// reference to the stored text. If it cannot be stored, ref is "" and the middle is lost.
func (e *Engine) Excerpt(ctx context.Context, text string) (short, ref string) {
	return e.ExcerptTo(ctx, text, e.ExcerptLimit())
}

// ExcerptLimit returns how many tokens of one result or message the conversation may contain.
func (e *Engine) ExcerptLimit() int {
	if w := e.calibration.window(); w > 0 {
		return max(w/resultShare, 500)
	}
	return excerptTokens
}

// ExcerptTo is Excerpt with a limit in tokens.
func (e *Engine) ExcerptTo(ctx context.Context, text string, limit int) (short, ref string) {
	n := e.calibration.scale.Tokens(tokens.Estimate(text))
	if n <= limit {
		return text, ""
	}
	if e.o.Store != nil {
		put, cancel := context.WithTimeout(ctx, putWithin)
		defer cancel()
		var err error
		if ref, err = e.o.Store.Put(put, text); err != nil {
			e.log.WarnContext(ctx, "a long text was not stored; its middle is left out", "err", err)
		}
	}
	return blob.Excerpt(text, len(text)*limit/n, ref), ref
}

// MakeRoom shortens the conversation if the next request would not fit into the window.
func (e *Engine) MakeRoom(ctx context.Context) error {
	if e.asked {
		return e.CompactOnRequest(ctx)
	}
	if err := e.tryWindow(ctx); err != nil {
		return err
	}
	for i, was := range e.conv.leaveWritten(e.o.Tools) {
		if i < e.conv.Since {
			e.conv.Sent = max(0, e.conv.Sent-e.calibration.scale.Tokens(e.calibration.count([]*model.Message{was})-e.calibration.count(e.conv.Messages[i:i+1])))
		}
	}
	room, fill := e.calibration.room(), e.calibration.fill(e.conv)
	// A conversation that could not be made small enough is shortened again only once it has grown.
	if room == 0 || fill <= room || fill <= e.calibration.least+room/10 {
		return nil
	}
	e.conv.filled()
	err := e.compact(ctx, "the model's window is nearly full")
	e.calibration.least = e.calibration.fill(e.conv)
	return err
}

// CompactOnRequest shortens the conversation because a person requested it; in the middle of a
// turn, only after the turn.
func (e *Engine) CompactOnRequest(ctx context.Context) error {
	if e.asked = len(e.conv.Open) > 0; e.asked {
		return nil
	}
	return e.compact(ctx, "somebody asked for it")
}

const (
	summaryTokens = 2000 // of a summary, at most
	worthIt       = 3    // markers are enough if they save a third: each new set of them invalidates the cached prompt from the first marker on
)

// compact makes the conversation shorter: first, old results become markers; if that saves too
// little, a summary replaces all but the newest part. Without a summary from the model, an account
// from the records replaces it.
func (e *Engine) compact(ctx context.Context, why string) error {
	return e.compactTo(ctx, why, e.conv.Rung)
}

// compactTo is compact after a refusal, which sets the rung far.
func (e *Engine) compactTo(ctx context.Context, why string, far Rung) error {
	known := e.calibration.window()
	window := cmp.Or(known, max(e.calibration.fill(e.conv), summaryTokens*resultShare))
	before := e.calibration.sizeOf(e.conv.Messages)
	marked := e.conv.Marked(e.o.Tools, window/markedShare)
	after := e.calibration.sizeOf(marked.Messages)
	// While the window is unknown, only the endpoint can show whether markers are enough: they are
	// a separate rung then, and the next one is the account.
	guess := known == 0 && far == Compacted
	if after <= before-before/worthIt && after <= window/2 && !(guess && e.conv.Rung >= Undone) {
		if marked.Rung = far; guess {
			marked.Rung = Undone
		}
		return e.Renew(ctx, why, e.o.Memory.Context(e.inPlace(marked), Cut{Rung: Undone}), model.Reply{})
	}
	room, most := window/keptShare, min(summaryTokens, window/resultShare)
	if guess {
		room = min(room, after/keptShare)
	}
	var summary model.Reply
	// If the window is unknown and the endpoint has refused the conversation, it would refuse this
	// request too.
	fits := after+most <= known || known == 0 && far < Compacted
	if fits && e.conv.Parked == nil {
		var err error
		messages := e.conv.Messages // with what the endpoint has cached, and the thoughts that are signed with it
		if far >= Compacted || known > 0 && e.calibration.fill(e.conv)+2*most > known {
			messages = marked.Messages
		}
		if summary, err = e.summary(ctx, append(slices.Clip(messages), userMessage(summaryPrompt)), most); err != nil {
			return err
		}
	}
	text := summary.Message.Content
	switch {
	case text == "":
		text = marked.account(marked.tail(room), most)
	case CutOff(summary):
		text += "\n[cut here]\nWhat was done last:\n" + marked.account(marked.tail(room), most/2)
	}
	next := e.fitted(ctx, marked.Summarized(e.o.Tools, e.o.Memory, text, e.o.Changes(ctx), room), window/2)
	next.Rung = far
	return e.Renew(ctx, why, e.o.Memory.Context(e.inPlace(next), Cut{Rung: Whole}), summary)
}

// summary asks the model to answer messages with a summary of at most most tokens; its text is ""
// if the model gives none.
func (e *Engine) summary(ctx context.Context, messages []*model.Message, most int) (model.Reply, error) {
	if e.conv.Usage.ReasoningTokens > 0 {
		most = 0 // a limit would hold for what it thinks, too: the endpoint's own
	}
	step, done := e.step(ctx, false)
	defer done()
	reply, err := e.complete(step, messages, most, nil)
	switch {
	case err == nil:
		return reply, nil
	case ctx.Err() != nil:
		return reply, ctx.Err()
	case overBudget(err): // the summary is made once the budget is raised
		return reply, err
	}
	e.log.WarnContext(ctx, "no summary; a plain account stands in for it", "err", err)
	if r, ok := errors.AsType[*model.Refusal](err); ok && r.Used != (model.Usage{}) { // recorded because it has cost something
		return model.Reply{}, e.Refused(ctx, r, model.TryAgain, Cause(r))
	}
	return model.Reply{}, nil
}

// fitted returns c with the unseen messages cut to head and tail, so that together they have about
// limit tokens. Otherwise the model would never see them.
func (e *Engine) fitted(ctx context.Context, c Conversation, limit int) Conversation {
	from := c.Pending()
	unseen := c.Messages[from:]
	if sizeOf(unseen) <= limit {
		return c
	}
	n := c.With(slices.Clone(c.Messages)...)
	n.Head, n.Summary = c.Head, c.Summary
	share := limit / max(len(unseen), 1)
	for i, m := range unseen {
		if m.Role == "assistant" || Size(m) <= share {
			continue
		}
		short := *m
		short.Content, _ = e.ExcerptTo(ctx, m.Content, share)
		n.Messages[from+i] = &short
	}
	return n
}

// inPlace returns next, which replaces the conversation, with Quoted set if a removed message
// quotes a call.
func (e *Engine) inPlace(next Conversation) Conversation {
	r := e.calibration.request(nil)
	for _, m := range e.conv.Messages {
		next.Quoted = next.Quoted || !slices.Contains(next.Messages, m) && r.Quotes(m)
	}
	return next
}

// Renew records that the conversation continues from next, a record's Context; summary is the
// model's reply that is part of it, if there is one.
func (e *Engine) Renew(ctx context.Context, why string, next json.RawMessage, summary model.Reply) error {
	before := e.Fill()
	r := journal.Record{Kind: journal.Compact, Text: why, Context: next}
	if summary.Usage != (model.Usage{}) {
		r.Turn = JSON(summary)
	}
	if err := e.Record(ctx, r); err != nil {
		return err
	}
	e.log.InfoContext(ctx, "conversation shortened", "reason", why, "before", before, "after", e.Fill())
	e.o.Watcher.Changed("")
	return nil
}
