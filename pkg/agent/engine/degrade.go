package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"agentteam/pkg/model"
	"agentteam/pkg/store/journal"
)

// Rung is how much was removed from a conversation that the endpoint refuses, since the model's
// last turn.
type Rung int

// The rungs, from the top. Their numbers are stored.
const (
	Whole      Rung = iota
	Noted           // nothing: the model was notified of the error in its answer
	Undone          // its last turn, with the results; or old results, while the window is not known
	Compacted       // its old part, which a summary or an account replaces
	OrdersOnly      // all but the work and the orders of people
	WorkOnly        // all but the work
)

// ladder is the order of rungs in which a refused request is retried, by the reason of the refusal: with as
// little removed as possible. Usually the newest turn is refused. The work alone
// is left only where the content is refused, or is too long.
var ladder = map[model.Reason][]Rung{
	model.FailedCall:     {Noted, Undone, Compacted},
	model.InvalidRequest: {Undone, Compacted},
	model.ContentFilter:  {Undone, OrdersOnly, WorkOnly},
	model.ContextLength:  {Compacted, OrdersOnly, WorkOnly},
}

// NextRung returns the next rung for a conversation that is refused for a reason, [Whole] if no
// further rung exists.
func (e *Engine) NextRung(reason model.Reason) Rung {
	for _, to := range ladder[reason] {
		if to > e.conv.Rung && e.has(to) {
			return to
		}
	}
	return Whole
}

// has reports whether a rung removes something other than the next one does.
func (e *Engine) has(to Rung) bool {
	switch to {
	case Undone:
		return e.conv.LastTurn() >= 0
	case OrdersOnly:
		return e.o.Memory.Kept(Cut{Rung: to}).Orders != ""
	}
	return true
}

// LastTurn returns the index of the model's last turn in this context, or -1.
func (c *Conversation) LastTurn() int {
	for i := len(c.Messages) - 1; i >= c.Head; i-- {
		if c.Messages[i].Role == "assistant" {
			return i
		}
	}
	return -1
}

// keptRoom is how many tokens the memory's texts may have when an account replaces all turns.
const keptRoom = 8000

// Shortened returns the conversation at a rung below [Noted]: without the last turn, all turns, or
// all but the work. note is the text for the model that describes the removal and its reason.
func (c *Conversation) Shortened(to Rung, memory Memory, note string) Conversation {
	if to == Undone {
		return c.withoutTurn(c.LastTurn(), note)
	}
	n := c.With()
	n.Open, n.Held = nil, nil
	var texts []string
	add := func(text string) {
		if text != "" && !strings.Contains(strings.Join(texts, "\n"), text) {
			texts = append(texts, text)
		}
	}
	kept := memory.Kept(Cut{Rung: to, Room: keptRoom})
	if to == Compacted {
		add(kept.Before)
	}
	for _, text := range kept.Work {
		add(text)
	}
	n.Summary = ""
	switch to {
	case Compacted:
		n.Summary = c.account(len(c.Messages), summaryTokens)
		if n.Summary != "" {
			add("What you said and did before, in short:\n" + n.Summary)
		}
	case OrdersOnly:
		add(kept.Orders)
	}
	add(note)
	if to != Compacted { // there it is part of kept.Before
		add(kept.Asked)
	}
	for _, text := range texts {
		n.Messages = append(n.Messages, userMessage(text))
	}
	n.Head, n.Unseen, n.Ended, n.Rung = len(n.Messages), true, false, to
	return n
}

// withoutTurn returns the conversation without the turn at an index and its results; later messages
// stay.
func (c *Conversation) withoutTurn(at int, note string) Conversation {
	kept := slices.Clone(c.Messages[:at])
	for _, m := range slices.Concat(c.Messages[at+1:], c.Held) {
		if m.Role != "tool" && !pictured(m) {
			kept = append(kept, m)
		}
	}
	n := c.With(append(kept, userMessage(note))...)
	n.Open, n.Held, n.Head, n.Old = nil, nil, c.Head, min(c.Old, at)
	n.Unseen, n.Ended, n.Rung = true, false, Undone
	if names := called(c.Messages[at]); names != "" { // for the account, should that follow
		n.Summary = strings.TrimSpace(n.Summary + "\n- you called " + names + ", and the endpoint refused the results")
	}
	return n
}

// called returns the names of the tools that a turn calls.
func called(turn *model.Message) string {
	var names []string
	for _, call := range turn.ToolCalls {
		names = append(names, call.Name)
	}
	return strings.Join(names, ", ")
}

// Shorten continues with the conversation at a rung, because of a refusal.
func (e *Engine) Shorten(ctx context.Context, r *model.Refusal, to Rung) error {
	cause := Cause(r)
	e.log.WarnContext(ctx, "the model's endpoint refuses the conversation; it is asked with less of it", "reason", r.Reason, "rung", int(to))
	switch {
	case to == Noted:
		return e.Record(ctx, journal.Record{Kind: journal.Note, Text: fmt.Sprintf("The model's endpoint could not read the tool call in your answer, several times in a row, so nothing of it was run (%s). "+
			"Make the call again: the tool's name as it is given, and one JSON object as its arguments. If they are long, do it in smaller steps.", cause)})
	case to == Compacted && r.Reason == model.ContextLength:
		e.conv.filled()
		return e.compactTo(ctx, "it is larger than the model's window", Compacted)
	}
	next := e.conv.Shortened(to, e.o.Memory, e.takenOut(r, to))
	return e.Renew(ctx, cause, e.o.Memory.Context(e.inPlace(next), Cut{Rung: to}), model.Reply{})
}

// takenOut returns the text for the model about the removed part of its conversation: the reason,
// and where to find the content.
func (e *Engine) takenOut(r *model.Refusal, to Rung) string {
	c, why := e.conv, ""
	switch r.Reason {
	case model.ContextLength:
		why = ", since it is too long"
	case model.ContentFilter: // without its words, which may quote what is not let through
		why = ", because of its content"
	default:
		why = " (" + Cause(r) + ")"
	}
	text := "The model's endpoint refused this conversation" + why + ". "
	if to == Undone {
		text += "So your last turn was taken out, with its results; all else is as it was."
		if names := called(c.Messages[c.LastTurn()]); names != "" {
			text += " It called " + names + ", and that was done: look what came of it before you do it again, and do it in another way if you can."
		}
		return text
	}
	kept := e.o.Memory.Kept(Cut{Rung: to, Room: keptRoom, Words: r.Reason != model.ContentFilter})
	work := cmp.Or(kept.Name, "what you are at")
	switch {
	case to == Compacted && c.account(len(c.Messages), summaryTokens) != "":
		text += "So your turns and their results were taken out, and what you did stands above in short."
	case to == Compacted:
		text += "So all was taken out but " + work + " and the mail that stands."
	case to == OrdersOnly:
		text += "So all was taken out but " + work + " and what people have told you."
	case kept.Orders != "":
		text += "So all was taken out but " + work + ", also what people have told you, which still holds."
	default:
		text += "So all was taken out but " + work + "."
	}
	return text + " Files are as you left them: look what is done already, and go on." + kept.Missing
}
