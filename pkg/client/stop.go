package client

import (
	"context"
	"errors"
	"slices"
	"time"

	"agentteam/pkg/agent/spawn"
	"agentteam/pkg/client/seat"
	"agentteam/pkg/shutdown"
	"agentteam/pkg/team"
)

// StopOptions describe how a member is stopped.
type StopOptions struct {
	Reason string        // told to the member
	Wait   time.Duration // how long it may take to answer; 0: it is not asked, but stopped by force
	Drain  bool          // it is not asked, but leaves once it has no task, however long that takes
}

// Stop stops one member. An agent is asked and may refuse; if it does not answer in time it is
// stopped by force, which forced reports. A person's seat just ends. The leader cannot be stopped
// alone.
//
// Errors: NotFound; Conflict with the reason if the member refuses: it stays; InvalidArgument.
// [ErrDrains] if ctx ends while a member is drained.
func (t Members) Stop(ctx context.Context, a team.AgentID, f StopOptions) (forced bool, err error) {
	if a == team.Leader {
		return false, team.Errorf(team.InvalidArgument, "the leader cannot be stopped alone").WithHint("teamctl stop, without a name, stops the team")
	}
	if !f.Drain {
		if err := t.seats.Stop(ctx, a, person); !errors.Is(err, seat.ErrAgent) {
			return false, err
		}
	}
	r := spawn.Request{From: team.UserAgent, To: a, Reason: f.Reason, Drain: f.Drain}
	if f.Drain {
		return false, t.drain(ctx, r)
	}
	return t.spawner.Stop(ctx, t.mailbox, r, f.Wait)
}

// ErrDrains (Unavailable): a drained member has not left before the time was over. It leaves later.
var ErrDrains = errors.New("has not left yet")

// drain has a member leave once it has no task, and waits for that.
func (t *core) drain(ctx context.Context, r spawn.Request) error {
	m, err := t.roster.Get(ctx, r.To)
	switch {
	case err != nil || m.State == team.Stopped:
		return err
	case m.State == team.WaitingRepair: // it holds no task, and reads no mail
		return t.spawner.Force(ctx, t.mailbox, r.To)
	case m.Backend == team.Person:
		return team.Errorf(team.InvalidArgument, "%s is a person's seat, which cannot be drained", r.To).WithHint("stop it without --drain: its task goes back to the board")
	}
	if r, err = t.spawner.Ask(ctx, t.mailbox, r); err != nil {
		return err
	}
	answer, err := t.spawner.Await(ctx, r)
	if err == nil && !answer.Left {
		err = team.Errorf(team.Unavailable, "%s %w: %w", r.To, ErrDrains, context.Cause(ctx))
	}
	return err
}

// StopTeam ends the team's goal as stopped and waits until every member has left; those that have
// not after wait are stopped by force. Seats end; their tasks go back. Errors: Conflict if another
// goal is set meanwhile, whose leader frees the tasks of the stopped members.
func (t *Team) StopTeam(ctx context.Context, wait time.Duration) error {
	// Every member watches the record and leaves.
	record, err := t.record(ctx)
	if err != nil {
		return err
	}
	tasks, _ := t.board.All(ctx) // a team with an unreadable board can be stopped, too
	e := team.Ending{Status: team.TeamStopped, Summary: "stopped by a person", Failed: record.Failed(tasks)}
	if _, err := t.client.registry.End(ctx, t.team, e); err != nil {
		return err
	}
	for limit := time.Now().Add(wait); ; {
		members, err := t.roster.List(ctx)
		if err != nil {
			return err
		}
		members = slices.DeleteFunc(members, func(m team.Member) bool { return m.State == team.Stopped || m.State == team.Unreadable })
		if len(members) == 0 {
			return t.freeAll(ctx)
		}
		for _, m := range members {
			if err := t.seeOff(ctx, m, limit); err != nil {
				return err
			}
		}
		// A leader may have joined meanwhile whose term had begun just before the end.
		now, err := t.record(ctx)
		if err == nil && now.Status == team.Active {
			err = team.Errorf(team.Conflict, "another goal of %s was set while the members left", t.id()).WithHint("to stop that one too, stop the team again")
		}
		if err != nil {
			return err
		}
	}
}

// seeOff waits until a member has left, and stops it by force at the time limit.
func (t *core) seeOff(ctx context.Context, m team.Member, limit time.Time) error {
	if m.Backend == team.Person {
		return t.seats.Stop(ctx, m.AgentID, person)
	}
	for time.Now().Before(limit) && !errors.Is(t.roster.Check(ctx, m.AgentID, m.Incarnation), team.ErrSuperseded) {
		if !shutdown.Sleep(ctx, 50*time.Millisecond) {
			return ctx.Err()
		}
	}
	return t.spawner.Force(ctx, t.mailbox, m.AgentID)
}

// freeAll puts the tasks back on the board whose holders could not do so.
func (t *core) freeAll(ctx context.Context) error {
	tasks, err := t.board.All(ctx)
	if err != nil {
		return err
	}
	for _, task := range tasks {
		if task.Status != team.InProgress {
			continue
		}
		_, err := t.board.Release(ctx, task.ID, person, 0, team.Freed{Reason: "the team was stopped"})
		if err != nil && !errors.Is(err, team.InvalidState) {
			return err
		}
	}
	return nil
}
