package broker_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/team"
)

// Half a list must not pass for the whole: a read that its context ends is an
// error, whatever it has seen.
func TestReadCutShort(t *testing.T) {
	bt := brokertest.Team(t, "t")
	for i := range 3 {
		if _, err := bt.Bucket.Put(t.Context(), fmt.Sprintf("task.T-%03d", i), []byte("x"), 0); err != nil {
			t.Fatal(err)
		}
	}
	over, cancel := context.WithCancelCause(t.Context())
	cancel(nil)
	if all, err := bt.Bucket.Load(over, "task.>"); !errors.Is(err, team.Unavailable) {
		t.Errorf("Load = %v, %v, want unavailable", all, err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	err := bt.Bucket.Read(ctx, 1, func(broker.Msg) error { cancel(errors.New("enough")); return nil })
	if err != nil && !errors.Is(err, team.Unavailable) {
		t.Errorf("Read = %v, want unavailable, or nil if it was quicker", err)
	}
}

// A follower ends with nil when its context does, for whatever cause, and with an
// error when its connection is closed under it.
func TestFollowEnds(t *testing.T) {
	url := brokertest.Server(t)
	c := brokertest.Connect(t, url)
	bt, err := c.Make(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}
	follow := func(ctx context.Context) (<-chan struct{}, <-chan error) {
		ready, done := make(chan struct{}), make(chan error, 1)
		go func() {
			done <- bt.Bucket.Watch(ctx, func(broker.Entry) error { return nil }, func() { close(ready) }, ">")
		}()
		return ready, done
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	ready, done := follow(ctx)
	brokertest.Receive(t, "the watch has caught up", ready)
	cancel(errors.New("a cause of its own"))
	if err := brokertest.Receive(t, "the watch ends with its context", done); err != nil {
		t.Errorf("after its context: %v", err)
	}
	ready, done = follow(t.Context())
	brokertest.Receive(t, "the watch has caught up", ready)
	c.Close()
	if err := brokertest.Receive(t, "the watch ends with its connection", done); !errors.Is(err, team.Unavailable) {
		t.Errorf("after its connection: %v, want unavailable", err)
	}
}

// A reading leaves nothing on the server, which allows 1,000 consumers a stream.
func TestManyReadings(t *testing.T) {
	t.Parallel()
	b := brokertest.Team(t, "t").Bucket
	if _, err := b.Put(t.Context(), "task.T-001", []byte("x"), 0); err != nil {
		t.Fatal(err)
	}
	for i := range 1100 {
		if _, err := b.Load(t.Context(), "task.>"); err != nil {
			t.Fatalf("reading %d: %v", i+1, err)
		}
	}
}
