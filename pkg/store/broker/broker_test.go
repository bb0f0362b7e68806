package broker_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/broker/embedded"
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
	dir, port := t.TempDir(), brokertest.Port()
	srv, err := embedded.Start(embedded.Options{Dir: dir, Port: port})
	if err != nil {
		t.Fatal(err)
	}
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
	brokertest.Receive(t, "the watch has caught up", caught)
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
	brokertest.Receive(t, "the write is stored", wrote)
	put(3)
	for _, want := range []string{"1", "2", "3"} {
		if e := brokertest.Receive(t, "the watch shows what is written", seen); string(e.Value) != want {
			t.Errorf("watcher saw %q, want %q", e.Value, want)
		}
	}
	cancel()
	if err := brokertest.Receive(t, "the watch ends", done); err != nil {
		t.Error(err)
	}
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

// bare starts a server without JetStream and returns its URL.
func bare(t *testing.T) string {
	t.Helper()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(s.Shutdown)
	if !s.ReadyForConnections(10 * time.Second) {
		t.Fatal("nats-server is not ready")
	}
	return s.ClientURL()
}

func TestConnectErrors(t *testing.T) {
	for name, tt := range map[string]struct {
		url  string
		want team.Code
	}{
		"nobody there":      {"nats://127.0.0.1:1", team.Unavailable},
		"not an address":    {"somewhere", team.InvalidArgument},
		"without JetStream": {bare(t), team.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := broker.Connect(t.Context(), broker.Options{URL: tt.url, Wait: 500 * time.Millisecond})
			if team.CodeOf(err) != tt.want || team.HintOf(err) == "" {
				t.Errorf("Connect = %v (hint %q), want %s with a hint", err, team.HintOf(err), tt.want)
			}
		})
	}
}

// No error tells what may be a password.
func TestConnectErrorsKeepSecrets(t *testing.T) {
	for name, url := range map[string]string{
		"one":                "nats://user:SECRET@127.0.0.1:1",
		"a token":            "nats://SECRET@127.0.0.1:1",
		"the second of two":  "nats://127.0.0.1:1,nats://user:SECRET@127.0.0.1:2",
		"not to be parsed":   "nats://user:%SECRET@127.0.0.1:1",
		"cut by a comma":     "nats://user:SEC,SECRET@127.0.0.1:1",
		"one of two is none": "nats://user:SECRET@127.0.0.1:1,somewhere",
	} {
		_, err := broker.Connect(t.Context(), broker.Options{URL: url, Wait: 200 * time.Millisecond})
		if err == nil || strings.Contains(err.Error(), "SEC") || strings.Contains(team.HintOf(err), "SEC") {
			t.Errorf("%s: %v", name, err)
		}
		if !strings.Contains(err.Error(), "127.0.0.1:") && name != "one of two is none" {
			t.Errorf("%s: %v does not tell the address", name, err)
		}
	}
}

// A stream that would forget or refuse what the team relies on is not taken for its
// own, whoever changed it.
func TestForeignSettings(t *testing.T) {
	c := brokertest.Connect(t, brokertest.Server(t))
	js, err := jetstream.New(c.NATS())
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	for name, change := range map[string]func(*jetstream.StreamConfig){
		"forgets":   func(cfg *jetstream.StreamConfig) { cfg.MaxMsgsPerSubject = 1 },
		"holds-few": func(cfg *jetstream.StreamConfig) { cfg.MaxMsgs = 5 },
		"short":     func(cfg *jetstream.StreamConfig) { cfg.MaxMsgSize = 1000 },
		"repeats":   func(cfg *jetstream.StreamConfig) { cfg.Duplicates = time.Second },
	} {
		id := team.TeamID(name)
		if _, err := c.Make(ctx, id); err != nil {
			t.Fatal(err)
		}
		s, err := js.Stream(ctx, "AT_"+name+"_MSG")
		if err != nil {
			t.Fatal(err)
		}
		cfg := s.CachedInfo().Config
		change(&cfg)
		if _, err := js.UpdateStream(ctx, cfg); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Open(ctx, id); !errors.Is(err, team.InvalidState) || team.HintOf(err) == "" {
			t.Errorf("%s: %v, want invalid_state with a hint", name, err)
		}
	}
}

// A stream that is full says so at once; the write is not repeated until its caller
// gives up.
func TestFullStream(t *testing.T) {
	bt := brokertest.Team(t, "t")
	js, err := jetstream.New(bt.Conn.NATS())
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	for _, name := range []string{"AT_t_MSG", "KV_at-t"} {
		s, err := js.Stream(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		cfg := s.CachedInfo().Config
		cfg.MaxBytes = 1000
		if _, err := js.UpdateStream(ctx, cfg); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, brokertest.Longest)
	defer cancel()
	for what, write := range map[string]func() error{
		"Publish": func() error {
			_, err := bt.Messages.Publish(ctx, "at.t.inbox.a.b", "1", make([]byte, 5000))
			return err
		},
		"Put": func() error {
			_, err := bt.Bucket.Put(ctx, "graph", make([]byte, 5000), 0)
			return err
		},
	} {
		if err := write(); !errors.Is(err, team.Unavailable) || ctx.Err() != nil {
			t.Errorf("%s: %v, %v; want unavailable at once", what, err, ctx.Err())
		}
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
	brokertest.Receive(t, "the connection is lost", away)
	if err := c.NATS().Publish("at.t.hb.a", nil); err == nil {
		t.Error("a publish while NATS is away was accepted")
	}
	if c.Ready(t.Context()) == nil {
		t.Error("Ready while NATS is away")
	}
}
