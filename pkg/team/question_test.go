package team

import (
	"strings"
	"testing"
	"time"
)

func TestChoose(t *testing.T) {
	open := Message{AwaitReply: true}
	two := Message{Choices: []string{"Keep them", "2", "1"}}
	for _, tt := range []struct {
		q          Message
		text, want string // want "": refused
	}{
		{open, " anything\nat all ", "anything\nat all"},
		{two, "keep THEM", "Keep them"},
		{two, "2", "2"}, // the text of a choice goes before its number
		{two, "1", "1"},
		{two, "3", "1"},
		{two, "0", ""}, {two, "4", ""}, {two, "-1", ""}, {two, "keep", ""}, {two, "", ""},
	} {
		got, err := tt.q.Choose(tt.text)
		if got != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%q is read as %q, %v, want %q", tt.text, got, err, tt.want)
		}
		if err != nil && (CodeOf(err) != InvalidArgument || !strings.Contains(HintOf(err), "1 Keep them, 2 2, 3 1")) {
			t.Errorf("%q: %v (%s) does not name the choices", tt.text, err, HintOf(err))
		}
	}
}

func TestAnswers(t *testing.T) {
	q := Message{ID: "q", From: "coder-1", To: UserAgent}
	for name, tt := range map[string]struct {
		m    Message
		want bool
	}{
		"an answer":                     {Message{Type: MsgUser, To: "coder-1", InReplyTo: "q"}, true},
		"a word in between":             {Message{Type: MsgUser, To: "coder-1"}, true},
		"a word to all":                 {Message{Type: MsgUser, To: Everyone}, true},
		"to somebody else":              {Message{Type: MsgUser, To: "coder-2"}, false},
		"an answer to the next holder":  {Message{Type: MsgUser, To: "coder-2", InReplyTo: "q"}, true},
		"an answer to another question": {Message{Type: MsgUser, To: "coder-1", InReplyTo: "p"}, false},
		"what wakes nobody":             {Message{Type: MsgIdle, To: "coder-1"}, false},
	} {
		if got := tt.m.Answers(q, q.Waits(Task{})); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

// A question for a task is the task's: the holder at the time waits for the answer, and it is open until the task has ended.
func TestQuestionOfTask(t *testing.T) {
	at := func(minute int) time.Time { return time.Date(2026, 5, 1, 12, minute, 0, 0, time.UTC) }
	q := Message{ID: "q", From: "joe", To: UserAgent, TaskID: "T-001", AwaitReply: true}
	task := func(minute int, s TaskStatus, by AgentID) Task {
		return Task{ID: "T-001", Status: s, Assignee: by, UpdatedAt: at(minute)}
	}
	copies := []Task{task(0, InProgress, "joe"), task(10, Pending, "joe"), task(20, InProgress, "bob"), task(30, Completed, "bob")}
	for minute, want := range map[int]AgentID{0: "joe", 9: "joe", 10: "", 19: "", 20: "bob", 25: "bob", 30: ""} {
		if got := q.WaitedAt(copies, at(minute)); got != want {
			t.Errorf("in minute %d %q waits, want %q", minute, got, want)
		}
	}
	word := Message{Type: MsgUser, From: UserAgent, To: "joe"}
	if !word.Answers(q, q.WaitedAt(copies, at(5))) || word.Answers(q, q.WaitedAt(copies, at(15))) || word.Answers(q, q.WaitedAt(copies, at(25))) {
		t.Error("a word to a member is an answer while it holds the task, and then only")
	}
	for i, want := range []bool{false, false, false, true} {
		if got := q.Void(copies[i]); got != want {
			t.Errorf("void while the task is %s: %v", copies[i].Status, got)
		}
	}
	if (Message{From: "joe", AwaitReply: true}).Void(copies[3]) || q.Void(Task{ID: "T-002", Status: Completed}) {
		t.Error("a question is void by the end of a task for which it was not asked")
	}
}

func TestInheritedText(t *testing.T) {
	in := Inherited{Note: "Ask.", Plan: "first\nthen", Asked: []Message{
		{ID: "1", From: "joe", To: UserAgent, Content: "Tabs?", Choices: []string{"tabs", "spaces"}},
		{ID: "01JX0000000000000000ABCDEF", From: "joe", To: "ann", Content: "Which port?"},
	}, Answers: map[string]Message{"1": {ID: "2", From: UserAgent, Content: "tabs"}}}
	want := "plan: Ask.\n  │ first\n  │ then\nasked for this task before; do not ask it again:\n- joe asked user:\n  │ Tabs?\n  │ - tabs\n  │ - spaces\n  The answer of user:\n  │ tabs\n" +
		"- joe asked ann:\n  │ Which port?\n  It is not answered yet (mail ABCDEF). You get the answer. Do what does not depend on it, or end your turn.\n"
	if got := in.Text(); got != want {
		t.Errorf("it reads\n%s\nwant\n%s", got, want)
	}
	if got := in.Lasting().Text(); strings.Contains(got, "port") || strings.Contains(got, "Ask.") || !strings.Contains(got, "tabs") || (Inherited{}).Text() != "" {
		t.Errorf("what stays true: %s", got)
	}
}
