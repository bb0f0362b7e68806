package agent

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"agentteam/pkg/agent/engine"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/team"
)

// mark returns the delimiter of a block, so that its text cannot end the block. It is taken from
// the record's random id: the author of the text may know the message's id, but not this one.
func mark(r journal.Record) string { return r.ID[max(0, len(r.ID)-6):] }

// mailBlock returns a message as the model sees it. stored is the reference to the full text if m
// holds an excerpt. Instructions for answering a request follow, in the dialect d. The frame is
// short, since it may be longer than the message: it omits a type that the sender implies, and ids
// are short ([team.ShortID]).
func mailBlock(m team.Message, stored, mark string, d team.Dialect) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<mail from="%s"`, attribute(string(m.From)))
	if !plainMail(m) {
		fmt.Fprintf(&b, ` type="%s"`, attribute(string(m.Type)))
	}
	fmt.Fprintf(&b, ` id="%s"`, attribute(team.ShortID(m.ID)))
	if m.InReplyTo != "" {
		fmt.Fprintf(&b, ` in_reply_to="%s"`, attribute(team.ShortID(m.InReplyTo)))
	}
	if m.RequestID != "" {
		b.WriteString(" " + requestAttribute(m.RequestID))
	}
	if m.Approve != nil {
		fmt.Fprintf(&b, ` approve="%t"`, *m.Approve)
	}
	if stored != "" {
		fmt.Fprintf(&b, ` whole="%s"`, attribute(stored))
	}
	fmt.Fprintf(&b, " mark=\"%s\">\n%s\n</mail %s>", mark, neutral(m.Content), mark)
	switch m.Type {
	case team.MsgShutdownRequest:
		b.WriteString("\n" + howToLeave(m.From, m.RequestID, m.Drain, d))
	case team.MsgPlanRequest:
		b.WriteString("\n" + howToDecide(m.From, m.RequestID, d))
	}
	return b.String()
}

// plainMail reports whether the type of m adds nothing to its sender.
func plainMail(m team.Message) bool {
	switch m.Type {
	case team.MsgMessage:
		return true
	case team.MsgUser:
		return m.From == team.UserAgent
	case team.MsgWatchdog:
		return m.From == team.Watchdog
	}
	return false
}

// howToDecide returns instructions for approving or rejecting the plan of a member.
func howToDecide(from team.AgentID, requestID string, d team.Dialect) string {
	if d == team.Claude {
		return fmt.Sprintf(`Read the plan, then decide: SendMessage {"type":"plan_approval_response","to":%q,"request_id":%q,"approve":true or false,"message":"what is to be different, if you reject it"}.`, from, requestID)
	}
	return fmt.Sprintf(`Read the plan, then decide: approve_plan {"request_id":%q,"approve":true or false,"feedback":"what is to be different, if you reject it"}.`, requestID)
}

// taskBlock returns a task as the model sees it: the work, its check, its inputs, how earlier tries
// ended (nil for none), and what it inherits.
func taskBlock(t team.Task, inputs []team.Input, brings team.Inherited, mark string, tries ...*team.Try) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<task id="%s"`, t.ID)
	if t.CreatedBy != "" {
		fmt.Fprintf(&b, ` from="%s"`, attribute(string(t.CreatedBy)))
	}
	if t.Attempts > 0 {
		fmt.Fprintf(&b, ` attempt="%d of %d"`, t.Attempts+1, team.MaxAttempts)
	}
	fmt.Fprintf(&b, " mark=\"%s\">\ntitle: %s\n", mark, neutral(t.Title))
	if t.Description != "" {
		fmt.Fprintf(&b, "\n%s\n\n", neutral(strings.TrimSpace(t.Description)))
	}
	if t.Check != "" || t.DeliverableReq {
		b.WriteString("done when:\n")
	}
	if t.Check != "" {
		fmt.Fprintf(&b, "- this command succeeds: %s\n", neutral(t.Check))
	}
	if t.DeliverableReq {
		b.WriteString("- the deliverable is there and not empty\n")
	}
	if t.DeliverablePath != "" {
		fmt.Fprintf(&b, "deliverable: %s\n", t.DeliverablePath)
	}
	if len(inputs) > 0 {
		b.WriteString("inputs:\n")
	}
	for _, in := range inputs {
		b.WriteString(inputLines(in, maxInputs/len(inputs)))
	}
	for _, y := range tries {
		if y != nil {
			b.WriteString(tryLines(t.ID, *y))
		}
	}
	newest, _ := t.Work()
	for _, y := range t.Returned {
		if y.Commit == "" || slices.ContainsFunc(tries, func(o *team.Try) bool { return o != nil && o.Commit == y.Commit }) {
			continue
		}
		in := ""
		if y == newest {
			in = ", and in the files of a tree that begins now"
		}
		fmt.Fprintf(&b, "earlier work of %s that was not merged: %s%s\n", y.By, whereIs(t.ID, y), in)
	}
	b.WriteString(neutral(brings.Text()))
	fmt.Fprintf(&b, "</task %s>", mark)
	return b.String()
}

// tryLines describes how an earlier hold ended: in one line, or in full with its returned work.
func tryLines(id team.TaskID, y team.Try) string {
	if left := y.Left(); left != "" {
		return fmt.Sprintf("%s held it before: %s\n%s\n", y.By, neutral(engine.Head(strings.TrimSpace(y.Reason), maxReturned)), neutral(left))
	}
	if y.Commit == "" {
		return fmt.Sprintf("%s held it before: %s\n", y.By, neutral(engine.Head(team.OneLine(y.Reason), maxReason)))
	}
	return fmt.Sprintf("the work of %s on it was not merged: %s\n", y.By, neutral(engine.Head(cmp.Or(strings.TrimSpace(y.Reason), "it is "+whereIs(id, y)), maxReturned)))
}

// whereIs returns the commit and the branch of an earlier hold's work: a holder that shares the
// folder has no tree.
func whereIs(id team.TaskID, y team.Try) string {
	return fmt.Sprintf("commit %s, in a tree of your own branch %s", y.Commit, y.Branch(id))
}

// callWaits returns a note for a task that is claimed again: a call for it still waits for a
// decision.
func callWaits(w team.Await) string {
	return fmt.Sprintf("Your call %q for this task still waits for a person (request %s). Do what does not depend on it, or end your turn; you are woken when it is decided on.", neutral(w.About), w.Plan)
}

const (
	maxInputs = 8000 // bytes of the summaries of all inputs
	maxInput  = 1500 // bytes of the summary of one input
	maxReason = 1500 // bytes of the reason for which a task came back

	maxReturned = 24 << 10 // bytes of a reason that includes the diff of returned work
)

// inputLines describes the result of a dependency, its summary in at most that many bytes.
func inputLines(in team.Input, most int) string {
	line := "- " + string(in.Task) + " " + neutral(in.Title) + " (" + string(in.By) + "): " + neutral(engine.Head(team.OneLine(in.Summary), min(most, maxInput))) + "\n"
	if in.Path != "" {
		line += "  file: " + in.Path + "\n"
	}
	return line
}

var lookAlike = regexp.MustCompile(`(?i)<(\s*/?\s*(?:mail|task|team|environment)\b)`)

// neutral escapes text that looks like one of our blocks.
func neutral(s string) string { return lookAlike.ReplaceAllString(s, "&lt;$1") }

func requestAttribute(id string) string { return `request_id="` + attribute(id) + `"` }

func attribute(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '"' || r == '<' || r == '>' || r == '\n' {
			return -1
		}
		return r
	}, s)
}
