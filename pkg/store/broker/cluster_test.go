package broker_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/team"
)

// A stream that is made on a cluster is replicated as the connection says, and
// whoever opens it later learns that from the stream.
func TestReplicas(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("a cluster")
	}
	c := brokertest.NewCluster(t, 3)
	conn := brokertest.Connect(t, c.URL())
	if _, err := conn.Registry(t.Context()); err != nil { // made before any team is
		t.Fatal(err)
	}
	bt, err := conn.Make(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}
	other, err := broker.Connect(t.Context(), broker.Options{URL: c.URL()})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	for what, open := range map[string]func(context.Context, team.TeamID) (*broker.Storage, error){"opened": other.Open, "made again": other.Make} {
		again, err := open(t.Context(), "t")
		if err != nil {
			t.Fatal(err)
		}
		for name, s := range map[string]*broker.Stream{"messages": again.Messages, "events": again.Events, "logs": again.Logs, "bucket": again.Bucket.Stream} {
			if s.Replicas() != 3 {
				t.Errorf("%s: the %s have %d replicas, want 3", what, name, s.Replicas())
			}
		}
	}

	for _, conn := range []*broker.Conn{conn, other} {
		r, err := conn.Registry(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if r.Replicas() != 3 {
			t.Errorf("the registry has %d replicas, want 3", r.Replicas())
		}
	}

	// One of three servers may die: what was acknowledged stays, and writing goes on.
	rev, err := bt.Bucket.Put(t.Context(), "graph", []byte("before"), 0)
	if err != nil {
		t.Fatal(err)
	}
	c.Kill(c.Leader("KV_at-t"))
	if e, err := bt.Bucket.Get(t.Context(), "graph"); err != nil || string(e.Value) != "before" {
		t.Errorf("after the leader's death it reads %q, %v", e.Value, err)
	}
	if _, err := bt.Bucket.Put(t.Context(), "graph", []byte("after"), rev); err != nil {
		t.Error(err)
	}
}

func TestTooFewServers(t *testing.T) {
	c, err := broker.Connect(t.Context(), broker.Options{URL: brokertest.Server(t), Replicas: 5})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Make(t.Context(), "t"); !errors.Is(err, team.Unavailable) || team.HintOf(err) == "" {
		t.Errorf("5 replicas: %v, want unavailable with a hint", err)
	}
}

// A try that got no answer is still under way while its repetition is answered
// "wrong last sequence": the server says so of any write to a key to which another
// is not yet replicated. That must not be taken for a lost race.
func TestPutSlowlyReplicated(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("a cluster")
	}
	c := brokertest.NewCluster(t, 3)
	if _, err := brokertest.Connect(t, c.URL()).Make(t.Context(), "t"); err != nil {
		t.Fatal(err)
	}
	leader := c.Leader("KV_at-t")
	bt, err := brokertest.Connect(t, strings.Split(c.URL(), ",")[leader]).Open(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}
	b := bt.Bucket
	for i := range 3 {
		if i != leader {
			c.Freeze(i)
		}
	}
	thawed := make(chan struct{})
	time.AfterFunc(5*time.Second, func() { // after two tries, before the leader gives up
		defer close(thawed)
		for i := range 3 {
			if i != leader {
				c.Thaw(i)
			}
		}
	})
	rev, err := b.Put(t.Context(), "graph", []byte("mine"), 0)
	<-thawed
	// Another write, which is behind it, shows what became of it.
	_, other := b.Put(t.Context(), "graph", []byte("another"), 0)
	e, gerr := b.Get(t.Context(), "graph")
	if err != nil || !errors.Is(other, team.Conflict) || gerr != nil || string(e.Value) != "mine" || rev != e.Revision {
		t.Errorf("Put = %d, %v, the next one %v, and the key holds %q at %d, %v", rev, err, other, e.Value, e.Revision, gerr)
	}
}

// A server that is frozen keeps its connections and says nothing. It is left for another, and
// what is written then is stored.
func TestFrozenServerIsLeft(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("a cluster")
	}
	c := brokertest.NewCluster(t, 3)
	conn := brokertest.Connect(t, c.URL())
	bt, err := conn.Make(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}
	at := conn.NATS().ConnectedUrl()
	back := conn.NATS().StatusChanged(nats.CONNECTED)
	c.Freeze(slices.Index(strings.Split(c.URL(), ","), at))
	brokertest.Receive(t, "the connection is back", back)
	if now := conn.NATS().ConnectedUrl(); now == at {
		t.Errorf("it is connected to %s again, which is frozen", now)
	}
	if _, err := bt.Bucket.Put(t.Context(), "graph", []byte("after"), 0); err != nil {
		t.Error(err)
	}
}

// A server that stands alone is known by an id that is another one after its restart.
func TestServerID(t *testing.T) {
	t.Parallel()
	c := brokertest.NewCluster(t, 1)
	conn := brokertest.Connect(t, c.URL())
	before := conn.ServerID()
	back := conn.NATS().StatusChanged(nats.CONNECTED)
	c.Kill(0)
	c.Restart(0)
	brokertest.Receive(t, "the connection is back", back)
	if after := conn.ServerID(); before == "" || after == "" || after == before {
		t.Errorf("the server was %q, and after its restart %q", before, after)
	}
}

// A reading shows what was acknowledged before it began, whichever server does it:
// the one at hand may be behind.
func TestReadOwnWrites(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("a cluster")
	}
	bt, err := brokertest.Connect(t, brokertest.NewCluster(t, 3).URL()).Make(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	for n := range 100 {
		key := fmt.Sprintf("task.T-%03d", n+1)
		for range 20 { // followers fall behind when much is written
			if _, err := bt.Logs.Publish(ctx, "at.t.log.coder-1", rand.Text(), []byte(rand.Text())); err != nil {
				t.Fatal(err)
			}
		}
		rev, err := bt.Bucket.Put(ctx, key, []byte(key), 0)
		if err != nil {
			t.Fatal(err)
		}
		read := 0
		count := func(broker.Entry) error { read++; return nil }
		if err := bt.Bucket.Past(ctx, 1, count, "task.>"); err != nil || read != n+1 {
			t.Fatalf("after %d writes the history has %d, %v", n+1, read, err)
		}
		if all, err := bt.Bucket.Load(ctx, "task.>"); err != nil || len(all) != n+1 || all[n].Revision != rev {
			t.Fatalf("after %d writes the list has %d, %v", n+1, len(all), err)
		}
	}
}
