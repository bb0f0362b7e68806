package agent

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"agentteam/pkg/journal"
	"agentteam/pkg/model"
	"agentteam/pkg/team"
)

// conversation is the state of an agent's dialogue with its model, made by adding
// the journal's records one after another.
type conversation struct {
	messages []*model.Message
	open     []model.ToolCall // of the last turn, not answered yet
	held     []*model.Message // input that came while calls were open
	unseen   bool             // the model has yet to see something that wants an answer
	inboxSeq uint64           // of the newest message taken in
	read     map[string]bool  // ids of the messages taken in
	task     team.Task        // the last one it was told to work on
	await    *journal.Await   // an answer the agent waits for
	shutdown *journal.Record  // a request to shut down that was not carried out yet
	mail     int              // index of the user message that takes further mail; -1 = none
	usage    model.Usage
	turns    uint64
}

func newConversation() *conversation { return &conversation{mail: -1, read: map[string]bool{}} }

// add takes in the next record. Results follow their turn directly, as endpoints
// demand: input that was recorded between them comes after the last result.
func (c *conversation) add(r journal.Record) error {
	if c.await != nil && !r.At.Before(c.await.Until) {
		c.await = nil // a predecessor waited long enough, and was told so
	}
	switch r.Kind {
	case journal.Mail:
		c.inboxSeq = max(c.inboxSeq, r.InboxSeq)
		c.read[r.Message.ID] = true
		if c.await != nil && r.Message.From == c.await.From && r.Message.Wakes() {
			c.await = nil
		}
		c.unseen = c.unseen || r.Message.Wakes()
		if r.Message.Type == team.MsgShutdownRequest {
			c.shutdown = &r
		}
		c.input(mailBlock(*r.Message, mark(r)), true)
	case journal.Task:
		c.unseen, c.task, c.await = true, *r.Task, nil // what was waited for was another task's
		c.input(taskBlock(*r.Task, r.Inputs, mark(r)), false)
	case journal.Note:
		c.unseen = true
		c.input(r.Text, false)
	case journal.Turn:
		var t model.Reply
		if err := json.Unmarshal(r.Turn, &t); err != nil {
			return team.Errorf(team.InvalidState, "turn %d of the journal cannot be read: %w", r.Seq, err)
		}
		c.messages = append(c.messages, &t.Message)
		c.open, c.mail = t.Message.ToolCalls, -1
		c.unseen = len(c.open) > 0 // their results will want an answer
		c.usage = c.usage.Add(t.Usage)
		c.turns++
	case journal.Result:
		c.result(*r.Result)
	case journal.End:
		c.unseen, c.shutdown = false, nil
	}
	return nil
}

// told reports whether the agent was told to work on t as it was claimed last. Whoever
// takes it over from an earlier incarnation does not claim it anew.
func (c *conversation) told(t team.Task) bool {
	was, is := c.task.ClaimedAt, t.ClaimedAt
	return c.task.ID == t.ID && was != nil && is != nil && was.Equal(*is)
}

func (c *conversation) input(text string, isMail bool) {
	if len(c.open) > 0 {
		c.held = append(c.held, &model.Message{Role: "user", Content: text})
		return
	}
	if isMail && c.mail >= 0 {
		longer := *c.messages[c.mail]
		longer.Content += "\n" + text
		c.messages[c.mail] = &longer
		return
	}
	c.messages = append(c.messages, &model.Message{Role: "user", Content: text})
	if c.mail = -1; isMail {
		c.mail = len(c.messages) - 1
	}
}

func (c *conversation) result(r journal.ToolResult) {
	for i, call := range c.open {
		if call.ID == r.CallID {
			c.open = append(c.open[:i:i], c.open[i+1:]...)
			c.messages = append(c.messages, &model.Message{Role: "tool", ToolCallID: r.CallID, Content: r.Content})
			break
		}
	}
	if r.Await != nil {
		c.await = r.Await
	}
	if len(c.open) == 0 {
		c.messages = append(c.messages, c.held...)
		c.held = nil
	}
}

// mark delimits a block so that its text cannot end it: it is taken from the
// record's random id, which the author of the text could not know.
func mark(r journal.Record) string { return r.ID[max(0, len(r.ID)-8):] }

func mailBlock(m team.Message, mark string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<mail from="%s" type="%s" id="%s"`, attribute(string(m.From)), attribute(string(m.Type)), attribute(m.ID))
	if m.InReplyTo != "" {
		fmt.Fprintf(&b, ` in_reply_to="%s"`, attribute(m.InReplyTo))
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
