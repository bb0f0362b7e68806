package team

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Asks reports whether m is a question: its sender waits for the answer.
func (m Message) Asks() bool { return m.AwaitReply || len(m.Choices) > 0 }

// Answers reports whether m, later than the question q, answers it: it names q's id, whoever receives it, or
// names no id and goes to the agent that waits then. waits is that agent, see [Message.Waits]; "" if there is
// none. An answer to another question does not answer q.
func (m Message) Answers(q Message, waits AgentID) bool {
	return m.Wakes() && (m.InReplyTo == q.ID || m.InReplyTo == "" && waits != "" && (m.To == waits || m.To == Everyone))
}

// Waits returns the agent that waits for the answer to the question m: the holder of its task t, "" while t
// has no holder; without a task the sender.
func (m Message) Waits(t Task) AgentID {
	switch {
	case m.TaskID == "":
		return m.From
	case t.Status == InProgress:
		return t.Assignee
	}
	return ""
}

// WaitedAt returns the result of Waits at a time, by the copies of the task, oldest first. It compares times
// of the clocks of several hosts.
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

// Await returns the wait of a task's holder for the answer to the question m, which was asked for the task.
func (m Message) Await() *Await {
	return &Await{MessageID: m.ID, From: m.To, About: m.Summary, Task: m.TaskID, Asker: m.From}
}

// Void reports whether no answer to the question m is useful any more, since its task t has ended.
func (m Message) Void(t Task) bool { return m.TaskID != "" && t.ID == m.TaskID && !t.Status.Open() }

// For returns " for " and the task of a question, to follow its sender's name; "" without a task.
func (m Message) For() string {
	if m.TaskID == "" {
		return ""
	}
	return " for " + string(m.TaskID)
}

// Choose returns the answer to m that text stands for: for a question with choices the choice with that text,
// in upper or lower case, or that number. Error: InvalidArgument, with all choices in its hint.
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

// AnswerUsage returns the placeholder of an answer to m in a usage line.
func (m Message) AnswerUsage() string {
	if len(m.Choices) > 0 {
		return "NUMBER"
	}
	return "TEXT"
}

// Numbered returns the choices of a question, each behind its number.
func (m Message) Numbered() []string {
	texts := make([]string, len(m.Choices))
	for i, c := range m.Choices {
		texts[i] = fmt.Sprintf("%d %s", i+1, c)
	}
	return texts
}
