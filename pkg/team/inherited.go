package team

import (
	"fmt"
	"slices"
	"strings"
)

// Inherited is the state of a task for a new holder, in addition to its record: its plan, and the questions
// that its holders have asked people for it.
type Inherited struct {
	Note    string             `json:"note,omitempty"`    // of the plan, see [Approval.Note]
	Plan    string             `json:"plan,omitempty"`    // the text of that plan
	Asked   []Message          `json:"asked,omitempty"`   // the newest questions, the oldest first
	Answers map[string]Message `json:"answers,omitempty"` // by the id of the question; none = it is open
	Await   *Await             `json:"await,omitempty"`   // what the agent waits for: a decision on that plan, or an answer; nil = nothing
}

// Lasting returns the part of i that stays true while the agent holds the task: the answered questions.
func (i Inherited) Lasting() Inherited {
	open := func(q Message) bool { return i.Answers[q.ID].ID == "" }
	return Inherited{Asked: slices.DeleteFunc(slices.Clone(i.Asked), open), Answers: i.Answers}
}

// Text returns i as the agent reads it, in whole lines; "" if there is nothing.
func (i Inherited) Text() string {
	var b strings.Builder
	if i.Note != "" {
		fmt.Fprintf(&b, "plan: %s\n", i.Note)
	}
	if i.Plan != "" {
		b.WriteString(barred(i.Plan))
	}
	if len(i.Asked) > 0 {
		b.WriteString("asked for this task before; do not ask it again:\n")
	}
	for _, q := range i.Asked {
		fmt.Fprintf(&b, "- %s asked %s:\n%s", q.From, q.To, barred(strings.Join(append([]string{q.Content}, q.Choices...), "\n- ")))
		answer, answered := i.Answers[q.ID]
		if !answered {
			fmt.Fprintf(&b, "  It is not answered yet (mail %s). You get the answer. Do what does not depend on it, or end your turn.\n", ShortID(q.ID))
			continue
		}
		fmt.Fprintf(&b, "  The answer of %s:\n%s", answer.From, barred(answer.Content))
	}
	return b.String()
}

// barred returns a text with a bar before each line.
func barred(s string) string {
	return "  │ " + strings.ReplaceAll(strings.TrimSpace(s), "\n", "\n  │ ") + "\n"
}
