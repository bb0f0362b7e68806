package approval

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"agentteam/pkg/team"
	"agentteam/pkg/tool"
)

// Hand describes what a member holds; *board.Hand is one.
type Hand interface {
	Task() (team.Task, bool)
}

// Gate lets a member in plan mode change something only if its newest plan is approved, and
// is for what the member holds. It belongs to one incarnation. Safe for
// concurrent use.
type Gate struct {
	plans *Plans
	self  team.Member
	hand  Hand

	mu     sync.Mutex
	newest team.Approval // that the member has submitted; the zero Approval: none
}

// Gate returns the gate of a member, which begins with the plan that an earlier incarnation
// submitted last. Errors: Unavailable.
func (p *Plans) Gate(ctx context.Context, self team.Member, hand Hand) (*Gate, error) {
	g := &Gate{plans: p, self: self, hand: hand}
	all, err := p.List(ctx)
	for _, a := range all {
		if a.AgentID == self.AgentID && a.IsPlan() {
			g.newest = a
		}
	}
	return g, err
}

// holds is the task that the member holds, or the zero Task.
func (g *Gate) holds() team.Task {
	t, _ := g.hand.Task()
	return t
}

// Submit stores a plan for what the member holds, in place of an earlier one, and asks its
// approver by mail. Errors: InvalidArgument; Unavailable, and then the plan may or may not
// have been submitted, and the next one takes its place.
func (g *Gate) Submit(ctx context.Context, plan string) (team.Approval, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	t := g.holds()
	a, err := team.NewApproval(g.self.Holder(), t, g.approver(), plan, time.Now().UTC())
	if err != nil {
		return a, err
	}
	// First, so that of the member's plans never two wait for a decision.
	if err := g.end(ctx); err != nil {
		return a, err
	}
	g.newest = a // also if it is not known whether it is stored
	if a, err = g.plans.put(ctx, a); err != nil {
		return a, fmt.Errorf("submit the plan %s: %w", a.ID, err)
	}
	g.newest = a
	_, _, err = g.plans.o.Post.Send(ctx, team.Message{Type: team.MsgPlanRequest, From: g.self.AgentID, To: a.Asks(),
		Content: request(a, t), Summary: team.Summarize("plan" + about(t) + ": " + a.Plan), RequestID: a.ID})
	return a, err
}

func (g *Gate) approver() team.Approver {
	if g.self.Approver == team.ByHuman {
		return team.ByHuman
	}
	return team.ByLeader
}

// request is what the approver reads.
func request(a team.Approval, t team.Task) string {
	how := "" // an agent is told by its runtime how it decides
	if a.Approver == team.ByHuman {
		how = fmt.Sprintf(" Decide with: teamctl approvals approve %s, or reject %s --feedback TEXT.", a.ID, a.ID)
	}
	return fmt.Sprintf("%s asks for approval of its plan %s%s and changes nothing before.%s\n\n%s", a.AgentID, a.ID, about(t), how, a.Plan)
}

func about(t team.Task) string {
	if t.ID == "" {
		return ""
	}
	return fmt.Sprintf(" for %s (%s)", t.ID, t.Title)
}

// Pass returns nil if the member may change something, and marks the plan that allows it as
// used before the first time. It is a [tool.Gate]. Errors: PermissionDenied, which says what
// to do; Unavailable.
func (g *Gate) Pass(ctx context.Context, r tool.Request) error {
	if !r.Changes() {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	h := g.self.Holder()
	here, err := g.here(ctx)
	switch {
	case err != nil:
		return err
	case g.newest.ID == "" || g.newest.Status == team.PlanUsed && g.newest.Incarnation == h.Incarnation:
		err := g.newest.Covers(h, here) // only this gate changes that
		if err == nil {
			granted(ctx, g.newest)
		}
		return refused(r.Called, err)
	}
	a, err := g.plans.change(ctx, g.newest.ID, func(a *team.Approval) (bool, error) {
		if err := a.Covers(h, here); err != nil {
			return false, err
		}
		*a = a.Use(h)
		return true, nil
	})
	switch {
	case err == nil:
		g.newest = a
		granted(ctx, a)
	case gone(err):
		err = team.Approval{}.Covers(h, here)
	}
	return refused(r.Called, err)
}

// here reports whether the newest plan is for what the member holds. Errors: Unavailable.
func (g *Gate) here(ctx context.Context) (bool, error) {
	return g.plans.here(ctx, g.newest, g.holds())
}

// here reports whether a is for the task t that its member holds, or for none as t is none. Errors:
// Unavailable.
func (p *Plans) here(ctx context.Context, a team.Approval, t team.Task) (bool, error) {
	if t.ID == "" || t.ID != a.Task || a.IsFor(t) {
		return a.IsFor(t), nil
	}
	copies, err := p.o.Tasks.History(ctx, t.ID)
	if gone(err) {
		return false, nil
	}
	return a.Held(copies), err
}

// refused is the refusal of a call by the gate.
func refused(tool string, err error) error {
	if err == nil {
		return nil
	}
	return team.Errorf(team.CodeOf(err), "%s was not run: %w", tool, err).WithHint("%s", team.ModelHintOf(err))
}

// Rest ends the member's plan if it is for no task, since the member goes idle: a later run,
// for whatever it is woken, needs another one. Errors: Unavailable; the plan is ended with the
// next Rest then.
func (g *Gate) Rest(ctx context.Context) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.newest.Task != "" { // it ends with the task
		return nil
	}
	return g.end(ctx)
}

// end ends the newest plan, if there is one that has not ended.
func (g *Gate) end(ctx context.Context) error {
	if g.newest.ID == "" || g.newest.EndedAt != nil || g.newest.Status == team.PlanRejected {
		return nil
	}
	a, err := g.plans.ended(ctx, g.newest.ID, g.self.Incarnation)
	if gone(err) {
		a, err = team.Approval{}, nil
	}
	if err == nil {
		g.newest = a
	}
	return err
}

// ended ends what an incarnation has asked for.
func (p *Plans) ended(ctx context.Context, id string, incarnation uint64) (team.Approval, error) {
	return p.change(ctx, id, func(a *team.Approval) (bool, error) {
		if a.EndedAt != nil || a.IsPlan() && a.Status == team.PlanRejected || a.Incarnation > incarnation {
			return false, nil
		}
		now := time.Now().UTC()
		a.EndedAt = &now
		return true, nil
	})
}

// gone reports whether err says that a plan's record is not there, or tells nothing.
func gone(err error) bool { return errors.Is(err, team.NotFound) || errors.Is(err, team.ErrUnreadable) }
