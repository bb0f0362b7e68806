// Package spawn starts members: it writes the member's record, finds a process that becomes the
// member (a standby from the pool, or a new child process where that is allowed), and waits for its
// first heartbeat. A failed start is recorded.
//
// It does not define roles (its callers do) or run members (package teammate).
package spawn

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"agentteam/pkg/agent/control"
	"agentteam/pkg/shutdown"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/registry"
	"agentteam/pkg/store/roster"
	"agentteam/pkg/team"
	"agentteam/pkg/telemetry"
)

const (
	poolPatience = 2 * time.Second  // wait for a free standby: after a goal all members return at the same time
	joinTimeout  = 10 * time.Second // from the order to the first heartbeat
)

// Options are the parts of a Spawner.
type Options struct {
	Team   *broker.Storage // required
	Roster *roster.Roster
	// Exec starts a child process for the order. Only the process that leads the
	// team has one, and only where local execution is on; nil means that the
	// leader's process is asked instead.
	Exec    func(ctx context.Context, o control.Order) error
	Cluster string // the embedded cluster of this process; "" = none
	// Level returns how the spawner's own commands are confined in the team: no standby that
	// confines less becomes a member. nil: it has no commands.
	Level  func(context.Context, team.Team) team.Sandbox
	Logger *slog.Logger
}

// Spawner spawns members of one team. Safe for concurrent use.
type Spawner struct{ o Options }

// New returns a spawner.
func New(o Options) *Spawner {
	o.Logger = telemetry.OrDiscard(o.Logger)
	return &Spawner{o}
}

// Spawn makes m (its role, and optionally name, prompt and model) a live member, and returns it as
// it joined. Without a name, a stopped member of the role from before the current goal comes back,
// if there is one. It blocks until the first heartbeat, up to 10 s. If it fails the name stays, as
// that of a stopped member, and is not given out again by counting.
//
// Errors: those of [roster.Roster.Create]; Unavailable if no process took it; InvalidState, with
// the reason, if the process that took it could not become it; Conflict if the team is being
// deleted, or was saved.
func (s *Spawner) Spawn(ctx context.Context, m team.Member, max int) (team.Member, error) {
	m.Backend, m.Cluster = team.Pool, s.o.Cluster
	created, err := s.create(ctx, m, max)
	if err != nil {
		return team.Member{}, err
	}
	// A deletion or a save of the team marks it first and then looks for members.
	if err = s.standing(ctx); err == nil {
		m, err = s.bring(ctx, created)
	}
	if err != nil {
		return m, errors.Join(err, s.takeBack(ctx, created, err))
	}
	return m, nil
}

// create writes the record of a new member: without a name, that of a stopped member of its role,
// if one can come back, else a new one.
func (s *Spawner) create(ctx context.Context, m team.Member, max int) (team.Member, error) {
	record, err := registry.Record(ctx, s.o.Team)
	if err != nil && !errors.Is(err, team.NotFound) { // a team without a record: the process that takes the order handles that
		return team.Member{}, err
	}
	m = record.Joining(m)
	if err := apart(record, m.Role); err != nil {
		return team.Member{}, err
	}
	limit := roster.LimitOf(record, m.Role, max)
	if m.AgentID != "" {
		return s.o.Roster.Create(ctx, m, limit)
	}
	for {
		name, err := s.o.Roster.Recalled(ctx, record, m.Role)
		if err != nil {
			return team.Member{}, err
		}
		back := m
		back.AgentID = name
		created, err := s.o.Roster.Create(ctx, back, limit)
		if name == "" || !errors.Is(err, team.Conflict) {
			return created, err
		}
		// Another spawn has just brought that member back.
	}
}

// apart returns InvalidState for a role whose members need separate trees, in a team that shares
// its workspace.
func apart(t team.Team, role string) error {
	r, _ := t.Role(role)
	if r.Policy.Isolation != team.Worktrees || t.Branch == nil || t.HasBranch() {
		return nil
	}
	return team.Errorf(team.InvalidState, "role %s works in separate trees only (isolation: worktree), and team %s shares its workspace: %s", role, t.ID, t.Branch.Why).
		WithHint("make the workspace a git repository with a commit, or leave isolation out of the role file").
		WithModelHint("spawn another role")
}

// standing returns Conflict if the team is being deleted, or was saved.
func (s *Spawner) standing(ctx context.Context) error {
	record, err := registry.Record(ctx, s.o.Team)
	if errors.Is(err, team.NotFound) { // a team without a record: the process that takes the order handles that
		return nil
	}
	if err == nil {
		err = registry.MayWork(record)
	}
	return err
}

// Respawn brings back a lost member as its next incarnation, with its conversation. If no process
// takes it the member is lost again, for another try; the watchdog handles a member that has joined
// without a heartbeat. If ctx ends, the record stays as it is, for a later caller.
//
// Errors: Conflict if another caller did so already; Unavailable.
func (s *Spawner) Respawn(ctx context.Context, m team.Member) (team.Member, error) {
	m = m.ToSpawn(s.o.Cluster)
	m.Backend = team.Pool
	created, err := s.o.Roster.Put(ctx, m)
	if err != nil {
		return team.Member{}, err
	}
	m, err = s.bring(ctx, created)
	if err != nil && ctx.Err() == nil {
		lerr := s.o.Roster.LoseUntaken(ctx, created.AgentID, created.Incarnation, why(err))
		if lerr != nil && !errors.Is(lerr, team.ErrSuperseded) {
			err = errors.Join(err, lerr)
		}
	}
	return m, err
}

// bring finds a process for a created member and waits for its heartbeat.
func (s *Spawner) bring(ctx context.Context, m team.Member) (team.Member, error) {
	ctx, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	alive, heard := context.WithCancel(ctx)
	defer heard()
	stop, err := s.o.Roster.Listen(m.AgentID, func(b team.Heartbeat) {
		if b.Incarnation == m.Incarnation { // a later one is of a later spawn
			heard()
		}
	})
	if err != nil {
		return team.Member{}, err
	}
	defer stop()
	// An unanswered order may have been carried out all the same: the heartbeat decides.
	err = s.order(alive, m)
	if err == nil {
		err = s.up(alive, m)
	}
	if alive.Err() == nil || ctx.Err() != nil {
		return team.Member{}, err
	}
	s.o.Logger.InfoContext(ctx, "member joined", "agent", m.AgentID, "role", m.Role, "incarnation", m.Incarnation)
	return s.o.Roster.Get(ctx, m.AgentID)
}

// up waits until ctx ends, because m is heard or the time is up, or until m's record states that
// the process which took it could not become it, or that a later spawn has replaced m.
func (s *Spawner) up(ctx context.Context, m team.Member) error {
	for {
		if !shutdown.Sleep(ctx, pollEvery) {
			return team.Errorf(team.Unavailable, "%s did not come up within %v", m.AgentID, joinTimeout).
				WithHint("look at the log of the process that took it; `teamctl status` shows the standbys").
				WithModelHint("try again once; if that fails too, go on with the members that are there")
		}
		now, err := s.o.Roster.Get(ctx, m.AgentID)
		if err == nil && now.Incarnation > m.Incarnation {
			return team.Errorf(team.Conflict, "somebody else is bringing %s back", m.AgentID)
		}
		if err == nil && now.Incarnation == m.Incarnation && (now.State == team.Stopped || now.State == team.Lost) {
			return team.Errorf(team.InvalidState, "%s cannot start: %s", m.AgentID, cmp.Or(now.LastError, "it was stopped")).
				WithHint("the process that took it is pid %d on host %s; see its log", now.PID, now.Host)
		}
	}
}

// order tries the pool, then a child process of the leader, until one takes the order or ctx ends.
// The pool is that of the model alias that m needs; if no process has the alias, it is the pool of
// all.
func (s *Spawner) order(ctx context.Context, m team.Member) error {
	o, alias, err := s.asked(ctx, m)
	if err != nil {
		return err
	}
	silent := false      // a standby got the order and has not answered: it may be about to join
	known := alias == "" // whether some process, which may be taken now, has the alias
	for patience := time.Now().Add(poolPatience); ; {
		err := control.StartAtStandby(ctx, s.o.Team.Conn, alias, o)
		if !known && control.NoResponders(err) {
			if known, err = s.known(ctx, alias); err != nil {
				return err
			}
			if !known { // the process that takes the order uses its default, and reports that
				alias, known = "", true
			}
			continue
		}
		var weaker error
		if errors.Is(err, team.PermissionDenied) {
			weaker = err
		}
		if weaker != nil || errors.Is(err, team.Unavailable) {
			silent = silent || weaker == nil && !control.NoResponders(err)
			err = s.exec(ctx, o)
		}
		switch {
		case weaker != nil && !silent && errors.Is(err, team.Unavailable) && time.Now().After(patience):
			return weaker // no standby in the pool confines enough
		case err == nil, ctx.Err() != nil:
			return err
		case errors.Is(err, team.Conflict): // another process has taken it
			return nil
		case errors.Is(err, team.Busy), silent: // a busy standby was just taken by another spawn
		case errors.Is(err, team.Unavailable) && time.Now().Before(patience):
		case alias != "":
			return team.Errorf(team.CodeOf(err), "of the processes with the model alias %s: %w", alias, err).WithHint("%s", team.HintOf(err))
		default:
			return err
		}
		if !shutdown.Sleep(ctx, 50*time.Millisecond) {
			return err
		}
	}
}

// asked returns the order for m, and the alias of the model that m or its role names; "" if any
// will do or no process could have it.
func (s *Spawner) asked(ctx context.Context, m team.Member) (o control.Order, alias string, err error) {
	o = control.Order{Team: s.o.Team.ID, Agent: m.AgentID, Incarnation: m.Incarnation}
	record, err := registry.Record(ctx, s.o.Team)
	noRecord := errors.Is(err, team.NotFound) // the process that takes the order handles that
	if err != nil && !noRecord {
		return o, "", err
	}
	if s.o.Level != nil {
		o.Sandbox = s.o.Level(ctx, record)
	}
	alias = m.Model
	if alias == "" && !noRecord {
		role, err := record.Role(m.Role)
		if err != nil {
			return o, "", err
		}
		alias = role.Model
	}
	if !team.IsAlias(alias) {
		alias = ""
	}
	return o, alias, nil
}

// answerWait is how long answers to the question for an alias are collected.
const answerWait = 300 * time.Millisecond

// known reports whether some teammate process has the alias, a member or not.
func (s *Spawner) known(ctx context.Context, alias string) (bool, error) {
	all, err := control.Processes(ctx, s.o.Team.Conn, "teammate", answerWait)
	return slices.ContainsFunc(all, func(p control.Process) bool { return slices.Contains(p.Aliases, alias) }), err
}

func (s *Spawner) exec(ctx context.Context, o control.Order) error {
	if s.o.Exec != nil {
		return s.o.Exec(ctx, o)
	}
	err := control.StartAtLeader(ctx, s.o.Team.Conn, o)
	if errors.Is(err, team.Unavailable) {
		return NoStandby(err)
	}
	return err
}

// NoStandby returns the error of a spawn that found no process.
func NoStandby(cause error) error {
	err := team.Errorf(team.Unavailable, "no standby is free in the pool, and no process may be started: %w", cause)
	if control.NoResponders(cause) {
		err = team.Errorf(team.Unavailable, "no standby is free in the pool, and no leader process is there that could start one")
	}
	return err.
		WithHint("start another `teammate` process, or a cluster with more standbys (`teamctl up -n N`)").
		WithModelHint("go on with the members that are there; those that are idle take claimable tasks")
}

// takeBack stops a member that did not come up, whatever a process that took the order late may
// have written meanwhile. Such a process is notified to stop; it also sees in the record that it is
// stopped.
func (s *Spawner) takeBack(ctx context.Context, m team.Member, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	err := s.o.Roster.TakeBack(ctx, m.AgentID, m.Incarnation, why(cause))
	if errors.Is(err, team.ErrSuperseded) {
		return nil // it was stopped, or a later spawn handles it
	}
	_ = control.SendStop(s.o.Team, m.AgentID)
	return err
}

// why returns cause as a member's record stores it.
func why(cause error) string { return team.Clean(cause.Error(), 1000) }
