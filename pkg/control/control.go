// Package control carries requests to processes, as opposed to mail for agents:
// every process is a NATS micro service that can be found, and every membership
// answers a few verbs (ping, offer, assign, revoked, stop) while it lasts.
//
// A request is core NATS: it is lost if nobody listens, and an unanswered one
// proves nothing about the process. What must not be lost goes through package
// mailbox.
package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"agentteam/pkg/broker"
	"agentteam/pkg/subject"
	"agentteam/pkg/team"
)

// Process is what a process tells of itself.
type Process struct {
	ID      string `json:"id"`
	Kind    string `json:"kind"` // leader or teammate
	Host    string `json:"host"`
	PID     string `json:"pid"`
	Metrics string `json:"metrics"` // URL
	Model   string `json:"model"`   // NoModel if none is configured
	Version string `json:"version"`
	Team    string `json:"team,omitempty"`     // the membership, if it has one now
	AgentID string `json:"agent_id,omitempty"` // "
}

// NoModel is what a process without a model says in place of the model's name.
const NoModel = "none"

// Announce makes the process known until the returned stop is called.
func Announce(c *broker.Conn, p Process) (stop func(), err error) {
	p.Host, _ = os.Hostname()
	p.PID = fmt.Sprint(os.Getpid())
	svc, err := micro.AddService(c.NATS(), micro.Config{
		Name: subject.Service(p.Kind), Version: semver(p.Version), Description: "agentteam " + p.Kind + " process",
		Metadata: map[string]string{"kind": p.Kind, "host": p.Host, "pid": p.PID, "metrics": p.Metrics, "model": p.Model, "version": p.Version},
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

// Processes asks who runs and collects the answers for as long as wait.
func Processes(ctx context.Context, c *broker.Conn, kind string, wait time.Duration) ([]Process, error) {
	subj, err := micro.ControlSubject(micro.InfoVerb, subject.Service(kind), "")
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
	for {
		m, err := sub.NextMsgWithContext(ctx)
		if err != nil { // time is up, or nobody is there
			return all, nil
		}
		var info micro.Info
		if json.Unmarshal(m.Data, &info) == nil {
			md := info.Metadata
			all = append(all, Process{ID: info.ID, Kind: md["kind"], Host: md["host"], PID: md["pid"], Metrics: md["metrics"], Model: md["model"], Version: md["version"]})
		}
	}
}

// Handler answers one verb. What it returns is sent as JSON; an error travels
// with its code, message and hint.
type Handler func(ctx context.Context, data []byte) (any, error)

// Serve answers the verbs of one membership until ctx ends. Each request runs on
// its own goroutine, since claiming a task may wait for the broker.
func Serve(ctx context.Context, c *broker.Conn, t team.TeamID, a team.AgentID, verbs map[subject.Verb]Handler) (stop func(), err error) {
	svc, err := micro.AddService(c.NATS(), micro.Config{
		Name: subject.Service("member"), Version: "0.0.0", Description: "a member's process",
		Metadata: map[string]string{"team": string(t), "agent_id": string(a)},
	})
	if err != nil {
		return nil, fmt.Errorf("serve %s: %w", a.At(t), err)
	}
	for verb, h := range verbs {
		err := svc.AddEndpoint(string(verb), answer(ctx, c, h),
			micro.WithEndpointSubject(subject.Control(t, a, verb)), micro.WithEndpointQueueGroupDisabled())
		if err != nil {
			_ = svc.Stop()
			return nil, fmt.Errorf("serve %s of %s: %w", verb, a.At(t), err)
		}
	}
	return func() { _ = svc.Stop() }, nil
}

// ServePool offers the process as a standby until stop is called.
func ServePool(ctx context.Context, c *broker.Conn, h Handler) (stop func(), err error) {
	sub, err := c.NATS().QueueSubscribe(subject.Pool, subject.Queue, func(m *nats.Msg) {
		v, err := h(ctx, m.Data)
		_ = m.RespondMsg(reply(m.Reply, v, err))
	})
	if err != nil {
		return nil, fmt.Errorf("offer the process as a standby: %w", err)
	}
	return func() { _ = sub.Unsubscribe() }, nil
}

func answer(ctx context.Context, c *broker.Conn, h Handler) micro.Handler {
	return micro.HandlerFunc(func(req micro.Request) {
		go func() {
			v, err := h(ctx, req.Data())
			// Not req.Respond: that writes to req, which the service reads as soon as
			// this handler has returned.
			if to := req.Reply(); to != "" { // else it was sent by Notify
				_ = c.NATS().PublishMsg(reply(to, v, err))
			}
		}()
	})
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

// RequestPool asks one standby.
func RequestPool(ctx context.Context, c *broker.Conn, in any, wait time.Duration) error {
	return request(ctx, c, subject.Pool, in, nil, wait)
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

// Notify sends a request without waiting for an answer.
func Notify(c *broker.Conn, t team.TeamID, a team.AgentID, verb subject.Verb, in any) error {
	data, err := json.Marshal(in)
	if err != nil {
		return err
	}
	return c.NATS().Publish(subject.Control(t, a, verb), data)
}
