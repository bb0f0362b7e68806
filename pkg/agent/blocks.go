package agent

import (
	"fmt"
	"regexp"
	"strings"

	"agentteam/pkg/journal"
	"agentteam/pkg/team"
)

// mark delimits a block so that its text cannot end it: it is taken from the
// record's random id, which the author of the text could not know.
func mark(r journal.Record) string { return r.ID[max(0, len(r.ID)-8):] }

// mailBlock is a message as the model is told it; stored is where the whole of it lies
// if what m holds is an excerpt.
func mailBlock(m team.Message, stored, mark string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<mail from="%s" type="%s" id="%s"`, attribute(string(m.From)), attribute(string(m.Type)), attribute(m.ID))
	if m.InReplyTo != "" {
		fmt.Fprintf(&b, ` in_reply_to="%s"`, attribute(m.InReplyTo))
	}
	if stored != "" {
		fmt.Fprintf(&b, ` whole="%s"`, attribute(stored))
	}
	fmt.Fprintf(&b, " mark=\"%s\">\n%s\n</mail %s>", mark, neutral(m.Content), mark)
	return b.String()
}

func taskBlock(t team.Task, inputs []team.Input, mark string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "<task id=\"%s\" mark=\"%s\">\ntitle: %s\n", t.ID, mark, neutral(t.Title))
	if t.Description != "" {
		fmt.Fprintf(&b, "%s\n", neutral(t.Description))
	}
	fmt.Fprintf(&b, "deliverable: %s\n", t.DeliverablePath)
	if len(inputs) > 0 {
		b.WriteString("dependencies:\n")
		for _, in := range inputs {
			fmt.Fprintf(&b, "- %s %s\n", in.Task, in.Path)
		}
	}
	fmt.Fprintf(&b, "</task %s>", mark)
	return b.String()
}

var lookAlike = regexp.MustCompile(`(?i)<(\s*/?\s*(?:mail|task)\b)`)

// neutral takes the force from text that looks like one of our blocks.
func neutral(s string) string { return lookAlike.ReplaceAllString(s, "&lt;$1") }

func attribute(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '"' || r == '<' || r == '>' || r == '\n' {
			return -1
		}
		return r
	}, s)
}
