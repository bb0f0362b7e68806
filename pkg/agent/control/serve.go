package control

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

// Handlers are the functions that serve a member's verbs. A verb whose handler is nil is not
// served.
//
// Each call of Ping, Assign and Start runs on its own goroutine and may block until its context
// ends. The others must not block: they pass on the request, and so have neither a context nor an
// error. Their calls without a reply subject run on the goroutine that reads the verb from NATS: in
// the order in which they were sent, and all later requests of the verb wait for them.
//
// All must be safe for concurrent use.
type Handlers struct {
	Ping   func() team.Heartbeat
	Assign func(context.Context, team.Assignment) (team.Task, error)
	Start  func(context.Context, Order) error // the leader's only

	Offer   func(team.Task)
	Revoked func(team.TaskID)
	Compact func()
	Stop    func()
}

// handler serves one verb: it reads a request and returns the JSON of the answer, nil for null. An
// error is sent with its code, message and hint.
type handler func(ctx context.Context, data []byte) ([]byte, error)

// verbs returns a handler for each verb that is served.
func (h Handlers) verbs() map[subject.Verb]handler {
	verbs := map[subject.Verb]handler{}
	if h.Ping != nil {
		verbs[subject.Ping] = func(_ context.Context, data []byte) ([]byte, error) {
			b := h.Ping()
			_ = json.Unmarshal(data, &b.Nonce) // a ping without one is answered too
			now := time.Now()
			b.Clock = &now
			return json.Marshal(b)
		}
	}
	if h.Assign != nil {
		verbs[subject.Assign] = func(ctx context.Context, data []byte) ([]byte, error) {
			a, err := decode[team.Assignment](data)
			if err != nil {
				return nil, team.Errorf(team.InvalidArgument, "assignment: %w", err)
			}
			t, err := h.Assign(ctx, a)
			if err != nil {
				return nil, err
			}
			return encodeTask(t)
		}
	}
	if h.Start != nil {
		verbs[subject.Start] = starts(h.Start)
	}
	if h.Offer != nil {
		verbs[subject.Offer] = notify("offer", decodeTask, h.Offer)
	}
	if h.Revoked != nil {
		verbs[subject.Revoked] = notify("revocation", decode[team.TaskID], h.Revoked)
	}
	for verb, f := range map[subject.Verb]func(){subject.Compact: h.Compact, subject.Stop: h.Stop} {
		if f != nil {
			verbs[verb] = func(context.Context, []byte) ([]byte, error) {
				f()
				return nil, nil
			}
		}
	}
	return verbs
}

// notify serves a verb that only sends a notification.
func notify[T any](what string, read func([]byte) (T, error), f func(T)) handler {
	return func(_ context.Context, data []byte) ([]byte, error) {
		v, err := read(data)
		if err != nil {
			return nil, team.Errorf(team.InvalidArgument, "%s: %w", what, err)
		}
		f(v)
		return nil, nil
	}
}

// starts serves an order to start a member.
func starts(f func(context.Context, Order) error) handler {
	return func(ctx context.Context, data []byte) ([]byte, error) {
		o, err := decode[Order](data)
		if err != nil {
			return nil, team.Errorf(team.InvalidArgument, "order: %w", err)
		}
		return nil, f(ctx, o)
	}
}

func decode[T any](data []byte) (v T, err error) {
	err = json.Unmarshal(data, &v)
	return v, err
}

// Serve announces one membership and answers its verbs until stop is called. The handlers' context
// ends with ctx and with stop. An unreadable notification goes to the connection's log. stop
// returns once every handler has returned; none runs after that.
func Serve(ctx context.Context, c *broker.Conn, m Membership, h Handlers) (stop func(), err error) {
	svc, err := micro.AddService(c.NATS(), micro.Config{
		Name: subject.Service(member), Version: "0.0.0", Description: "a member's process",
		Metadata: map[string]string{"process": m.Process, "team": string(m.Team), "agent_id": string(m.AgentID), "role": m.Role},
	})
	if err != nil {
		return nil, fmt.Errorf("serve %s: %w", m.AgentID.At(m.Team), err)
	}
	d := newDesk(ctx, c)
	stop = func() {
		_ = svc.Stop()
		d.close()
	}
	for verb, h := range h.verbs() {
		// The needed parts of a request are read here: the service reads it, too, as soon as this
		// function has returned.
		err := svc.AddEndpoint(string(verb), micro.HandlerFunc(func(req micro.Request) { d.serve(h, req.Data(), req.Reply()) }),
			micro.WithEndpointSubject(subject.Control(m.Team, m.AgentID, verb)), micro.WithEndpointQueueGroupDisabled())
		if err != nil {
			stop()
			return nil, fmt.Errorf("serve %s of %s: %w", verb, m.AgentID.At(m.Team), err)
		}
	}
	return stop, nil
}

// ServePool offers the process as a standby for these model aliases until stop is called; take has
// it become the member that an order names. Orders are served immediately, also while another is
// being served, and stop waits, as with [Serve].
func ServePool(ctx context.Context, c *broker.Conn, aliases []string, take func(context.Context, Order) error) (stop func(), err error) {
	d, h := newDesk(ctx, c), starts(take)
	var subs []*nats.Subscription
	stop = func() {
		for _, sub := range subs {
			_ = sub.Unsubscribe()
		}
		d.close()
	}
	for _, alias := range append(slices.Clone(aliases), "") { // last: a spawner that finds it in the pool of all finds it in the others
		sub, err := c.NATS().QueueSubscribe(subject.PoolOf(alias), subject.Queue, func(m *nats.Msg) { d.serve(h, m.Data, m.Reply) })
		if err != nil {
			stop()
			return nil, fmt.Errorf("offer the process as a standby: %w", err)
		}
		subs = append(subs, sub)
	}
	return stop, nil
}

// desk runs the handlers of requests until it is closed.
type desk struct {
	conn   *broker.Conn
	ctx    context.Context
	cancel context.CancelFunc

	mu      sync.Mutex // so that no handler begins while close waits for the others
	closed  bool
	serving sync.WaitGroup
}

func newDesk(ctx context.Context, c *broker.Conn) *desk {
	d := &desk{conn: c}
	d.ctx, d.cancel = context.WithCancel(ctx)
	return d
}

// serve runs h. If the sender waits for an answer, h runs on a goroutine, and the answer is sent. A
// request that arrived while the desk closed is answered with an error, so that its sender does not
// wait in vain.
func (d *desk) serve(h handler, data []byte, to string) {
	d.mu.Lock()
	closed := d.closed
	if !closed {
		d.serving.Add(1)
	}
	d.mu.Unlock()
	answer := func(data []byte, err error) { _ = d.conn.NATS().PublishMsg(reply(to, data, err)) }
	switch {
	case closed && to != "":
		answer(nil, team.Errorf(team.Unavailable, "the process has just left"))
	case closed:
	case to == "": // every task comes this way, and a goroutine for each is not for nothing
		defer d.serving.Done()
		if _, err := h(d.ctx, data); err != nil {
			d.conn.Logger().Debug("notification failed", "err", err)
		}
	default:
		go func() {
			defer d.serving.Done()
			answer(h(d.ctx, data))
		}()
	}
}

func (d *desk) close() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.cancel()
	d.serving.Wait()
}

func reply(to string, data []byte, err error) *nats.Msg {
	msg := nats.NewMsg(to)
	if msg.Data = data; data == nil {
		msg.Data = []byte("null")
	}
	if err != nil {
		code := team.CodeOf(err)
		if code == "" {
			code = team.Unavailable
		}
		msg.Header.Set(micro.ErrorCodeHeader, string(code))
		msg.Header.Set(micro.ErrorHeader, err.Error())
		msg.Data, _ = json.Marshal(team.HintOf(err))
	}
	return msg
}
