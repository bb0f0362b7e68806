package broker_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"agentteam/pkg/broker"
	"agentteam/pkg/broker/brokertest"
	"agentteam/pkg/broker/embedded"
	"agentteam/pkg/team"
)

func TestPut(t *testing.T) {
	b := brokertest.Team(t, "t").Bucket
	ctx := t.Context()

	rev, err := b.Put(ctx, "task.T-001", []byte("a"), 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Put(ctx, "task.T-001", []byte("b"), 0); !errors.Is(err, team.Conflict) {
		t.Errorf("second create: %v, want conflict", err)
	}
	if again, err := b.Put(ctx, "task.T-001", []byte("a"), 0); err != nil || again != rev {
		t.Errorf("the same write repeated = %d, %v, want %d", again, err, rev)
	}
	if _, err := b.Put(ctx, "task.T-001", []byte("c"), rev+7); !errors.Is(err, team.Conflict) {
		t.Errorf("wrong revision: %v, want conflict", err)
	}
	if e, err := b.Get(ctx, "task.T-001"); err != nil || string(e.Value) != "a" || e.Revision != rev {
		t.Errorf("Get = %+v, %v", e, err)
	}
	if _, err := b.Get(ctx, "task.T-002"); !errors.Is(err, team.NotFound) {
		t.Errorf("absent key: %v, want not_found", err)
	}
}

// Of many writers at one revision exactly one wins.
func TestPutRace(t *testing.T) {
	b := brokertest.Team(t, "t").Bucket
	var wg sync.WaitGroup
	won := make(chan int, 32)
	for i := range 32 {
		wg.Go(func() {
			_, err := b.Put(t.Context(), "graph", fmt.Appendf(nil, "%d", i), 0)
			switch {
			case err == nil:
				won <- i
			case !errors.Is(err, team.Conflict):
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if close(won); len(won) != 1 {
		t.Errorf("%d writers won, want 1", len(won))
	}
}

// A writer and a watcher both survive a restart of the server, without a gap.
func TestRestart(t *testing.T) {
	dir := t.TempDir()
	srv, err := embedded.Start(embedded.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	port := mustPort(t, srv.URL())
	bt, err := brokertest.Connect(t, srv.URL()).Make(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	seen := make(chan broker.Entry, 100)
	caught := make(chan struct{})
	done := make(chan error, 1)
	go func() {
		done <- bt.Bucket.Watch(ctx, func(e broker.Entry) error { seen <- e; return nil }, func() { close(caught) }, "task.>")
	}()
	<-caught
	put := func(n int) {
		if _, err := bt.Bucket.Put(t.Context(), fmt.Sprintf("task.T-%03d", n), fmt.Appendf(nil, "%d", n), 0); err != nil {
			t.Fatal(err)
		}
	}
	put(1)
	srv.Shutdown()
	wrote := make(chan struct{})
	go func() { defer close(wrote); put(2) }() // while it is away
	srv, err = embedded.Start(embedded.Options{Dir: dir, Port: port})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Shutdown()
	<-wrote
	put(3)
	for _, want := range []string{"1", "2", "3"} {
		if e := <-seen; string(e.Value) != want {
			t.Errorf("watcher saw %q, want %q", e.Value, want)
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func mustPort(t *testing.T, url string) (port int) {
	t.Helper()
	if _, err := fmt.Sscanf(url, "nats://127.0.0.1:%d", &port); err != nil {
		t.Fatal(err)
	}
	return port
}

func TestMakeTeam(t *testing.T) {
	url := brokertest.Server(t)
	c := brokertest.Connect(t, url)
	ctx := t.Context()
	if _, err := c.Open(ctx, "absent"); !errors.Is(err, team.InvalidState) {
		t.Errorf("open of a team that was never made: %v", err)
	}
	var wg sync.WaitGroup
	for range 4 { // racing makers agree
		wg.Go(func() {
			if _, err := c.Make(ctx, "t"); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()

	js, err := jetstream.New(c.NATS())
	if err != nil {
		t.Fatal(err)
	}
	if err := js.DeleteStream(ctx, "AT_t_LOG"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Open(ctx, "t"); !errors.Is(err, team.InvalidState) {
		t.Errorf("a stream that is gone: %v, want invalid_state", err)
	}
	if _, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: "AT_u_MSG", Subjects: []string{"something.else"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Make(ctx, "u"); !errors.Is(err, team.InvalidState) {
		t.Errorf("a foreign stream: %v, want invalid_state", err)
	}
}

func TestConnectErrors(t *testing.T) {
	plain, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	plain.Start()
	defer plain.Shutdown()
	if !plain.ReadyForConnections(10 * time.Second) {
		t.Fatal("nats-server is not ready")
	}
	for name, tt := range map[string]struct {
		url  string
		want team.Code
	}{
		"nobody there":      {"nats://127.0.0.1:1", team.Unavailable},
		"not an address":    {"somewhere", team.InvalidArgument},
		"without JetStream": {plain.ClientURL(), team.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := broker.Connect(t.Context(), broker.Options{URL: tt.url, Wait: 500 * time.Millisecond})
			if team.CodeOf(err) != tt.want || team.HintOf(err) == "" {
				t.Errorf("Connect = %v (hint %q), want %s with a hint", err, team.HintOf(err), tt.want)
			}
		})
	}
}

// A publish while NATS is away must not be kept and delivered later.
func TestNoReconnectBuffer(t *testing.T) {
	s, err := embedded.Start(embedded.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	c := brokertest.Connect(t, s.URL())
	away := make(chan struct{})
	c.NATS().SetDisconnectErrHandler(func(*nats.Conn, error) { close(away) })
	s.Shutdown()
	<-away
	if err := c.NATS().Publish("at.t.hb.a", nil); err == nil {
		t.Error("a publish while NATS is away was accepted")
	}
	if c.Ready(t.Context()) == nil {
		t.Error("Ready while NATS is away")
	}
}
