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

// mark delimits a block so that its text cannot end it: it is taken from the
// record's random id, which the author of the text could not know, as it may the message's.
func mark(r journal.Record) string { return r.ID[max(0, len(r.ID)-6):] }

// mailBlock is a message as the model is told it; stored is where the whole of it lies
// if what m holds is an excerpt. How to answer a request follows it, in the words of d. The
// frame is short, since it may be more than the message: a type that its sender shows is left
// out, and ids are told by [team.ShortID].
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

// plainMail reports whether the type of m says no more than its sender does.
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

// howToDecide says how the plan of a member is approved or rejected.
func howToDecide(from team.AgentID, requestID string, d team.Dialect) string {
	if d == team.Claude {
		return fmt.Sprintf(`Read the plan, then decide: SendMessage {"type":"plan_approval_response","to":%q,"request_id":%q,"approve":true or false,"message":"what is to be different, if you reject it"}.`, from, requestID)
	}
	return fmt.Sprintf(`Read the plan, then decide: approve_plan {"request_id":%q,"approve":true or false,"feedback":"what is to be different, if you reject it"}.`, requestID)
}

// taskBlock is a task as the model is told it: what is to be done, how to see that it is,
// what it can build on, how earlier tries ended, nil for none, and what it brings along.
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

// tryLines shows how an earlier hold ended: in one line, or with its work that was returned in all lines.
func tryLines(id team.TaskID, y team.Try) string {
	if left := y.Left(); left != "" {
		return fmt.Sprintf("%s held it before: %s\n%s\n", y.By, neutral(engine.Head(strings.TrimSpace(y.Reason), maxReturned)), neutral(left))
	}
	if y.Commit == "" {
		return fmt.Sprintf("%s held it before: %s\n", y.By, neutral(engine.Head(team.OneLine(y.Reason), maxReason)))
	}
	return fmt.Sprintf("the work of %s on it was not merged: %s\n", y.By, neutral(engine.Head(cmp.Or(strings.TrimSpace(y.Reason), "it is "+whereIs(id, y)), maxReturned)))
}

// whereIs is where the work of an earlier hold is: a holder that shares the folder has no tree.
func whereIs(id team.TaskID, y team.Try) string {
	return fmt.Sprintf("commit %s, in a tree of your own branch %s", y.Commit, y.Branch(id))
}

// callWaits tells, with a task that is claimed again, that a call which was asked for it is not decided on.
func callWaits(w team.Await) string {
	return fmt.Sprintf("Your call %q for this task still waits for a person (request %s). Do what does not depend on it, or end your turn; you are woken when it is decided on.", neutral(w.About), w.Plan)
}

const (
	maxInputs = 8000 // bytes of the summaries of all inputs
	maxInput  = 1500 // of one of them
	maxReason = 1500 // bytes of the reason for which a task came back

	maxReturned = 24 << 10 // of one that has the differences of work that was returned
)

// inputLines tells what came of a dependency, its summary in at most so many bytes.
func inputLines(in team.Input, most int) string {
	line := "- " + string(in.Task) + " " + neutral(in.Title) + " (" + string(in.By) + "): " + neutral(engine.Head(team.OneLine(in.Summary), min(most, maxInput))) + "\n"
	if in.Path != "" {
		line += "  file: " + in.Path + "\n"
	}
	return line
}

var lookAlike = regexp.MustCompile(`(?i)<(\s*/?\s*(?:mail|task|team|environment)\b)`)

// neutral takes the force from text that looks like one of our blocks.
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
