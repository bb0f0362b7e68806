package teamtool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"agentteam/pkg/shutdown"
	"agentteam/pkg/team"
)

// newcomer is a member to spawn for a task that a plan assigns to it.
type newcomer struct {
	name team.AgentID
	role string
}

// newcomers returns the assignees of a leader's plan that do not exist or have stopped, where their
// task names a role.
func (t tools) newcomers(ctx context.Context, plan []plannedArgs) (all []newcomer, err error) {
	if !t.leads() {
		return nil, nil
	}
	record, err := t.Team(ctx)
	if err != nil {
		return nil, err
	}
	for i, p := range plan {
		if p.Role == "" || p.Assignee == "" {
			continue
		}
		n, err := t.newcomer(ctx, record, p)
		if err != nil {
			return nil, planError(i, p, err)
		}
		same := func(o newcomer) bool { return o.name == n.name }
		switch j := slices.IndexFunc(all, same); {
		case n.name == "":
		case j >= 0 && all[j].role != n.role:
			return nil, planError(i, p, team.Errorf(team.InvalidArgument, "%s is to be spawned as %s and as %s", n.name, all[j].role, n.role))
		case j < 0:
			all = append(all, n)
		}
	}
	return all, nil
}

// newcomer returns the assignee of p; the zero value if it is a member already.
func (t tools) newcomer(ctx context.Context, record team.Team, p plannedArgs) (newcomer, error) {
	name, err := team.ParseAgentID(p.Assignee)
	if err != nil {
		return newcomer{}, err
	}
	m, err := t.Roster.Get(ctx, name)
	switch {
	case err == nil && (m.State != team.Stopped || m.Backend == team.Person):
		return newcomer{}, nil
	case err != nil && !errors.Is(err, team.NotFound):
		return newcomer{}, err
	}
	role, err := record.Role(p.Role)
	if err == nil && role.Name == team.LeaderRole {
		err = team.Errorf(team.InvalidArgument, "a team has one leader; it cannot be spawned")
	}
	return newcomer{name, role.Name}, err
}

// spawnAll spawns the newcomers in parallel. After an error the caller calls undo, which makes
// those that joined leave again.
func (t tools) spawnAll(ctx context.Context, all []newcomer) (undo func(), err error) {
	came := make([]bool, len(all))
	var g errgroup.Group
	for i, n := range all {
		g.Go(func() error {
			_, err := t.Admin.Spawn(ctx, team.Member{AgentID: n.name, Role: n.role})
			if came[i] = err == nil; err != nil {
				return fmt.Errorf("spawn %s: %w", n.name, err)
			}
			return nil
		})
	}
	err = g.Wait()
	undo = func() {
		ctx, done := shutdown.Outlive(ctx, shutdown.Tools)
		defer done()
		ctx, cancel := context.WithTimeout(ctx, undoWithin)
		defer cancel()
		var g errgroup.Group
		for i, n := range all {
			if came[i] {
				g.Go(func() error {
					_, err := t.Admin.Remove(ctx, n.name, "the plan that it was spawned for failed")
					return err
				})
			}
		}
		_ = g.Wait() // a member that stays is idle, and takes other tasks
	}
	return undo, err
}

// undoWithin bounds the leaving of members that were spawned in vain.
const undoWithin = 10 * time.Second
