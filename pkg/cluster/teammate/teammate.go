// Package teammate is the teammate process: a standby that becomes a member on request and a
// standby again when its membership ends, or one named member from the start.
package teammate

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"agentteam/pkg/agent"
	"agentteam/pkg/agent/control"
	"agentteam/pkg/agent/runtime"
	"agentteam/pkg/cluster/childproc"
	"agentteam/pkg/cluster/process"
	"agentteam/pkg/config"
	"agentteam/pkg/shutdown"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/mailbox"
	"agentteam/pkg/store/registry"
	"agentteam/pkg/store/roster"
	"agentteam/pkg/team"
)

// Options select what the process becomes.
type Options struct {
	Config      config.Config
	Name        team.AgentID // "" = a standby
	Role        string       // of a named member that does not exist yet
	Incarnation uint64       // of a named member whose spawn waits for this process; 0 = it joins in any case
	Stderr      io.Writer
}

// Run serves until ctx ends, then returns nil within five seconds. A named member also ends when
// its membership does. Errors: Conflict for the name of a live member; NotFound for an unknown team
// or role; Unavailable without NATS.
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
	t.Ready()
	return t.standby(ctx)
}

type teammate struct {
	*process.Process
	registry *registry.Registry
}

// joined is a membership that this process has taken.
type joined struct {
	team    *broker.Storage
	record  team.Team
	member  team.Member
	metrics prometheus.Registerer // while the member works
}

// standby offers the process to the pool, works as the member that it becomes, and offers itself
// again. While it is a member it is not in the pool, so that no spawner asks it in vain.
func (t *teammate) standby(ctx context.Context) error {
	for rest := firstBackoff; ctx.Err() == nil; {
		j, err := t.offer(ctx)
		if err != nil {
			return err
		}
		if j == nil {
			continue
		}
		begun := time.Now()
		err = t.work(ctx, *j)
		if err == nil || time.Since(begun) > steady {
			rest = firstBackoff
		}
		if err == nil {
			continue
		}
		// This process may be at fault, and it would be the first again to take the member that it
		// has just failed as.
		t.Log.Error("membership failed", "team", j.team.ID, "agent", j.member.AgentID, "err", err, "rest", rest)
		shutdown.Sleep(ctx, rest)
		rest = min(2*rest, maxBackoff)
	}
	return nil
}

const (
	firstBackoff = time.Second      // backoff before it returns to the pool after a membership that failed; doubles
	maxBackoff   = 30 * time.Second // at most
	steady       = time.Minute      // a membership that lasted this long was no false start
)

// offer waits in the pool until the process has joined a team. It returns nil if ctx ends or if
// other models require another offer.
func (t *teammate) offer(ctx context.Context) (*joined, error) {
	var taken atomic.Bool
	got := make(chan joined, 1)
	changed := t.ModelsChanged()
	stop, err := control.ServePool(ctx, t.Conn, t.Aliases(), func(ctx context.Context, order control.Order) error {
		if !taken.CompareAndSwap(false, true) {
			return team.Errorf(team.Busy, "this standby was just taken")
		}
		j, err := t.take(ctx, order)
		if err != nil {
			taken.Store(false)
			return err
		}
		got <- j
		return nil
	})
	if err != nil {
		return nil, err
	}
	t.Log.Info("standby: waiting in the pool")
	select {
	case <-ctx.Done():
	case <-changed:
	case j := <-got:
		stop()
		return &j, nil
	}
	stop()
	select { // a membership taken meanwhile must be worked on, or given back
	case j := <-got:
		return &j, nil
	default:
		return nil, nil
	}
}

// take makes the process the member that an order names, before any other step.
func (t *teammate) take(ctx context.Context, o control.Order) (joined, error) {
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
	if err := t.confines(ctx, record, m, o.Sandbox); err != nil {
		return joined{}, err
	}
	return t.join(ctx, bt, record, m)
}

// confines returns an error for a member whose commands would be confined less than those of its
// spawner. A process that can run no command at all may become it.
func (t *teammate) confines(ctx context.Context, record team.Team, m team.Member, least team.Sandbox) error {
	found, err := t.Workspaces.Sandbox(ctx, record, m.Role)
	if err != nil || found.Level().Stronger(least) == found.Level() {
		return nil
	}
	host, _ := os.Hostname()
	hint := "start that teammate process with `sandbox: auto` and with what the level needs, or another process"
	if found.Level() == team.Confined {
		hint = "install bubblewrap on that host, start a teammate process where it works, or set `sandbox: confined` for the leader's process"
	}
	return team.Errorf(team.PermissionDenied, "%s is not taken by pid %d on host %s: commands of who spawns it have the sandbox %q, and commands there only %q", m.AgentID, os.Getpid(), host, least, found.Level()).
		WithHint("%s", hint).
		WithModelHint("go on with the members that are there; those that are idle take claimable tasks")
}

// join writes created -> joined; of several processes one wins.
func (t *teammate) join(ctx context.Context, bt *broker.Storage, record team.Team, m team.Member) (joined, error) {
	if _, err := record.Role(m.Role); err != nil {
		return joined{}, err
	}
	m.State, m.LastError, m.TakenBack, m.Idled, m.PID = team.Joined, "", false, false, os.Getpid()
	m.Host, _ = os.Hostname()
	m.Cluster, m.Server = childproc.Cluster(), bt.Conn.ServerID()
	var err error
	if m.Workspace, err = t.Workspaces.Folder(record); err != nil {
		return joined{}, err
	}
	// Once begun the write is completed: a process that is stopped just now must know whether there
	// is a membership to give back.
	ctx, cancel := shutdown.Outlive(ctx, shutdown.Join)
	defer cancel()
	m, err = roster.New(bt).Put(ctx, m)
	return joined{team: bt, record: record, member: m}, err
}

// named joins as one member and works until that ends.
func (t *teammate) named(ctx context.Context, o Options) error {
	bt, record, err := t.registry.Open(ctx, o.Config.Team)
	if err != nil {
		return err
	}
	var j joined
	for {
		m, err := t.claimName(ctx, bt, record, o)
		if err != nil {
			return err
		}
		// A leader that is bringing the member back may have given it up just now: the next read
		// finds it lost, or alive elsewhere, which ends this.
		if j, err = t.join(ctx, bt, record, m); err == nil {
			break
		}
		if !errors.Is(err, team.Conflict) {
			return err
		}
	}
	t.Ready()
	return t.work(ctx, j)
}

// claimName returns the record, in state created, of the name that this process was given: the
// record that a spawn wrote for it, a new one, or the next incarnation of a member that does not
// answer.
func (t *teammate) claimName(ctx context.Context, bt *broker.Storage, record team.Team, o Options) (team.Member, error) {
	r := roster.New(bt)
	m, err := r.Get(ctx, o.Name)
	switch {
	case o.Incarnation != 0 && errors.Is(err, team.NotFound), err == nil && o.Incarnation != 0 && (m.Incarnation != o.Incarnation || m.State != team.Created):
		return m, team.Errorf(team.Conflict, "no spawn waits for %s as incarnation %d any more: it is %s as %d", o.Name.At(bt.ID), o.Incarnation, cmp.Or(m.State, "not there"), m.Incarnation)
	case err == nil && m.Backend == team.Person:
		return m, team.Errorf(team.Conflict, "%s is a person's seat", o.Name.At(bt.ID)).WithHint("choose another name")
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
		m = record.Joining(team.Member{AgentID: o.Name, Role: team.CanonicalRole(role), Backend: team.Exec, Cluster: childproc.Cluster()})
		return r.Create(ctx, m, roster.LimitOf(record, m.Role, record.MaxTeammates))
	case err != nil, m.State == team.Created:
		return m, err
	}
	if err := roster.MayPlay(m); err != nil {
		return m, err
	}
	alive := false
	if m.State != team.Lost { // else its process has signed off
		if alive, err = t.alive(ctx, bt, m); err != nil {
			return m, err
		}
	}
	if alive {
		return m, team.Errorf(team.Conflict, "%s is a live member (host %s, pid %d)", o.Name.At(bt.ID), m.Host, m.PID).
			WithHint("choose another name, or stop it first: teamctl stop %s", o.Name)
	}
	m, err = r.Put(ctx, m.ToSpawn(childproc.Cluster()))
	if errors.Is(err, team.Conflict) { // a leader brought it back meanwhile
		return t.claimName(ctx, bt, record, o)
	}
	return m, err
}

// alive reports whether a process works as m. A process that does not answer, or does not listen,
// may just be reconnecting: then its heartbeat arrives within two intervals.
func (t *teammate) alive(ctx context.Context, bt *broker.Storage, m team.Member) (bool, error) {
	heard := make(chan struct{}, 1)
	stop, err := roster.New(bt).Listen(m.AgentID, func(b team.Heartbeat) {
		if b.Incarnation == m.Incarnation {
			select {
			case heard <- struct{}{}:
			default:
			}
		}
	})
	if err != nil {
		return false, err
	}
	defer stop()
	limit := time.After(2 * roster.Interval)
	if _, err := control.Ping(ctx, bt, m.AgentID, roster.Interval); err == nil {
		return true, nil
	}
	select {
	case <-heard:
		return true, nil
	case <-limit:
		return false, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// work runs the membership and records how it ended: for good, by a decision, or for this process
// only. It returns the error of a membership that failed.
func (t *teammate) work(ctx context.Context, j joined) error {
	role, err := j.record.Role(j.member.Role)
	if err != nil {
		return err
	}
	if j.member.Model == "" {
		j.member.Model = role.Model
	}
	t.Log.Info("member", "team", j.team.ID, "agent", j.member.AgentID, "role", role.Name, "incarnation", j.member.Incarnation)
	metrics, model, done := t.As(j.team.ID, j.member)
	defer done()
	j.metrics = metrics
	err = runtime.Run(ctx, runtime.Options{
		Process: t.ID, Team: j.team, Record: j.record, Member: j.member, Role: role, Model: model, ModelChanged: t.ModelsChanged, KeepTranscripts: t.Config.KeepTranscripts,
		Workspaces: t.Workspaces, Level: t.Workspaces.Level, Organisation: t.Config.Organisation, Logger: t.Log, Metrics: metrics,
	})
	if errors.Is(err, runtime.ErrTeamEnded) {
		t.Workspaces.Ended(j.record)
	}
	// The caller's context may have ended.
	bye, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdown.SignOff)
	defer cancel()
	switch {
	case errors.Is(err, agent.ErrShutdown), errors.Is(err, runtime.ErrForced), errors.Is(err, runtime.ErrTeamEnded):
		t.leave(bye, j, err)
		return nil
	case errors.Is(err, team.ErrSuperseded):
		t.Log.Info("superseded", "agent", j.member.AgentID)
		return nil
	}
	if ctx.Err() != nil {
		err = nil // the process was stopped, which is not a fault
	}
	t.lose(bye, j, err)
	return err
}

// leave closes the member's record: it is over for good, as cause states.
func (t *teammate) leave(ctx context.Context, j joined, cause error) {
	r := roster.New(j.team)
	var idle *agent.Idled
	var err error
	if errors.As(cause, &idle) {
		err = r.LeaveIdle(ctx, j.member.AgentID, j.member.Incarnation, idle.Error())
	} else {
		err = r.Leave(ctx, j.member.AgentID, j.member.Incarnation, "")
	}
	if err != nil && !errors.Is(err, team.ErrSuperseded) {
		t.Log.Warn("not signed off", "agent", j.member.AgentID, "err", err)
	}
	box := mailbox.New(j.team, mailbox.Options{Members: r, Metrics: j.metrics})
	if err := box.Close(ctx, j.member.AgentID, j.member.Incarnation); err != nil && !errors.Is(err, team.NotFound) {
		t.Log.Warn("inbox not closed", "agent", j.member.AgentID, "err", err)
	}
	t.Log.Info("left", "agent", j.member.AgentID)
}

// lose notifies the team that this process stops, or cannot continue because of cause, so that the
// member is brought back before its lease expires. That is no decision to leave: the obstacle of
// one process may not exist for another.
func (t *teammate) lose(ctx context.Context, j joined, cause error) {
	why := ""
	if cause != nil {
		why = team.Clean(team.Line(cause), 1000)
	}
	r := roster.New(j.team)
	err := r.Lose(ctx, j.member.AgentID, j.member.Incarnation, why)
	if errors.Is(err, team.ErrSuperseded) {
		return
	}
	if err != nil {
		t.Log.Warn("not signed off; the member is missed when its lease has run out", "agent", j.member.AgentID, "err", err)
	}
	if why == "" {
		return
	}
	box := mailbox.New(j.team, mailbox.Options{Members: r, Metrics: j.metrics})
	// Once a goal for one cause: each try may fail alike, and each mail costs the leader a turn.
	sum := sha256.Sum256([]byte(why))
	id := fmt.Sprintf("fails-%s-%d-%x", j.member.AgentID, j.record.GoalNumber, sum[:8])
	if _, _, err := box.Send(ctx, team.Message{ID: id, Type: team.MsgMessage, From: j.member.AgentID, To: team.Leader,
		Content: "My process cannot go on: " + why + "\nUnless the team wants it otherwise I am brought back and go on with my work."}); err != nil {
		t.Log.Warn("leader not told", "agent", j.member.AgentID, "err", err)
	}
}
