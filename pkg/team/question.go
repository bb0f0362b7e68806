package team

import (
	"fmt"
	"strconv"
	"strings"
)

// Asks reports whether m is a question: its sender waits for the answer.
func (m Message) Asks() bool { return m.AwaitReply || len(m.Choices) > 0 }

// Answers reports whether m, which came after q, ends the wait of q's sender: it is an answer
// to q, or says something to its sender by itself. An answer to another question does not.
func (m Message) Answers(q Message) bool {
	return (m.To == q.From || m.To == Everyone) && (m.InReplyTo == q.ID || m.InReplyTo == "") && m.Wakes()
}

// Void reports whether the sender of the question m has lost the task t since, for which it
// asked: nobody waits for the answer any more, and whoever holds t asks again.
func (m Message) Void(t Task) bool {
	return t.Status != InProgress || t.Assignee != m.From || t.ClaimedAt != nil && t.ClaimedAt.After(m.CreatedAt)
}

// For tells for which task a question is asked, to stand behind its sender's name; "" for none.
func (m Message) For() string {
	if m.TaskID == "" {
		return ""
	}
	return " for " + string(m.TaskID)
}

// Choose returns the answer to m that text stands for: of a question with choices the one of
// that text, in upper or lower case, or of that number. Error: InvalidArgument for what is none
// of them, with all of them in its hint.
func (m Message) Choose(text string) (string, error) {
	text = strings.TrimSpace(text)
	if len(m.Choices) == 0 {
		return text, nil
	}
	for _, c := range m.Choices {
		if strings.EqualFold(strings.TrimSpace(c), text) {
			return c, nil
		}
	}
	if n, err := strconv.Atoi(text); err == nil && n >= 1 && n <= len(m.Choices) {
		return m.Choices[n-1], nil
	}
	return "", Errorf(InvalidArgument, "%q is none of the answers to this question", Clean(text, 80)).WithHint("give one of: %s", strings.Join(m.Numbered(), ", "))
}

// AnswerUsage is how an answer to m is called where it is told how to give one.
func (m Message) AnswerUsage() string {
	if len(m.Choices) > 0 {
		return "NUMBER"
	}
	return "TEXT"
}

// Numbered are the choices of a question, each behind its number.
func (m Message) Numbered() []string {
	texts := make([]string, len(m.Choices))
	for i, c := range m.Choices {
		texts[i] = fmt.Sprintf("%d %s", i+1, c)
	}
	return texts
}
