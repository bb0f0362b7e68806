// Package teammate is the teammate process: a standby that becomes a member when
// it is asked and a standby again when its membership ends, or one named member
// from the start.
package teammate

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"sync/atomic"
	"time"

	"agentteam/pkg/agent"
	"agentteam/pkg/broker"
	"agentteam/pkg/config"
	"agentteam/pkg/control"
	"agentteam/pkg/mailbox"
	"agentteam/pkg/membership"
	"agentteam/pkg/process"
	"agentteam/pkg/registry"
	"agentteam/pkg/roster"
	"agentteam/pkg/spawn"
	"agentteam/pkg/subject"
	"agentteam/pkg/team"
)

// Options say what the process is to be.
type Options struct {
	Config config.Config
	Name   team.AgentID // "" = a standby
	Role   string       // of a named member that is not there yet
	Stderr io.Writer
}

// Run serves until ctx ends, then returns nil within five seconds. A named member
// also ends when its membership does. Errors: Conflict for the name of a live
// member; NotFound for an unknown team or role; Unavailable without NATS.
func Run(ctx context.Context, o Options) error {
	p, err := process.Open(ctx, "teammate", o.Config, o.Stderr)
	if err != nil {
		return err
	}
	defer p.Close()
	reg, err := registry.Open(ctx, p.Conn)
	if err != nil {
		return err
	}
	t := &teammate{Process: p, registry: reg}
	if o.Name != "" {
		return t.named(ctx, o)
	}
	return t.standby(ctx)
}

type teammate struct {
	*process.Process
	registry *registry.Registry
}

// joined is a membership that this process has taken.
type joined struct {
	team   *broker.Team
	record team.Team
	member team.Member
}

// standby offers the process to the pool, works as what it is asked to be, and
// offers itself again. While it is a member it is not in the pool, so that nobody
// asks it in vain.
func (t *teammate) standby(ctx context.Context) error {
	for ctx.Err() == nil {
		j, err := t.offer(ctx)
		if err != nil || j == nil {
			return err
		}
		if err := t.work(ctx, *j); err != nil {
			t.Log.Error("membership failed", "team", j.team.ID, "agent", j.member.AgentID, "err", err)
		}
	}
	return nil
}

// offer waits in the pool until the process has joined a team, or ctx ends (nil).
func (t *teammate) offer(ctx context.Context) (*joined, error) {
	var taken atomic.Bool
	got := make(chan joined, 1)
	stop, err := control.ServePool(ctx, t.Conn, func(ctx context.Context, data []byte) (any, error) {
		var order spawn.Order
		if err := json.Unmarshal(data, &order); err != nil {
			return nil, team.Errorf(team.InvalidArgument, "order: %w", err)
		}
		if !taken.CompareAndSwap(false, true) {
			return nil, team.Errorf(team.Busy, "this standby was just taken")
		}
		j, err := t.take(ctx, order)
		if err != nil {
			taken.Store(false)
			return nil, err
		}
		got <- j
		return nil, nil
	})
	if err != nil {
		return nil, err
	}
	defer stop()
	t.Log.Info("standby: waiting in the pool")
	select {
	case <-ctx.Done():
		return nil, nil
	case j := <-got:
		return &j, nil
	}
}

// take makes the process the member that an order names, before anything else.
func (t *teammate) take(ctx context.Context, o spawn.Order) (joined, error) {
	bt, record, err := t.registry.Open(ctx, o.Team)
	if err != nil {
		return joined{}, err
	}
	m, err := roster.New(bt).Get(ctx, o.Agent)
	if err != nil {
		return joined{}, err
	}
	if m.State != team.Created || m.Incarnation != o.Incarnation {
		return joined{}, team.Errorf(team.Conflict, "%s is no longer to be started", o.Agent)
	}
	return t.join(ctx, bt, record, m)
}

// join writes created -> joined; of several processes one wins.
func (t *teammate) join(ctx context.Context, bt *broker.Team, record team.Team, m team.Member) (joined, error) {
	if _, err := record.Role(m.Role); err != nil {
		return joined{}, err
	}
	m.State, m.LastError, m.PID = team.Joined, "", os.Getpid()
	m.Host, _ = os.Hostname()
	var err error
	if m.Workspace, err = t.Workspace(record); err != nil {
		return joined{}, err
	}
	m, err = roster.New(bt).Put(ctx, m)
	return joined{bt, record, m}, err
}

// named joins as one member and works until that ends.
func (t *teammate) named(ctx context.Context, o Options) error {
	bt, record, err := t.registry.Open(ctx, o.Config.Team)
	if err != nil {
		return err
	}
	m, err := t.claimName(ctx, bt, record, o)
	if err != nil {
		return err
	}
	j, err := t.join(ctx, bt, record, m)
	if err != nil {
		return err
	}
	return t.work(ctx, j)
}

// claimName returns the record, in state created, of the name that this process
// was given: one that a spawn wrote for it, a new one, or the next incarnation of
// a member that does not answer.
func (t *teammate) claimName(ctx context.Context, bt *broker.Team, record team.Team, o Options) (team.Member, error) {
	r := roster.New(bt)
	m, err := r.Get(ctx, o.Name)
	switch {
	case errors.Is(err, team.NotFound), err == nil && m.State == team.Stopped:
		role := o.Role
		if role == "" {
			role = m.Role
		}
		if role == "" {
			return m, team.Errorf(team.InvalidArgument, "%s is not a member yet, and no role was given", o.Name).WithHint("add --role")
		}
		if _, err := record.Role(role); err != nil {
			return m, err
		}
		return r.Create(ctx, team.Member{AgentID: o.Name, Role: team.CanonicalRole(role), Backend: team.Exec}, record.MaxTeammates)
	case err != nil, m.State == team.Created:
		return m, err
	}
	err = control.Request(ctx, t.Conn, bt.ID, o.Name, subject.Ping, nil, nil, 2*time.Second)
	if err == nil || m.Backend == team.Person {
		return m, team.Errorf(team.Conflict, "%s is a live member (host %s, pid %d)", o.Name.At(bt.ID), m.Host, m.PID).
			WithHint("choose another name, or stop it first: teamctl stop %s", o.Name)
	}
	m.State, m.Incarnation = team.Created, m.Incarnation+1
	return r.Put(ctx, m)
}

// work runs the membership and, if it is over for good, closes the record.
func (t *teammate) work(ctx context.Context, j joined) error {
	role, err := j.record.Role(j.member.Role)
	if err != nil {
		return err
	}
	if j.member.Model == "" {
		j.member.Model = role.Model
	}
	t.Log.Info("member", "team", j.team.ID, "agent", j.member.AgentID, "role", role.Name, "incarnation", j.member.Incarnation)
	err = membership.Run(ctx, membership.Options{
		Team: j.team, Record: j.record, Member: j.member, Role: role, Model: t.Model,
		Workspace: j.member.Workspace, Logger: t.Log, Registry: t.Registry,
	})
	lastError := ""
	switch {
	case err == nil:
		t.lose(ctx, j)
		return nil
	case errors.Is(err, agent.ErrShutdown), errors.Is(err, membership.ErrForced), errors.Is(err, membership.ErrTeamEnded):
		err = nil
	case membership.Superseded(err):
		t.Log.Info("superseded", "agent", j.member.AgentID)
		return nil
	default:
		lastError = err.Error()
	}
	bye, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Second)
	defer cancel()
	if lerr := roster.New(j.team).Leave(bye, j.member.AgentID, j.member.Incarnation, lastError); lerr != nil && !errors.Is(lerr, roster.ErrSuperseded) {
		t.Log.Warn("not signed off", "agent", j.member.AgentID, "err", lerr)
	}
	box := mailbox.New(j.team, mailbox.Options{Members: roster.New(j.team), Registry: t.Registry})
	if cerr := box.Close(bye, j.member.AgentID, j.member.Incarnation); cerr != nil && !errors.Is(cerr, team.NotFound) {
		t.Log.Warn("inbox not closed", "agent", j.member.AgentID, "err", cerr)
	}
	t.Log.Info("left", "agent", j.member.AgentID)
	return err
}

// lose tells the team that this process goes away, so that the member is brought
// back elsewhere without waiting for its lease to run out.
func (t *teammate) lose(ctx context.Context, j joined) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), goodbye)
	defer cancel()
	err := roster.New(j.team).Lose(ctx, j.member.AgentID, j.member.Incarnation)
	if err != nil && !errors.Is(err, roster.ErrSuperseded) {
		t.Log.Warn("not signed off; the member is missed when its lease has run out", "agent", j.member.AgentID, "err", err)
	}
}

// goodbye bounds the last word of a process that was told to stop.
const goodbye = time.Second
