package team

import (
	"strings"
	"testing"
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
		"an answer to another question": {Message{Type: MsgUser, To: "coder-1", InReplyTo: "p"}, false},
		"what wakes nobody":             {Message{Type: MsgIdle, To: "coder-1"}, false},
	} {
		if got := tt.m.Answers(q); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}
