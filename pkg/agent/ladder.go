package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"agentteam/pkg/model"
)

// rung is how much was taken out of a conversation that the endpoint refuses, since the
// model's last turn.
type rung int

const (
	whole      rung = iota
	noted           // nothing: the model was told what was wrong with its answer
	undone          // its last turn, with the results
	compacted       // what is old, for which a summary or an account stands
	ordersOnly      // all but the work and the orders of people
	workOnly        // all but the work
)

// ladder is how a refused request is tried again, by the reason of the refusal: with as
// little taken out as may do. What is refused is nearly always the newest turn. The work
// alone is left only where what was said is not let through, or is too long.
var ladder = map[model.Reason][]rung{
	model.FailedCall:     {noted, undone, compacted},
	model.InvalidRequest: {undone, compacted},
	model.ContentFilter:  {undone, ordersOnly, workOnly},
	model.ContextLength:  {compacted, ordersOnly, workOnly},
}

// rungAfter returns the next rung for a refused conversation, whole if there is none.
func (c *Conversation) rungAfter(reason model.Reason) rung {
	for _, to := range ladder[reason] {
		if to > c.Rung && c.has(to) {
			return to
		}
	}
	return whole
}

// has reports whether a rung takes out something else than the next one does.
func (c *Conversation) has(to rung) bool {
	switch to {
	case undone:
		return c.lastTurn() >= 0
	case ordersOnly:
		return c.orders() != ""
	}
	return true
}

// lastTurn returns the index of the model's last turn in this context, or -1.
func (c *Conversation) lastTurn() int {
	for i := len(c.Messages) - 1; i >= c.Head; i-- {
		if c.Messages[i].Role == "assistant" {
			return i
		}
	}
	return -1
}

// shortened returns the conversation at a rung below compacted by size: the last turn, all
// turns, or all but the work is taken out. task is the text of the task that is held; note
// says what was taken out, and why. It is pure, as are those of context.go.
func (c *Conversation) shortened(to rung, task, note string) *Conversation {
	if to == undone {
		return c.withoutTurn(c.lastTurn(), note)
	}
	n := c.with()
	n.Open, n.Held, n.Known = nil, nil, len(n.Facts)
	var texts []string
	add := func(text string) {
		if text != "" && !strings.Contains(strings.Join(texts, "\n"), text) {
			texts = append(texts, text)
		}
	}
	if to == compacted {
		add(n.background(nil, 2*maxFacts))
	}
	for _, text := range c.work(task) {
		add(text)
	}
	switch to {
	case compacted:
		n.Summary = c.account(len(c.Messages), summaryTokens)
		if n.Summary != "" {
			add("What you said and did before, in short:\n" + n.Summary)
		}
	case ordersOnly:
		n.Summary = ""
		add(c.orders())
	case workOnly:
		n.Summary = ""
	}
	add(note)
	if to != compacted { // there it is told with the background
		add(n.stillAsked(nil, false))
	}
	for _, text := range texts {
		n.Messages = append(n.Messages, userMessage(text))
	}
	n.Head, n.Unseen, n.Ended, n.Rung = len(n.Messages), true, false, to
	return n
}

// withoutTurn returns the conversation without the turn at an index and its results; what
// came after it stays.
func (c *Conversation) withoutTurn(at int, note string) *Conversation {
	kept := slices.Clone(c.Messages[:at])
	for _, m := range slices.Concat(c.Messages[at+1:], c.Held) {
		if m.Role != "tool" {
			kept = append(kept, m)
		}
	}
	n := c.with(append(kept, userMessage(note))...)
	n.Open, n.Held, n.Head, n.Overview = nil, nil, c.Head, c.Overview
	n.Unseen, n.Ended, n.Rung = true, false, undone
	if names := called(c.Messages[at]); names != "" { // for the account, should that follow
		n.Summary = strings.TrimSpace(n.Summary + "\n- you called " + names + ", and the endpoint refused the results")
	}
	return n
}

// called names the tools that a turn calls.
func called(turn *model.Message) string {
	var names []string
	for _, call := range turn.ToolCalls {
		names = append(names, call.Name)
	}
	return strings.Join(names, ", ")
}

func userMessage(text string) *model.Message { return &model.Message{Role: "user", Content: text} }

// orders is what people have told the agent, word for word, but for mail of which only the
// first words are kept.
func (c *Conversation) orders() string {
	var lines []string
	for _, f := range c.Facts {
		switch {
		case !f.ofPerson(), c.setsGoal(f), f.Sets: // the goal is the work, and those before have ended
		case f.Block == "":
			lines = append(lines, fmt.Sprintf("- id %s: %s (its first words; read_mail with its id shows the whole)", attribute(f.ID), neutral(f.Brief)))
		default:
			lines = append(lines, f.Block)
		}
	}
	if lines == nil {
		return ""
	}
	return "What people have told you, which still holds:\n" + strings.Join(lines, "\n")
}

// shorten goes on with the conversation at a rung.
func (a *Agent) shorten(ctx context.Context, r *model.Refusal, to rung) error {
	cause := causeOf(r)
	a.log.WarnContext(ctx, "the model's endpoint refuses the conversation; it is asked with less of it", "reason", r.Reason, "rung", int(to))
	switch {
	case to == noted:
		return a.note(ctx, fmt.Sprintf("The model's endpoint could not read the tool call in your answer, several times in a row, so nothing of it was run (%s). "+
			"Make the call again: the tool's name as it is given, and one JSON object as its arguments. If they are long, do it in smaller steps.", cause))
	case to == compacted && r.Reason == model.ContextLength:
		a.conv.filled()
		return a.compactTo(ctx, "it is larger than the model's window", compacted)
	}
	return a.renew(ctx, cause, a.conv.shortened(to, a.taskText(), a.o.Dialect.Say(a.takenOut(r, to))))
}

// takenOut tells the model what was taken out of its conversation, why, and where it finds
// what it needs.
func (a *Agent) takenOut(r *model.Refusal, to rung) string {
	c, why := a.conv, ""
	switch r.Reason {
	case model.ContextLength:
		why = ", since it is too long"
	case model.ContentFilter: // without its words, which may quote what is not let through
		why = ", because of its content"
	default:
		why = " (" + causeOf(r) + ")"
	}
	text := "The model's endpoint refused this conversation" + why + ". "
	if to == undone {
		text += "So your last turn was taken out, with its results; all else is as it was."
		if names := called(c.Messages[c.lastTurn()]); names != "" {
			text += " It called " + names + ", and that was done: look what came of it before you do it again, and do it in another way if you can."
		}
		return text
	}
	work := "what you are at"
	if a.holds() {
		work = "your task"
	}
	switch {
	case to == compacted && c.account(len(c.Messages), summaryTokens) != "":
		text += "So your turns and their results were taken out, and what you did stands above in short."
	case to == compacted:
		text += "So all was taken out but " + work + " and the mail that stands."
	case to == ordersOnly:
		text += "So all was taken out but " + work + " and what people have told you."
	case c.orders() != "":
		text += "So all was taken out but " + work + ", also what people have told you, which still holds."
	default:
		text += "So all was taken out but " + work + "."
	}
	text += " Files are as you left them: look what is done already, and go on. read_mail shows the mail that you got."
	return text + c.unseenMail(to, r.Reason != model.ContentFilter)
}

// unseenMail names the mail that is taken out at a rung before the model has seen it, at whole
// all of it; with its first words, unless they may be what is not let through.
func (c *Conversation) unseenMail(at rung, words bool) string {
	text := ""
	for _, m := range c.Unread {
		stands := func(f fact) bool { return f.ID == m.ID && (at == compacted || at == ordersOnly && f.ofPerson()) }
		if slices.ContainsFunc(c.Facts, stands) {
			continue // it is told above
		}
		text += "\n- from " + string(m.From) + ", id " + m.ID
		if words {
			text += ": " + neutral(m.Brief)
		}
	}
	if text == "" {
		return ""
	}
	return "\nMail that you have not seen:" + text
}
