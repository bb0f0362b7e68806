package control_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"agentteam/pkg/agent/control"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

const coder = team.AgentID("coder-1")

// serve has the test's own process answer for coder-1 until stop is called.
func serve(t *testing.T, bt *broker.Storage, h control.Handlers) (stop func()) {
	t.Helper()
	stop, err := control.Serve(t.Context(), bt.Conn, control.Membership{Team: bt.ID, AgentID: coder}, h)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return stop
}

// Every verb arrives as it was sent, and what is answered comes back.
func TestVerbs(t *testing.T) {
	bt := brokertest.Team(t, "t")
	ctx := t.Context()
	heard := make(chan string, 10)
	task := team.Task{V: team.Protocol, ID: "T-007", Title: "first 🚀", Status: team.InProgress, Assignee: coder, Epoch: 3, Revision: 9,
		Kept: team.Extra{"shape": json.RawMessage(`"round"`), "revision": json.RawMessage(`1`)}}
	// Whoever claims an offered task writes its record back: also what only a newer
	// program put there.
	whole := func(got team.Task) bool {
		kept := got.Kept
		return got.ID == task.ID && got.Title == task.Title && got.Revision == 9 && len(kept) == 1 && string(kept["shape"]) == `"round"`
	}
	stop := serve(t, bt, control.Handlers{
		Ping: func() team.Heartbeat { return team.Heartbeat{AgentID: coder, Turn: 4} },
		Assign: func(_ context.Context, a team.Assignment) (team.Task, error) {
			if until := time.Until(a.Until); until <= 0 || until > 15*time.Second {
				t.Errorf("the order holds for %v", until)
			}
			if a.Until = (time.Time{}); a != (team.Assignment{Task: "T-007", By: team.Leader, Take: true, Epoch: 2}) {
				t.Errorf("assigned %+v", a)
			}
			return task, nil
		},
		Offer: func(got team.Task) {
			if !whole(got) {
				t.Errorf("offered %+v", got)
			}
			heard <- "offer"
		},
		Revoked: func(id team.TaskID) { heard <- "revoked " + string(id) },
		Compact: func() { heard <- "compact" },
		Stop:    func() { heard <- "stop" },
	})
	if b, err := control.Ping(ctx, bt, coder, time.Minute); err != nil || b.AgentID != coder || b.Turn != 4 {
		t.Errorf("ping: %+v, %v", b, err)
	}
	got, err := control.Assign(ctx, bt, coder, team.Assignment{Task: "T-007", By: team.Leader, Take: true, Epoch: 2})
	if err != nil || !whole(got) || !got.HeldBy(team.Holder{Agent: coder}) {
		t.Errorf("assign: %+v, %v", got, err)
	}
	for want, send := range map[string]func() error{
		"offer":         func() error { return control.SendOffer(bt, coder, task) },
		"revoked T-001": func() error { return control.SendRevoked(bt, coder, "T-001") },
		"compact":       func() error { return control.Compact(ctx, bt, coder) },
		"stop":          func() error { return control.Stop(ctx, bt, coder) },
	} {
		if err := send(); err != nil {
			t.Errorf("%s: %v", want, err)
		} else if got := brokertest.Receive(t, "the request arrives", heard); got != want {
			t.Errorf("%s arrives as %s", want, got)
		}
	}
	if err := control.SendStop(bt, coder); err != nil || brokertest.Receive(t, "the request arrives", heard) != "stop" {
		t.Errorf("told to stop: %v", err)
	}
	if task.Kept["revision"] == nil {
		t.Error("the caller's task was changed")
	}

	stop()
	if _, err := control.Ping(ctx, bt, coder, time.Minute); team.CodeOf(err) != team.Unavailable || !control.NoResponders(err) {
		t.Errorf("once nobody serves: %v, nobody is %v", err, control.NoResponders(err))
	}
}

// A verb without a handler is served by nobody.
func TestUnservedVerb(t *testing.T) {
	bt := brokertest.Team(t, "t")
	serve(t, bt, control.Handlers{Ping: func() team.Heartbeat { return team.Heartbeat{} }})
	order := control.Order{Team: "t", Agent: coder, Incarnation: 1}
	if err := control.StartAtLeader(t.Context(), bt.Conn, order); !control.NoResponders(err) {
		t.Errorf("StartAtLeader = %v", err)
	}
	if err := control.Stop(t.Context(), bt, coder); !control.NoResponders(err) {
		t.Errorf("Stop = %v", err)
	}
}

// The process that leads gets orders for children.
func TestStartAtLeader(t *testing.T) {
	bt := brokertest.Team(t, "t")
	want := control.Order{Team: "t", Agent: coder, Incarnation: 2}
	stop, err := control.Serve(t.Context(), bt.Conn, control.Membership{Team: "t", AgentID: team.Leader}, control.Handlers{
		Start: func(_ context.Context, o control.Order) error {
			if o != want {
				return fmt.Errorf("the order is %+v", o)
			}
			return team.Errorf(team.NotFound, "no such program")
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if err := control.StartAtLeader(t.Context(), bt.Conn, want); team.CodeOf(err) != team.NotFound {
		t.Errorf("StartAtLeader = %v", err)
	}
}

// An error arrives with its code and hint; silence is no proof of death, and keeps no
// other request from being served.
func TestRefused(t *testing.T) {
	bt := brokertest.Team(t, "t")
	ctx := t.Context()
	release := make(chan struct{})
	var pings atomic.Int32
	refusals := map[team.TaskID]error{
		"T-001": fmt.Errorf("assign: %w", team.Errorf(team.Blocked, "T-002 等待 T-001\nsecond line").WithHint("choose %q", "另一个 🚀")),
		"T-002": errors.New("of no code"),
	}
	serve(t, bt, control.Handlers{
		Ping: func() team.Heartbeat {
			if pings.Add(1) == 1 {
				<-release
			}
			return team.Heartbeat{}
		},
		Assign: func(_ context.Context, a team.Assignment) (team.Task, error) { return team.Task{}, refusals[a.Task] },
	})
	_, err := control.Ping(ctx, bt, coder, 50*time.Millisecond)
	if team.CodeOf(err) != team.Unavailable || control.NoResponders(err) {
		t.Errorf("no answer in time: %v, nobody is %v", err, control.NoResponders(err))
	}
	_, err = control.Assign(ctx, bt, coder, team.Assignment{Task: "T-001"})
	if team.CodeOf(err) != team.Blocked || team.HintOf(err) != `choose "另一个 🚀"` || err.Error() != "assign: T-002 等待 T-001 second line" {
		t.Errorf("a refusal arrives as %v (%s), hint %q", err, team.CodeOf(err), team.HintOf(err))
	}
	if _, err = control.Assign(ctx, bt, coder, team.Assignment{Task: "T-002"}); team.CodeOf(err) != team.Unavailable {
		t.Errorf("an error without a code arrives as %v (%s)", err, team.CodeOf(err))
	}
	close(release)
}

// An order holds until its author has given up, by the clock of the process that gets it,
// however far the hosts' clocks are apart.
func TestOrderHoldsByTheReceiversClock(t *testing.T) {
	bt := brokertest.Team(t, "t")
	clock := time.Date(1999, 12, 31, 23, 59, 0, 0, time.UTC) // of a host whose clock was never set
	var until time.Time
	for verb, answer := range map[subject.Verb]func(data []byte) any{
		subject.Ping: func(data []byte) any {
			return team.Heartbeat{AgentID: coder, Nonce: string(data[1 : len(data)-1]), Clock: &clock}
		},
		subject.Assign: func(data []byte) any {
			var order team.Assignment
			if err := json.Unmarshal(data, &order); err != nil {
				t.Error(err)
			}
			until = order.Until
			return team.Task{ID: order.Task}
		},
	} {
		_, err := bt.Conn.NATS().Subscribe(subject.Control("t", coder, verb), func(m *nats.Msg) {
			data, _ := json.Marshal(answer(m.Data))
			_ = m.Respond(data)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := control.Assign(t.Context(), bt, coder, team.Assignment{Task: "T-001"}); err != nil || !until.After(clock) || until.After(clock.Add(15*time.Second)) {
		t.Errorf("until %v, %v", until, err)
	}
}

// What cannot be read is refused, and no handler hears of it.
func TestDamagedRequest(t *testing.T) {
	bt := brokertest.Team(t, "t")
	serve(t, bt, control.Handlers{
		Assign: func(context.Context, team.Assignment) (team.Task, error) {
			t.Error("assigned")
			return team.Task{}, nil
		},
		Start:   func(context.Context, control.Order) error { t.Error("ordered"); return nil },
		Offer:   func(team.Task) { t.Error("offered") },
		Revoked: func(team.TaskID) { t.Error("revoked") },
	})
	for verb, data := range map[subject.Verb]string{
		subject.Assign: `{"task":7}`, subject.Start: `[]`, subject.Offer: `{"id":7}`, subject.Revoked: `{`,
	} {
		m, err := bt.Conn.NATS().Request(subject.Control("t", coder, verb), []byte(data), time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if code := m.Header.Get("Nats-Service-Error-Code"); code != string(team.InvalidArgument) {
			t.Errorf("%s %s is answered %q %s", verb, data, code, m.Data)
		}
	}
}

// Programs of other versions, and in other languages, answer what is in the protocol and
// may leave out or add what is not.
func TestAnswersOfOthers(t *testing.T) {
	bt := brokertest.Team(t, "t")
	answers := func(verb subject.Verb, answer string) {
		_, err := bt.Conn.NATS().Subscribe(subject.Control("t", coder, verb), func(m *nats.Msg) { _ = m.Respond([]byte(answer)) })
		if err != nil {
			t.Fatal(err)
		}
	}
	answers(subject.Assign, `{"v":2,"id":"T-001","status":"in_progress","assignee":"coder-1","epoch":2,"shape":"round"}`) // without a revision
	task, err := control.Assign(t.Context(), bt, coder, team.Assignment{Task: "T-001"})
	if err != nil || task.ID != "T-001" || task.Epoch != 2 || task.Revision != 0 || string(task.Kept["shape"]) != `"round"` {
		t.Errorf("assigned %+v, %v", task, err)
	}
	answers(subject.Ping, `{"agent_id":"coder-1","n":1,"nonce":"of another ping"}`)
	if _, err := control.Ping(t.Context(), bt, coder, time.Minute); team.CodeOf(err) != team.Unavailable || !strings.Contains(err.Error(), "another ping") {
		t.Errorf("Ping = %v", err)
	}
}

// The bytes of a request and its answer, as docs/protocol.md has them.
func TestWire(t *testing.T) {
	bt := brokertest.Team(t, "t")
	serve(t, bt, control.Handlers{
		Ping: func() team.Heartbeat { return team.Heartbeat{AgentID: coder, N: 1} },
		Assign: func(context.Context, team.Assignment) (team.Task, error) {
			return team.Task{ID: "T-001", Revision: 9}, nil
		},
		Compact: func() {},
		Revoked: func(team.TaskID) {},
	})
	ask := func(verb subject.Verb, data string) (fields map[string]any) {
		t.Helper()
		m, err := bt.Conn.NATS().Request(subject.Control("t", coder, verb), []byte(data), time.Minute)
		if err == nil {
			err = json.Unmarshal(m.Data, &fields)
		}
		if err != nil {
			t.Errorf("%s: %v", verb, err)
		}
		return fields
	}
	if f := ask(subject.Ping, `"word"`); f["nonce"] != "word" || f["agent_id"] != "coder-1" {
		t.Errorf("ping is answered %v", f)
	}
	for _, data := range []string{"", "null"} {
		if f := ask(subject.Ping, data); f["nonce"] != nil || f["agent_id"] != "coder-1" {
			t.Errorf("a ping of %q is answered %v", data, f)
		}
	}
	if f := ask(subject.Assign, `{"task":"T-001","by":"leader","epoch":0}`); f["id"] != "T-001" || f["revision"] != 9.0 {
		t.Errorf("assign is answered %v", f)
	}
	for verb, data := range map[subject.Verb]string{subject.Compact: "null", subject.Revoked: `"T-001"`} {
		if f := ask(verb, data); f != nil {
			t.Errorf("%s is answered %v, want null", verb, f)
		}
	}
}

// What is told runs one after another, in order, and a request of the same verb after
// what came before it.
func TestToldInOrder(t *testing.T) {
	bt := brokertest.Team(t, "t")
	const all = 100
	var running atomic.Int32
	var mu sync.Mutex
	var got, want []uint64
	serve(t, bt, control.Handlers{Offer: func(task team.Task) {
		if running.Add(1) > 1 {
			t.Error("two handlers run at once")
		}
		defer running.Add(-1)
		mu.Lock()
		defer mu.Unlock()
		got = append(got, task.Revision)
	}})
	mu.Lock() // until all are here
	for n := range uint64(all) {
		want = append(want, n)
		if err := control.SendOffer(bt, coder, team.Task{ID: "T-001", Revision: n}); err != nil {
			t.Fatal(err)
		}
	}
	if err := bt.Conn.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	mu.Unlock()
	if _, err := bt.Conn.NATS().Request(subject.Control("t", coder, subject.Offer), []byte(`{"revision":100}`), time.Minute); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if want = append(want, all); !slices.Equal(got, want) {
		t.Errorf("handled were %v", got)
	}
}

// Each order is taken by one standby.
func TestPool(t *testing.T) {
	url := brokertest.Server(t)
	ctx := t.Context()
	c := brokertest.Connect(t, url)
	if err := control.StartAtStandby(ctx, c, "", control.Order{}); !control.NoResponders(err) {
		t.Errorf("an empty pool: %v", err)
	}
	var taken atomic.Int32
	for range 3 {
		standby := brokertest.Connect(t, url)
		stop, err := control.ServePool(ctx, standby, nil, func(_ context.Context, o control.Order) error {
			if taken.Add(1) > 5 {
				return team.Errorf(team.Busy, "taken: %+v", o)
			}
			return nil
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
		if err := control.StartAtStandby(ctx, c, "", control.Order{Team: "t", Agent: coder, Incarnation: uint64(i)}); err != nil {
			t.Error(err)
		}
	}
	if n := taken.Load(); n != 5 {
		t.Errorf("5 orders were taken %d times", n)
	}
	err := control.StartAtStandby(ctx, c, "", control.Order{Team: "t", Agent: coder, Incarnation: 7})
	if team.CodeOf(err) != team.Busy || !strings.Contains(err.Error(), "{Team:t Agent:coder-1 Incarnation:7 ") {
		t.Errorf("a busy standby: %v, want busy", err)
	}
}

// A handler is done once stop has returned, and nothing is served after it: what
// the process does then, such as giving its task back, is the last word.
func TestStopWaits(t *testing.T) {
	bt := brokertest.Team(t, "t")
	begun := make(chan struct{})
	var served, done atomic.Int32
	stop := serve(t, bt, control.Handlers{
		Assign: func(ctx context.Context, _ team.Assignment) (team.Task, error) {
			if served.Add(1) == 1 {
				close(begun)
			}
			<-ctx.Done()
			done.Add(1)
			return team.Task{}, ctx.Err()
		},
	})
	answered := make(chan error, 1)
	go func() {
		_, err := control.Assign(t.Context(), bt, coder, team.Assignment{})
		answered <- err
	}()
	brokertest.Receive(t, "the request arrives", begun)
	stop()
	if served.Load() != done.Load() {
		t.Error("a handler still runs after stop")
	}
	if err := brokertest.Receive(t, "the request is answered", answered); team.CodeOf(err) != team.Unavailable || control.NoResponders(err) {
		t.Errorf("the request under way was answered %v", err)
	}
}

// An order that comes while another is being carried out is answered at once.
func TestPoolServesTogether(t *testing.T) {
	c := brokertest.Connect(t, brokertest.Server(t))
	first, release := make(chan struct{}), make(chan struct{})
	var served atomic.Int32
	stop, err := control.ServePool(t.Context(), c, nil, func(context.Context, control.Order) error {
		if served.Add(1) > 1 {
			return team.Errorf(team.Busy, "this standby was just taken")
		}
		close(first)
		<-release
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	taken := make(chan error, 1)
	go func() { taken <- control.StartAtStandby(t.Context(), c, "", control.Order{}) }()
	brokertest.Receive(t, "the first order arrives", first)
	if err := control.StartAtStandby(t.Context(), c, "", control.Order{}); team.CodeOf(err) != team.Busy {
		t.Errorf("while the first order is carried out: %v, want busy", err)
	}
	close(release)
	if err := brokertest.Receive(t, "the first order is answered", taken); err != nil {
		t.Error(err)
	}
	stop()
}
