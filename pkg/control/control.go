// Package control carries requests to processes, as opposed to mail for agents:
// every process is a NATS micro service that can be found, and every membership
// answers a few verbs (ping, offer, assign, revoked, stop) while it lasts.
//
// A request is core NATS: it is lost if nobody listens, and an unanswered one
// proves nothing about the process. What must not be lost goes through package
// mailbox.
package control

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"agentteam/pkg/broker"
	"agentteam/pkg/subject"
	"agentteam/pkg/team"
)

// Process is what a process tells of itself.
type Process struct {
	ID          string       `json:"id"`   // as it stands in leases
	Kind        string       `json:"kind"` // leader or teammate
	Host        string       `json:"host"`
	PID         string       `json:"pid"`
	Metrics     string       `json:"metrics"` // URL
	Model       string       `json:"model"`   // of its default alias; NoModel if none is configured
	Aliases     []string     `json:"aliases"` // names of models that it has, its default first
	Version     string       `json:"version"`
	Memberships []Membership `json:"memberships,omitempty"` // by team; a teammate has one at most, a leader one for each team it leads
}

// Membership is what a process is in a team. It is told for exactly as long as the
// process works as that member, while the member's record says joined.
type Membership struct {
	Process string       `json:"-"` // ID of the process
	Team    team.TeamID  `json:"team"`
	AgentID team.AgentID `json:"agent_id"`
	Role    string       `json:"role"`
}

// member is the kind of service that a membership is.
const member = "member"

// NoModel is what a process without a model says in place of the model's name.
const NoModel = "none"

// Announce makes the process known until the returned stop is called. It fills in
// host and pid.
func Announce(c *broker.Conn, p Process) (stop func(), err error) {
	p.Host, _ = os.Hostname()
	p.PID = fmt.Sprint(os.Getpid())
	svc, err := micro.AddService(c.NATS(), micro.Config{
		Name: subject.Service(p.Kind), Version: semver(p.Version), Description: "agentteam " + p.Kind + " process",
		Metadata: map[string]string{"process": p.ID, "kind": p.Kind, "host": p.Host, "pid": p.PID, "metrics": p.Metrics, "model": p.Model,
			"aliases": strings.Join(p.Aliases, ","), "version": p.Version},
	})
	if err != nil {
		return nil, fmt.Errorf("announce the process: %w", err)
	}
	return func() { _ = svc.Stop() }, nil
}

// semver: a micro service's version must be one; builds from a work tree are not.
func semver(v string) string {
	if v = strings.TrimPrefix(v, "v"); semverPattern.MatchString(v) {
		return v
	}
	return "0.0.0"
}

var semverPattern = regexp.MustCompile(`^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`)

// Processes asks who runs, collects the answers for as long as wait, and returns
// the processes of this kind ("" = all), each with its memberships, unordered. A
// process that does not answer in time is not among them.
func Processes(ctx context.Context, c *broker.Conn, kind string, wait time.Duration) ([]Process, error) {
	// One question to all services, so that a process and its memberships are seen at
	// the same moment; a ping, since its answer is the shortest that has the metadata.
	subj, err := micro.ControlSubject(micro.PingVerb, "", "")
	if err != nil {
		return nil, err
	}
	inbox := c.NATS().NewInbox()
	sub, err := c.NATS().SubscribeSync(inbox)
	if err != nil {
		return nil, err
	}
	defer sub.Unsubscribe() //nolint:errcheck // the answers were taken
	if err := c.NATS().PublishRequest(subj, inbox, nil); err != nil {
		return nil, team.Errorf(team.Unavailable, "ask who runs: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	var all []Process
	memberships := map[string][]Membership{}
	for {
		m, err := sub.NextMsgWithContext(ctx)
		if err != nil { // time is up, or nobody is there
			break
		}
		var pong micro.Ping
		if json.Unmarshal(m.Data, &pong) != nil {
			continue
		}
		switch md := pong.Metadata; {
		case pong.Name == subject.Service(member):
			memberships[md["process"]] = append(memberships[md["process"]],
				Membership{Process: md["process"], Team: team.TeamID(md["team"]), AgentID: team.AgentID(md["agent_id"]), Role: md["role"]})
		case pong.Name == subject.Service(md["kind"]) && (kind == "" || kind == md["kind"]): // else it is another program's
			all = append(all, Process{ID: md["process"], Kind: md["kind"], Host: md["host"], PID: md["pid"],
				Metrics: md["metrics"], Model: md["model"], Aliases: split(md["aliases"]), Version: md["version"]})
		}
	}
	for i, p := range all {
		all[i].Memberships = memberships[p.ID]
		slices.SortFunc(all[i].Memberships, func(a, b Membership) int { return cmp.Compare(a.Team, b.Team) })
	}
	return all, nil
}

// split undoes the join of names; there may be none.
func split(names string) []string {
	return slices.DeleteFunc(strings.Split(names, ","), func(name string) bool { return name == "" })
}

// Handler answers one verb. What it returns is sent as JSON; an error travels
// with its code, message and hint.
type Handler func(ctx context.Context, data []byte) (any, error)

// Serve tells of one membership and answers its verbs until stop is called. Each
// request runs on its own goroutine, since claiming a task may wait for the broker;
// what comes by [Notify] runs one after another, apart for each verb, and its errors go
// to the connection's log. A verb of which anybody is notified needs a quick handler:
// while it runs, all else that comes for the verb waits, requests too. The context of
// either ends with ctx and with stop. stop returns once every handler has, and then
// none runs again.
func Serve(ctx context.Context, c *broker.Conn, m Membership, verbs map[subject.Verb]Handler) (stop func(), err error) {
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
	for verb, h := range verbs {
		// What of a request is needed is read here: the service reads it, too, as soon
		// as this function has returned.
		err := svc.AddEndpoint(string(verb), micro.HandlerFunc(func(req micro.Request) { d.serve(h, req.Data(), req.Reply()) }),
			micro.WithEndpointSubject(subject.Control(m.Team, m.AgentID, verb)), micro.WithEndpointQueueGroupDisabled())
		if err != nil {
			stop()
			return nil, fmt.Errorf("serve %s of %s: %w", verb, m.AgentID.At(m.Team), err)
		}
	}
	return stop, nil
}

// ServePool offers the process as a standby that has these model aliases until stop is
// called. Requests are served at once, also while another is being served, and stop
// waits, as with [Serve].
func ServePool(ctx context.Context, c *broker.Conn, aliases []string, h Handler) (stop func(), err error) {
	d := newDesk(ctx, c)
	var subs []*nats.Subscription
	stop = func() {
		for _, sub := range subs {
			_ = sub.Unsubscribe()
		}
		d.close()
	}
	for _, alias := range append(slices.Clone(aliases), "") { // whoever finds it in the pool of all finds it in the others
		sub, err := c.NATS().QueueSubscribe(subject.PoolOf(alias), subject.Queue, func(m *nats.Msg) { d.serve(h, m.Data, m.Reply) })
		if err != nil {
			stop()
			return nil, fmt.Errorf("offer the process as a standby: %w", err)
		}
		subs = append(subs, sub)
	}
	return stop, nil
}

// desk runs the handlers of requests, until it is closed.
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

// serve runs h. If somebody waits for its answer, that is on a goroutine, and the
// answer is sent; one that was on its way when the desk closed is answered too, so
// that its sender need not wait in vain.
func (d *desk) serve(h Handler, data []byte, to string) {
	d.mu.Lock()
	closed := d.closed
	if !closed {
		d.serving.Add(1)
	}
	d.mu.Unlock()
	answer := func(v any, err error) { _ = d.conn.NATS().PublishMsg(reply(to, v, err)) }
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

func reply(to string, v any, err error) *nats.Msg {
	msg := nats.NewMsg(to)
	if err == nil {
		msg.Data, err = json.Marshal(v)
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

// Request asks the process of an agent and decodes its answer into out (nil:
// ignored). Errors: those of the process; Unavailable if nobody answers within
// wait, which is no proof that the process is dead.
func Request(ctx context.Context, c *broker.Conn, t team.TeamID, a team.AgentID, verb subject.Verb, in, out any, wait time.Duration) error {
	return request(ctx, c, subject.Control(t, a, verb), in, out, wait)
}

// RequestPool asks one standby of those that have the model alias, or of all if alias
// is "".
func RequestPool(ctx context.Context, c *broker.Conn, alias string, in any, wait time.Duration) error {
	return request(ctx, c, subject.PoolOf(alias), in, nil, wait)
}

func request(ctx context.Context, c *broker.Conn, subj string, in, out any, wait time.Duration) error {
	data, err := json.Marshal(in)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	m, err := c.NATS().RequestWithContext(ctx, subj, data)
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return team.Errorf(team.Unavailable, "nobody serves %s: %w", subj, errNobody)
	case err != nil:
		return team.Errorf(team.Unavailable, "%s did not answer within %v: %w", subj, wait, err)
	}
	if code := m.Header.Get(micro.ErrorCodeHeader); code != "" {
		e := team.Errorf(team.Code(code), "%s", m.Header.Get(micro.ErrorHeader))
		var hint string
		if json.Unmarshal(m.Data, &hint) == nil && hint != "" {
			e = e.WithHint("%s", hint)
		}
		return e
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(m.Data, out); err != nil {
		return fmt.Errorf("answer of %s: %w", subj, err)
	}
	return nil
}

var errNobody = errors.New("no responders")

// Nobody reports whether err is that nobody listens at all, as opposed to one who
// does not answer.
func Nobody(err error) bool { return errors.Is(err, errNobody) }

// Notify sends data as a request to which no answer is wanted. Only a verb whose
// handler is quick may be notified; see [Serve].
func Notify(c *broker.Conn, t team.TeamID, a team.AgentID, verb subject.Verb, data []byte) error {
	return c.NATS().Publish(subject.Control(t, a, verb), data)
}
