package control_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"agentteam/pkg/broker"
	"agentteam/pkg/broker/brokertest"
	"agentteam/pkg/control"
	"agentteam/pkg/subject"
	"agentteam/pkg/team"
)

func TestRequest(t *testing.T) {
	c := brokertest.Connect(t, brokertest.Server(t))
	ctx := t.Context()
	release := make(chan struct{})
	heard := make(chan string, 10)
	stop, err := control.Serve(ctx, c, control.Membership{Team: "t", AgentID: "coder-1"}, map[subject.Verb]control.Handler{
		subject.Ping: func(_ context.Context, data []byte) (any, error) {
			var nonce string
			err := json.Unmarshal(data, &nonce)
			return team.Beat{AgentID: "coder-1", Nonce: nonce}, err
		},
		subject.Assign: func(context.Context, []byte) (any, error) {
			return nil, fmt.Errorf("assign: %w", team.Errorf(team.Blocked, "T-002 等待 T-001\nsecond line").WithHint("choose %q", "另一个 🚀"))
		},
		subject.Offer:   func(context.Context, []byte) (any, error) { <-release; return nil, nil },
		subject.Revoked: func(_ context.Context, data []byte) (any, error) { heard <- string(data); return nil, nil },
		subject.Stop:    func(context.Context, []byte) (any, error) { return nil, fmt.Errorf("of no code") },
	})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(verb subject.Verb, in, out any, wait time.Duration) error {
		return control.Request(ctx, c, "t", "coder-1", verb, in, out, wait)
	}
	var b team.Beat
	if err := ask(subject.Ping, "n-1 🚀", &b, time.Minute); err != nil || b.AgentID != "coder-1" || b.Nonce != "n-1 🚀" {
		t.Errorf("ping: %+v, %v", b, err)
	}
	err = ask(subject.Assign, nil, nil, time.Minute)
	if team.CodeOf(err) != team.Blocked || team.HintOf(err) != `choose "另一个 🚀"` || err.Error() != "assign: T-002 等待 T-001 second line" {
		t.Errorf("a refusal arrives as %v (%s), hint %q", err, team.CodeOf(err), team.HintOf(err))
	}
	if err := ask(subject.Stop, nil, nil, time.Minute); team.CodeOf(err) != team.Unavailable {
		t.Errorf("an error without a code arrives as %v (%s)", err, team.CodeOf(err))
	}
	err = ask(subject.Offer, nil, nil, 50*time.Millisecond)
	if team.CodeOf(err) != team.Unavailable || control.Nobody(err) {
		t.Errorf("no answer in time: %v, nobody is %v", err, control.Nobody(err))
	}
	// The pending request above must not keep another from being served.
	if err := control.Notify(c, "t", "coder-1", subject.Revoked, []byte(`"T-001"`)); err != nil || <-heard != `"T-001"` {
		t.Errorf("notify: %v", err)
	}
	close(release)

	stop()
	err = ask(subject.Ping, nil, nil, time.Minute)
	if team.CodeOf(err) != team.Unavailable || !control.Nobody(err) {
		t.Errorf("once nobody serves: %v, nobody is %v", err, control.Nobody(err))
	}
}

// What comes by Notify runs one after another, in order, and a request of the same verb
// after what came before it.
func TestNotifiedInOrder(t *testing.T) {
	c := brokertest.Connect(t, brokertest.Server(t))
	const all = 100
	come := make(chan struct{}) // closed once all are here
	var running atomic.Int32
	var mu sync.Mutex
	var order []string
	stop, err := control.Serve(t.Context(), c, control.Membership{Team: "t", AgentID: "coder-1"}, map[subject.Verb]control.Handler{
		subject.Offer: func(_ context.Context, data []byte) (any, error) {
			if running.Add(1) > 1 {
				t.Error("two handlers run at once")
			}
			defer running.Add(-1)
			<-come
			mu.Lock()
			defer mu.Unlock()
			order = append(order, string(data))
			return order, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	var want []string
	for n := range all {
		want = append(want, fmt.Sprint(n))
		if err := control.Notify(c, "t", "coder-1", subject.Offer, []byte(want[n])); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	close(come)
	var got []string
	if err := control.Request(t.Context(), c, "t", "coder-1", subject.Offer, all, &got, time.Minute); err != nil || !slices.Equal(got, append(want, fmt.Sprint(all))) {
		t.Errorf("handled were %v, %v", got, err)
	}
}

// Each request to the pool is taken by one standby.
func TestPool(t *testing.T) {
	url := brokertest.Server(t)
	ctx := t.Context()
	c := brokertest.Connect(t, url)
	if err := control.RequestPool(ctx, c, "", nil, time.Minute); !control.Nobody(err) {
		t.Errorf("an empty pool: %v", err)
	}
	var taken atomic.Int32
	for range 3 {
		standby := brokertest.Connect(t, url)
		stop, err := control.ServePool(ctx, standby, nil, func(_ context.Context, data []byte) (any, error) {
			if taken.Add(1) > 5 {
				return nil, team.Errorf(team.Busy, "taken: %s", data)
			}
			return nil, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(stop)
		if err := standby.Flush(ctx); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 5 {
		if err := control.RequestPool(ctx, c, "", i, time.Minute); err != nil {
			t.Error(err)
		}
	}
	if n := taken.Load(); n != 5 {
		t.Errorf("5 requests were taken %d times", n)
	}
	if err := control.RequestPool(ctx, c, "", "x", time.Minute); team.CodeOf(err) != team.Busy {
		t.Errorf("a busy standby: %v, want busy", err)
	}
}

// A handler is done once stop has returned, and nothing is served after it: what
// the process does then, such as giving its task back, is the last word.
func TestStopWaits(t *testing.T) {
	c := brokertest.Connect(t, brokertest.Server(t))
	begun := make(chan struct{})
	var served, done atomic.Int32
	stop, err := control.Serve(t.Context(), c, control.Membership{Team: "t", AgentID: "coder-1"}, map[subject.Verb]control.Handler{
		subject.Assign: func(ctx context.Context, _ []byte) (any, error) {
			if served.Add(1) == 1 {
				close(begun)
			}
			<-ctx.Done()
			done.Add(1)
			return nil, ctx.Err()
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	answered := make(chan error, 1)
	go func() {
		answered <- control.Request(t.Context(), c, "t", "coder-1", subject.Assign, nil, nil, time.Minute)
	}()
	<-begun
	stop()
	if served.Load() != done.Load() {
		t.Error("a handler still runs after stop")
	}
	if err := <-answered; team.CodeOf(err) != team.Unavailable || control.Nobody(err) {
		t.Errorf("the request under way was answered %v", err)
	}
}

// A request that comes while another is being served is answered at once.
func TestPoolServesTogether(t *testing.T) {
	c := brokertest.Connect(t, brokertest.Server(t))
	first, release := make(chan struct{}), make(chan struct{})
	var served atomic.Int32
	stop, err := control.ServePool(t.Context(), c, nil, func(context.Context, []byte) (any, error) {
		if served.Add(1) > 1 {
			return nil, team.Errorf(team.Busy, "this standby was just taken")
		}
		close(first)
		<-release
		return nil, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	taken := make(chan error, 1)
	go func() { taken <- control.RequestPool(t.Context(), c, "", nil, time.Minute) }()
	<-first
	if err := control.RequestPool(t.Context(), c, "", nil, time.Minute); team.CodeOf(err) != team.Busy {
		t.Errorf("while the first request is served: %v, want busy", err)
	}
	close(release)
	if err := <-taken; err != nil {
		t.Error(err)
	}
	stop()
}

func TestProcesses(t *testing.T) {
	url := brokertest.Server(t)
	c := brokertest.Connect(t, url)
	var alice *broker.Conn
	var leaves func()
	for _, p := range []control.Process{
		{ID: "h/1/a", Kind: "leader", Metrics: "http://127.0.0.1:1/metrics", Model: "m", Aliases: []string{"strong", "qwen3:8b"}, Version: "v1.2.3",
			Memberships: []control.Membership{{Team: "t", AgentID: "leader", Role: "leader"}, {Team: "u", AgentID: "leader", Role: "leader"}}},
		{ID: "h/2/b", Kind: "teammate", Model: control.NoModel, Version: "(devel)",
			Memberships: []control.Membership{{Team: "t", AgentID: "alice", Role: "coder"}}},
		{ID: "h/3/c", Kind: "teammate", Model: control.NoModel, Version: "abc-dirty"},
	} {
		own := brokertest.Connect(t, url)
		stop, err := control.Announce(own, p)
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
		for _, m := range p.Memberships {
			m.Process = p.ID
			alice = own
			if leaves, err = control.Serve(t.Context(), own, m, nil); err != nil {
				t.Fatal(err)
			}
		}
		if err := own.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	ask := func(kind string) map[string]control.Process {
		t.Helper()
		all, err := control.Processes(t.Context(), c, kind, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		byID := map[string]control.Process{}
		for _, p := range all {
			if byID[p.ID] = p; p.PID == "" || p.Host == "" || kind != "" && p.Kind != kind {
				t.Errorf("asked for %q: %+v", kind, p)
			}
		}
		return byID
	}
	for kind, want := range map[string]int{"leader": 1, "teammate": 2, "": 3, "member": 0} {
		if got := ask(kind); len(got) != want {
			t.Errorf("%d processes of kind %q, want %d", len(got), kind, want)
		}
	}
	p := ask("leader")["h/1/a"]
	if p.Metrics != "http://127.0.0.1:1/metrics" || p.Model != "m" || fmt.Sprint(p.Aliases) != "[strong qwen3:8b]" || p.Version != "v1.2.3" || fmt.Sprint(p.Memberships) != "[{h/1/a t leader leader} {h/1/a u leader leader}]" {
		t.Errorf("the leader tells %+v", p)
	}
	if all := ask("teammate"); fmt.Sprint(all["h/2/b"].Memberships) != "[{h/2/b t alice coder}]" || all["h/3/c"].Memberships != nil || len(all["h/3/c"].Aliases) != 0 {
		t.Errorf("the teammates tell %+v", all)
	}
	leaves()
	if err := alice.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p := ask("teammate")["h/2/b"]; p.ID == "" || p.Memberships != nil {
		t.Errorf("once its membership is over, the process tells %+v", p)
	}
}
