package team

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Asks reports whether m is a question: its sender waits for the answer.
func (m Message) Asks() bool { return m.AwaitReply || len(m.Choices) > 0 }

// Answers reports whether m, which came after the question q, is an answer to it: one to its id, to whichever member that
// is sent, or a message without such an id to the agent that waits for the answer then. waits is that agent, see
// [Message.Waits]; "" if there is none. An answer to another question does not answer q.
func (m Message) Answers(q Message, waits AgentID) bool {
	return m.Wakes() && (m.InReplyTo == q.ID || m.InReplyTo == "" && waits != "" && (m.To == waits || m.To == Everyone))
}

// Waits returns the agent that waits for the answer to the question m: the holder of t, the task for which it is asked,
// "" while t has none; without a task the sender.
func (m Message) Waits(t Task) AgentID {
	switch {
	case m.TaskID == "":
		return m.From
	case t.Status == InProgress:
		return t.Assignee
	}
	return ""
}

// WaitedAt is Waits at a time, by the copies of the task, oldest first. Times are compared that the clocks of several
// hosts have made.
func (m Message) WaitedAt(copies []Task, at time.Time) AgentID {
	var then Task
	for _, t := range copies {
		if t.UpdatedAt.After(at) {
			break
		}
		then = t
	}
	return m.Waits(then)
}

// Await returns how the holder of a task waits for the answer to the question m, which was asked for the task.
func (m Message) Await() *Await {
	return &Await{MessageID: m.ID, From: m.To, About: m.Summary, Task: m.TaskID, Asker: m.From}
}

// Void reports whether no answer to the question m is of use any more, since the task t has ended, for which it was asked.
func (m Message) Void(t Task) bool { return m.TaskID != "" && t.ID == m.TaskID && !t.Status.Open() }

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
