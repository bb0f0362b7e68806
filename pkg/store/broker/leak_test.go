package broker_test

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/brokertest"
)

// Nothing piles up while NATS is away behind something that takes connections and hangs
// up, and nothing stays of connections that come and go.
func TestNothingPilesUp(t *testing.T) {
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		t.Skip("there is no /proc")
	}
	if testing.Short() {
		t.Skip("takes seconds")
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // it closes what was forgotten, sooner or later
	const (
		flaps = 50
		tries = 1700 // of ten minutes, one every 350 ms
	)
	proxy := brokertest.NewProxy(t, brokertest.Server(t))
	c := brokertest.Connect(t, proxy.URL)
	bt, err := c.Make(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}
	// What a member has: something that it follows, and an inbox.
	ctx, cancel := context.WithCancel(t.Context())
	seen := make(chan string, 1)
	mail, err := bt.Messages.Consumer(ctx, "coder-1-1", broker.Mark{}, "at.t.inbox.coder-1.>")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 2)
	go func() {
		ended <- bt.Bucket.Watch(ctx, func(e broker.Entry) error { seen <- string(e.Value); return nil }, nil, "graph")
	}()
	go func() {
		ended <- mail.Run(ctx, func(d broker.Delivery) error { return d.Ack() })
	}()
	t.Cleanup(func() {
		cancel()
		for range 2 {
			if err := brokertest.Receive(t, "what follows ends", ended); err != nil {
				t.Error(err)
			}
		}
	})
	rev := uint64(0)
	works := func(value string) {
		t.Helper()
		if rev, err = bt.Bucket.Put(t.Context(), "graph", []byte(value), rev); err != nil {
			t.Fatal(err)
		}
		for brokertest.Receive(t, "the watch shows "+value, seen) != value {
		}
	}
	// What ends does so a moment after that which ended it.
	atBase := func(base [2]int) (now [2]int) {
		for limit := time.Now().Add(brokertest.Longest); time.Now().Before(limit); time.Sleep(5 * time.Millisecond) {
			if now = open(t); now[0] <= base[0] && now[1] <= base[1] {
				break
			}
		}
		return now
	}

	works("before")
	proxy.Close()
	brokertest.Receive(t, "the client tries to connect", proxy.Refused)
	proxy.Open()
	works("after the first flap") // from here on everything is as it will be
	base := open(t)
	for range flaps {
		proxy.Close()
		_ = c.NATS().ForceReconnect() // instead of waiting
		brokertest.Receive(t, "the client tries to connect", proxy.Refused)
		proxy.Open()
		_ = c.NATS().ForceReconnect()
		works(time.Now().String())
	}
	if now := atBase(base); now[0] > base[0] || now[1] > base[1] {
		t.Errorf("after %d flaps %v sockets and goroutines, before %v", flaps, now, base)
	}
	proxy.Close()
	brokertest.Receive(t, "the client tries to connect", proxy.Refused)
	for range tries {
		_ = c.NATS().ForceReconnect()
		brokertest.Receive(t, "the client tries to connect", proxy.Refused)
	}
	if now := open(t); now[0] > base[0] {
		t.Errorf("after %d tries to connect %d sockets, before %d", tries, now[0], base[0])
	}
	proxy.Open()
	works("after all")
	if now := atBase(base); now[0] > base[0] || now[1] > base[1] {
		t.Errorf("back again with %v sockets and goroutines, before %v", now, base)
	}
}

// open counts the sockets and goroutines of this process. Other descriptors are those
// of the server, and pipes through which the proxy copies.
func open(t *testing.T) (n [2]int) {
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		if to, _ := os.Readlink("/proc/self/fd/" + fd.Name()); strings.HasPrefix(to, "socket:") {
			n[0]++
		}
	}
	n[1] = runtime.NumGoroutine()
	return n
}
