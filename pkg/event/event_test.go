package event_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"agentteam/pkg/broker/brokertest"
	"agentteam/pkg/broker/embedded"
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

// Nobody waits for the log of an agent that is being stopped, also while NATS is
// away; and a log without a logger drops what it must in silence.
func TestEmitAfterTheEnd(t *testing.T) {
	srv, err := embedded.Start(embedded.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Shutdown)
	bt, err := brokertest.Connect(t, srv.URL()).Make(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}
	l := event.New(bt, nil)
	ctx, cancel := context.WithCancel(t.Context())
	e := team.Event{AgentID: "coder-1", Event: team.EventBody{Type: team.TextChunk}}
	srv.Shutdown()
	emitted := make(chan struct{})
	go func() {
		defer close(emitted)
		for range 10 { // a turn with many tool calls
			l.Emit(ctx, e)
		}
	}()
	cancel()
	select {
	case <-emitted:
	case <-time.After(5 * time.Second):
		t.Error("an agent that was stopped still waits for its log after 5 s")
	}
}

// What cannot be stored is dropped, also where nobody reads the log.
func TestEmitDrops(t *testing.T) {
	l := event.New(brokertest.Team(t, "t"), nil)
	l.Emit(t.Context(), team.Event{AgentID: "coder-1", Event: team.EventBody{Type: team.Custom, Value: json.RawMessage("{")}})
	if last, err := l.Last(t.Context()); last != 0 || err != nil {
		t.Errorf("Last = %d, %v, want 0", last, err)
	}
}
