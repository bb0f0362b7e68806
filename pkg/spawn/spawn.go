// Package spawn makes members out of processes: it writes the member's record,
// finds a process that takes it (a standby from the pool, or a new child process
// where that is allowed) and sees it live, or takes everything back.
//
// Which roles there are, and what a member does, is the business of its callers
// and of package teammate.
package spawn

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"agentteam/pkg/broker"
	"agentteam/pkg/control"
	"agentteam/pkg/roster"
	"agentteam/pkg/subject"
	"agentteam/pkg/team"
)

// Order asks a process to become a member whose record is written.
type Order struct {
	Team        team.TeamID  `json:"team"`
	Agent       team.AgentID `json:"agent_id"`
	Incarnation uint64       `json:"incarnation"`
}

const (
	poolTry      = time.Second      // for a standby to answer; a busy one does so at once
	poolPatience = 2 * time.Second  // for a standby to come free: after a goal all members return at once
	joinTimeout  = 10 * time.Second // from the order to the first heartbeat
)

// Options are what a Spawner needs.
type Options struct {
	Team   *broker.Team // required
	Roster *roster.Roster
	// Exec starts a child process for the order. Only the process that leads the
	// team has one, and only where local execution is on; nil means that the
	// leader's process is asked instead.
	Exec   func(ctx context.Context, o Order) error
	Logger *slog.Logger
}

// Spawner spawns members of one team. Safe for concurrent use.
type Spawner struct{ o Options }

// New returns a spawner.
func New(o Options) *Spawner {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Spawner{o}
}

// Spawn makes m (role, and what of name, prompt and model is wanted) a member that
// lives, and returns it as it joined. It blocks until the first heartbeat, up to
// 10 s. If it fails the team is as it was before.
//
// Errors: those of [roster.Roster.Create]; Unavailable if no process took it.
func (s *Spawner) Spawn(ctx context.Context, m team.Member, max int) (team.Member, error) {
	m.Backend = team.Pool
	created, err := s.o.Roster.Create(ctx, m, max)
	if err != nil {
		return team.Member{}, err
	}
	return s.bring(ctx, created)
}

// Respawn brings back a lost member as its next incarnation, with its
// conversation. Errors: Conflict if somebody did so already.
func (s *Spawner) Respawn(ctx context.Context, m team.Member) (team.Member, error) {
	m.State, m.Incarnation, m.Backend = team.Created, m.Incarnation+1, team.Pool
	m, err := s.o.Roster.Put(ctx, m)
	if err != nil {
		return team.Member{}, err
	}
	return s.bring(ctx, m)
}

// bring finds a process for a created member and waits until it lives.
func (s *Spawner) bring(ctx context.Context, m team.Member) (team.Member, error) {
	alive := make(chan struct{}, 1)
	stop, err := s.o.Roster.Listen(func(b team.Beat) {
		if b.AgentID == m.AgentID && b.Incarnation >= m.Incarnation {
			select {
			case alive <- struct{}{}:
			default:
			}
		}
	})
	if err != nil {
		return team.Member{}, errors.Join(err, s.takeBack(ctx, m))
	}
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	if err := s.order(ctx, m); err != nil {
		return team.Member{}, errors.Join(err, s.takeBack(ctx, m))
	}
	select {
	case <-alive:
		s.o.Logger.InfoContext(ctx, "member joined", "team", s.o.Team.ID, "agent", m.AgentID, "role", m.Role, "incarnation", m.Incarnation)
		return s.o.Roster.Get(ctx, m.AgentID)
	case <-ctx.Done():
		err := team.Errorf(team.Unavailable, "%s did not come up within %v", m.AgentID, joinTimeout).
			WithHint("look at the log of the process that took it; `teamctl status` shows the standbys")
		return team.Member{}, errors.Join(err, s.takeBack(ctx, m))
	}
}

// order tries the pool, then a child process of the leader.
func (s *Spawner) order(ctx context.Context, m team.Member) error {
	o := Order{s.o.Team.ID, m.AgentID, m.Incarnation}
	for patience := time.Now().Add(poolPatience); ; {
		err := control.RequestPool(ctx, s.o.Team.Conn, o, poolTry)
		if errors.Is(err, team.Unavailable) {
			err = s.exec(ctx, o)
		}
		// Busy is a standby that was just taken by another spawn.
		again := errors.Is(err, team.Busy) || errors.Is(err, team.Unavailable) && time.Now().Before(patience)
		if !again || ctx.Err() != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (s *Spawner) exec(ctx context.Context, o Order) error {
	if s.o.Exec != nil {
		return s.o.Exec(ctx, o)
	}
	err := control.Request(ctx, s.o.Team.Conn, s.o.Team.ID, team.Leader, subject.Start, o, nil, 5*time.Second)
	if errors.Is(err, team.Unavailable) {
		return NoStandby(err)
	}
	return err
}

// NoStandby is the error of a spawn that found no process.
func NoStandby(cause error) error {
	return team.Errorf(team.Unavailable, "no standby is free in the pool %s, and no process may be started: %w", subject.Pool, cause).
		WithHint("start another `teammate` process, or a cluster with more standbys (`teamctl up -n N`)")
}

// takeBack undoes a spawn that came to nothing, whatever a process that took the
// order late may have written meanwhile; such a process sees that its record is
// gone and ends.
func (s *Spawner) takeBack(ctx context.Context, m team.Member) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	for {
		now, err := s.o.Roster.Get(ctx, m.AgentID)
		if errors.Is(err, team.NotFound) || err == nil && now.Incarnation != m.Incarnation {
			return nil
		}
		if err != nil {
			return err
		}
		if err = s.o.Roster.Withdraw(ctx, now); !errors.Is(err, team.Conflict) {
			_ = control.Notify(s.o.Team.Conn, s.o.Team.ID, m.AgentID, subject.Stop, nil)
			return err
		}
	}
}
