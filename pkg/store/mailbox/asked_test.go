package mailbox_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/mailbox"
	"agentteam/pkg/team"
)

// What holders of a task have asked people for it is found with its answers, whichever member got them; other mail and
// questions to agents are not.
func TestAsked(t *testing.T) {
	bt := brokertest.Team(t, "t")
	b := mailbox.New(bt, mailbox.Options{Members: append(members{{AgentID: "joe", State: team.Joined}, {AgentID: "bob", State: team.Joined}, {AgentID: "ann", State: team.Joined, Backend: team.Person}}, crew...)})
	post := func(m team.Message) team.Message {
		t.Helper()
		if m.Type == "" {
			m.Type = team.MsgMessage
		}
		m, _, err := b.Send(t.Context(), m)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	var copies []team.Task
	holder := func(s team.TaskStatus, by team.AgentID) {
		copies = append(copies, team.Task{ID: "T-001", Status: s, Assignee: by, UpdatedAt: time.Now().UTC()})
	}
	asks := func(from, to team.AgentID, task team.TaskID, text string) team.Message {
		return post(team.Message{From: from, To: to, TaskID: task, Content: text, AwaitReply: true})
	}
	says := func(from, to team.AgentID, reply, text string) {
		post(team.Message{Type: team.MsgUser, From: from, To: to, InReplyTo: reply, Content: text})
	}
	holder(team.InProgress, "joe")
	tabs := asks("joe", team.UserAgent, "T-001", "tabs?")
	asks("joe", team.UserAgent, "T-002", "of another task?")
	asks("joe", "bob", "T-001", "bob?")
	post(team.Message{From: "joe", To: team.UserAgent, Content: "no question"})
	says("bob", "joe", tabs.ID, "an agent answers no person's question")
	says(team.UserAgent, "joe", "", "yes, tabs")
	port := asks("joe", "ann", "T-001", strings.Repeat("which port? ", 1000))
	holder(team.Pending, "joe")
	says("ann", "joe", "", "I am away")
	holder(team.InProgress, "bob")
	name := asks("bob", team.UserAgent, "T-001", "which name?")
	says("ann", "bob", port.ID, "8080")
	got, answers, err := b.Asked(t.Context(), team.Task{ID: "T-001"}, copies)
	if err != nil || len(got) != 3 {
		t.Fatalf("asked: %+v, %v", got, err)
	}
	for i, want := range []struct {
		q      team.Message
		answer string
	}{{tabs, "yes, tabs"}, {port, "8080"}, {name, ""}} {
		if got[i].ID != want.q.ID || answers[want.q.ID].Content != want.answer || len(got[i].Content) > 5000 {
			t.Errorf("%d: %.100s, answered %q, want %.100s, %q", i, got[i].Content, answers[want.q.ID].Content, want.q.Content, want.answer)
		}
	}
	for i := range 20 {
		asks("bob", team.UserAgent, "T-001", fmt.Sprint("and ", i, "?"))
	}
	if got, _, err := b.Asked(t.Context(), team.Task{ID: "T-001"}, copies); err != nil || len(got) != 16 || got[15].Content != "and 19?" {
		t.Errorf("%d are read, %v", len(got), err)
	}
	if got, _, err := b.Asked(t.Context(), team.Task{ID: "T-009"}, nil); err != nil || got != nil {
		t.Errorf("of a task without: %+v, %v", got, err)
	}
}

// An answer ends the wait for it, to whichever member it was sent, before the wait or during it.
func TestAnswered(t *testing.T) {
	bt := brokertest.Team(t, "t")
	b := mailbox.New(bt, mailbox.Options{Members: append(members{{AgentID: "ann", State: team.Joined, Backend: team.Person}}, crew...)})
	answer := func(from team.AgentID, id string) {
		if _, _, err := b.Send(t.Context(), team.Message{Type: team.MsgUser, From: from, To: "coder-1", InReplyTo: id, Content: "to " + id}); err != nil {
			t.Error(err)
		}
	}
	answer(team.UserAgent, "q1")
	for id, from := range map[string]team.AgentID{"q1": "", "q2": "ann", "q3": team.UserAgent} {
		got := make(chan string, 1)
		go func() {
			m, err := b.Answered(t.Context(), team.Await{MessageID: id, From: "ann", Asker: "joe"})
			got <- fmt.Sprint(m.Content, err)
		}()
		if from != "" {
			answer(from, id)
		}
		if text := brokertest.Receive(t, "the answer", got); text != "to "+id+"<nil>" {
			t.Errorf("%s: %s", id, text)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.Answered(ctx, team.Await{MessageID: "q4", From: "ann"}); err == nil {
		t.Error("no answer, and no error")
	}
}
