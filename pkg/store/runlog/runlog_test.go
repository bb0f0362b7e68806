package runlog_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/broker/embedded"
	"agentteam/pkg/store/runlog"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

func read(t *testing.T, bt *broker.Storage) (all []broker.Msg) {
	t.Helper()
	if err := bt.Events.Read(t.Context(), 1, func(m broker.Msg) error { all = append(all, m); return nil }); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestLog(t *testing.T) {
	bt := brokertest.Team(t, "t")
	l := runlog.New(bt, slog.New(slog.DiscardHandler))
	l.Emit(t.Context(), team.Event{AgentID: "coder-1", RoleName: "coder", RunID: "r", Event: team.EventBody{Type: team.RunError, Message: "一 🚀"}})
	if _, err := bt.Events.Publish(t.Context(), subject.Event("t", "coder-1", team.Custom), "x", []byte("nonsense")); err != nil {
		t.Fatal(err)
	}
	all := read(t, bt)
	if len(all) != 2 || all[0].Subject != "at.t.evt.coder-1.run_error" {
		t.Fatalf("stored is %+v", all)
	}
	e, ok := runlog.Decode(all[0])
	if !ok || e.TeamID != "t" || e.AgentID != "coder-1" || e.RunID != "r" || e.Event.Message != "一 🚀" || e.Event.Timestamp == 0 {
		t.Errorf("the event is %+v, %v", e, ok)
	}
	if e, ok := runlog.Decode(all[1]); ok {
		t.Errorf("nonsense is %+v", e)
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
	l := runlog.New(bt, nil)
	ctx, cancel := context.WithCancel(t.Context())
	e := team.Event{AgentID: "coder-1", Event: team.EventBody{Type: team.RunStarted}}
	srv.Shutdown()
	emitted := make(chan struct{})
	go func() {
		defer close(emitted)
		for range 10 {
			l.Emit(ctx, e)
		}
	}()
	cancel()
	select {
	case <-emitted:
	case <-time.After(brokertest.Longest):
		t.Error("an agent that was stopped still waits for its log")
	}
}

// What cannot be stored is dropped, also where nobody reads the log.
func TestEmitDrops(t *testing.T) {
	bt := brokertest.Team(t, "t")
	runlog.New(bt, nil).Emit(t.Context(), team.Event{AgentID: "coder-1", Event: team.EventBody{Type: team.Custom, Value: json.RawMessage("{")}})
	if all := read(t, bt); len(all) > 0 {
		t.Errorf("stored is %+v", all)
	}
}
