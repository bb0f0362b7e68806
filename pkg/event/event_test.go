package event_test

import (
	"context"
	"log/slog"
	"testing"

	"agentteam/pkg/broker/brokertest"
	"agentteam/pkg/event"
	"agentteam/pkg/subject"
	"agentteam/pkg/team"
)

func TestLog(t *testing.T) {
	bt := brokertest.Team(t, "t")
	l := event.New(bt, slog.New(slog.DiscardHandler))
	emit := func(text string) {
		l.Emit(t.Context(), team.Event{AgentID: "coder-1", RoleName: "coder", RunID: "r", Event: team.EventBody{Type: team.TextChunk, Delta: text}})
	}
	emit("一 🚀")
	// An entry that nobody can read blinds no reader.
	if _, err := bt.Events.Publish(t.Context(), subject.Event("t", "coder-1", team.Custom), "x", []byte("nonsense")); err != nil {
		t.Fatal(err)
	}
	emit("two")

	ctx, cancel := context.WithCancel(t.Context())
	got := make(chan team.Event, 10)
	done := make(chan error, 1)
	go func() { done <- l.Follow(ctx, 1, func(e team.Event) error { got <- e; return nil }) }()
	first := <-got
	if first.TeamID != "t" || first.AgentID != "coder-1" || first.Event.Delta != "一 🚀" || first.Event.Timestamp == 0 || first.Seq != 1 {
		t.Errorf("first event is %+v", first)
	}
	if e := <-got; e.Event.Delta != "two" || e.Seq != 3 {
		t.Errorf("second event is %+v", e)
	}
	emit("three")
	if e := <-got; e.Event.Delta != "three" {
		t.Errorf("followed %+v", e)
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Follow = %v", err)
	}

	var read []string
	if err := l.Read(t.Context(), 3, func(e team.Event) error { read = append(read, e.Event.Delta); return nil }); err != nil || len(read) != 2 {
		t.Errorf("Read from 3 = %q, %v", read, err)
	}
	if last, err := l.Last(t.Context()); last != 4 || err != nil {
		t.Errorf("Last = %d, %v", last, err)
	}
}

// An agent that is being stopped still tells what it did.
func TestEmitAfterTheEnd(t *testing.T) {
	bt := brokertest.Team(t, "t")
	l := event.New(bt, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	l.Emit(ctx, team.Event{AgentID: "coder-1", Event: team.EventBody{Type: team.RunFinished}})
	if last, err := l.Last(t.Context()); last != 1 || err != nil {
		t.Errorf("Last = %d, %v, want 1", last, err)
	}
}
