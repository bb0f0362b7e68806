package broker_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/team"
)

// A write that waits for its answer ends with its caller's patience and with the
// connection, at once, and leaves nothing behind.
func TestWaitForAnswerEnds(t *testing.T) {
	mine, others := two(t)
	asked := make(chan *nats.Msg, 1)
	shut(t, others.Conn)
	if _, err := others.Conn.NATS().ChanSubscribe("$KV.at-t.graph", asked); err != nil {
		t.Fatal(err)
	}
	if err := others.Conn.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	put := func(ctx context.Context) <-chan error {
		done := make(chan error, 1)
		go func() {
			_, err := mine.Bucket.Put(ctx, "graph", []byte("1"), 0)
			done <- err
		}()
		select {
		case <-asked:
		case err := <-done:
			t.Fatalf("it did not wait: %v", err)
		case <-time.After(brokertest.Longest):
			t.Fatal("nothing is written")
		}
		return done
	}
	nc := mine.Conn.NATS()
	before := nc.NumSubscriptions()
	for range 10 {
		ctx, cancel := context.WithCancel(t.Context())
		done := put(ctx)
		cancel()
		if err := brokertest.Receive(t, "the write ends with its context", done); !errors.Is(err, context.Canceled) || !errors.Is(err, team.Unavailable) {
			t.Fatalf("the caller has gone: %v", err)
		}
	}
	if n := nc.NumSubscriptions(); n > before {
		t.Errorf("%d subscriptions were left behind", n-before)
	}
	done := put(t.Context())
	mine.Conn.Close()
	if err := brokertest.Receive(t, "the write ends with its connection", done); !errors.Is(err, nats.ErrConnectionClosed) || !errors.Is(err, team.Unavailable) {
		t.Errorf("the connection was closed: %v", err)
	}
}

// shut makes the team's bucket take no more writes.
func shut(t *testing.T, c *broker.Conn) {
	t.Helper()
	js, err := jetstream.New(c.NATS())
	if err != nil {
		t.Fatal(err)
	}
	s, err := js.Stream(t.Context(), "KV_at-t")
	if err != nil {
		t.Fatal(err)
	}
	cfg := s.CachedInfo().Config
	cfg.Subjects = []string{"nothing"}
	if _, err := js.UpdateStream(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
}
