package agent

import (
	"context"
	"sync/atomic"
	"time"

	"agentteam/pkg/store/mailbox"
	"agentteam/pkg/team"
	"agentteam/pkg/team/explain"
)

// rigTeam is the rig's team: what a test does not set is as where no other member is.
type rigTeam struct {
	expected atomic.Bool // open work is kept for the agent
	looks    atomic.Int32
	raised   chan struct{} // closed when a budget is raised
	r        *rig

	left     func(ctx context.Context, person team.AgentID) error
	answered func(context.Context, team.Await) (string, error)
	brings   team.Inherited
	decided  func(ctx context.Context, plan string) (string, error)
	backlog  func(ctx context.Context, from uint64, f func(mailbox.Delivery) error) error
	overview func(context.Context) (explain.Overview, error)
	asking   func() []team.Heartbeat
	peers    func(context.Context) (explain.Situation, error)
	reserved func(context.Context) (team.TaskID, bool)
	look     func(context.Context) (team.TaskID, bool)
	heard    func() time.Time
	rests    func(context.Context)
	lost     func(team.Task)
	endGoal  func(ctx context.Context, cause string)
	changed  func() <-chan struct{}
}

func (t *rigTeam) Wait(w team.Await, holds bool) Wait {
	switch {
	case w.Plan != "":
		return Decision(w, func(ctx context.Context, plan string) (string, error) {
			if t.decided == nil {
				<-ctx.Done()
				return "", ctx.Err()
			}
			return t.decided(ctx, plan)
		})
	case w.OfPerson():
		return Person(w, holds, func(ctx context.Context, person team.AgentID) error {
			if t.left == nil {
				<-ctx.Done()
				return ctx.Err()
			}
			return t.left(ctx, person)
		}, t.answered)
	}
	return Answer(w, holds)
}

func (t *rigTeam) Backlog(ctx context.Context, from uint64, f func(mailbox.Delivery) error) error {
	if t.backlog == nil {
		return nil
	}
	return t.backlog(ctx, from, f)
}

func (t *rigTeam) Overview(ctx context.Context) (explain.Overview, error) {
	if t.overview == nil {
		return explain.Overview{}, nil
	}
	return t.overview(ctx)
}

func (t *rigTeam) Asking() []team.Heartbeat {
	if t.asking == nil {
		return nil
	}
	return t.asking()
}

func (t *rigTeam) Peers(ctx context.Context) (explain.Situation, error) {
	if t.peers == nil {
		return explain.Situation{}, nil
	}
	return t.peers(ctx)
}

func (t *rigTeam) Inherited(context.Context, team.Task) (team.Inherited, error) { return t.brings, nil }

func (t *rigTeam) Reserved(ctx context.Context) (team.TaskID, bool) {
	if t.reserved == nil {
		return "", false
	}
	return t.reserved(ctx)
}

// Expected ends a loop that asks without an end.
func (t *rigTeam) Expected(context.Context) bool { return t.looks.Add(1) < 1000 && t.expected.Load() }

func (t *rigTeam) Claimable(ctx context.Context) (team.TaskID, bool) {
	if t.look == nil {
		return "", false
	}
	return t.look(ctx)
}

func (t *rigTeam) LeaderHeard() time.Time {
	switch {
	case t.heard != nil:
		return t.heard()
	case t.look != nil:
		return t.r.begun
	}
	return time.Now()
}

func (t *rigTeam) Lost(task team.Task) {
	if t.lost != nil {
		t.lost(task)
	}
}

func (t *rigTeam) Backoff(ctx context.Context) {
	if t.rests != nil {
		t.rests(ctx)
	}
}

func (t *rigTeam) Parked(_ context.Context, cause string) { t.r.parked = append(t.r.parked, cause) }

func (t *rigTeam) EndGoal(ctx context.Context, cause string) {
	if t.endGoal != nil {
		t.endGoal(ctx, cause)
	}
}

func (t *rigTeam) BudgetChanged() <-chan struct{} { return t.raised }

func (t *rigTeam) ModelChanged() <-chan struct{} {
	if t.changed == nil {
		return nil
	}
	return t.changed()
}
