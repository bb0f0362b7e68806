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

// ClaimSlot returns the task that a member holds; *board.ClaimSlot is one.
type ClaimSlot interface {
	Task() (team.Task, bool)
}

// Gate lets a member that needs a plan, for itself or for the task that it holds ([team.Member.Gate]), make changes
// only if its newest plan is approved and is for its present task. Any other member passes. A gate belongs to one
// incarnation. Safe for concurrent use.
type Gate struct {
	plans *Plans
	self  team.Member
	hand  ClaimSlot

	mu     sync.Mutex
	newest team.Approval // that the member has submitted; the zero Approval: none
	looked time.Time     // the claim of the last hold for which the plans of earlier holders were read
}

// Gate returns the gate of a member, which begins with the last plan of an earlier incarnation. Errors: Unavailable.
func (p *Plans) Gate(ctx context.Context, self team.Member, hand ClaimSlot) (*Gate, error) {
	g := &Gate{plans: p, self: self, hand: hand}
	all, err := p.List(ctx)
	for _, a := range all {
		if a.AgentID == self.AgentID && a.IsPlan() {
			g.newest = a
		}
	}
	return g, err
}

// holds returns the task that the member holds, or the zero Task.
func (g *Gate) holds() team.Task {
	t, _ := g.hand.Task()
	return t
}

// Taken returns the note on the plan that t needs, for the holder of t, a task that it has just taken or adopted, and
// the plan itself: the zero Approval if there is no plan to show. It first submits the plan of an earlier holder that
// waits for a decision again, in the member's name. note is "" for a task that needs no plan. It may be called again.
// Errors: Unavailable.
func (g *Gate) Taken(ctx context.Context, t team.Task) (note string, plan team.Approval, err error) {
	gate := g.self.Gate(t)
	if gate == "" {
		return "", plan, nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	here, err := g.inherit(ctx, t)
	if err != nil {
		return "", plan, err
	}
	if plan = g.newest; !here {
		if plan, err = g.plans.lastFor(ctx, t.ID); err != nil {
			return "", plan, err
		}
	}
	note, shown := plan.Note(gate, here)
	if !shown {
		plan = team.Approval{}
	}
	return note, plan, nil
}

// inherit submits a pending plan of an earlier holder of t again, unless the member has submitted one for its hold.
// here reports whether the member's newest plan is for that hold, and its approver strict enough.
func (g *Gate) inherit(ctx context.Context, t team.Task) (here bool, err error) {
	gate := g.self.Gate(t)
	if here, err = g.plans.here(ctx, g.newest, t); err != nil || t.ID == "" {
		return here, err
	}
	if here = here && g.newest.Approver.Stricter(gate) == g.newest.Approver; here || t.ClaimedAt == nil || g.looked.Equal(*t.ClaimedAt) {
		return here, nil
	}
	last, err := g.plans.lastFor(ctx, t.ID)
	if err != nil {
		return false, err
	}
	if last.Status == team.PlanPending && last.EndedAt == nil && last.Intact() {
		a, err := last.Again(g.self.Holder(), t, gate)
		if err == nil {
			err = g.again(ctx, a, last, t)
		}
		if here = err == nil; err != nil && !gone(err) { // a plan with a damaged record does not count
			return false, fmt.Errorf("submit the plan %s again for %s: %w", last.ID, t.ID, err)
		}
	}
	g.looked = *t.ClaimedAt
	return here, nil
}

// again submits a, a copy of the plan last in the member's name, and ends last.
func (g *Gate) again(ctx context.Context, a, last team.Approval, t team.Task) error {
	stored, err := g.plans.put(ctx, a)
	switch {
	case errors.Is(err, team.Conflict): // a predecessor was killed right after that
		stored, err = g.plans.Get(ctx, a.ID)
	case err == nil:
		_, _, err = g.plans.o.Post.Send(ctx, request(stored, t))
	}
	if err != nil {
		return err
	}
	g.newest = stored
	_, err = g.plans.change(ctx, last.ID, func(a *team.Approval) (bool, error) {
		now := time.Now().UTC()
		a.EndedAt = &now
		return a.Status == team.PlanPending, nil
	})
	return err
}

// lastFor returns the newest plan that was submitted for a task, by any holder; the zero Approval if there is none. If
// clocks differ, a plan that was submitted again may look older than its original. Errors: Unavailable.
func (p *Plans) lastFor(ctx context.Context, id team.TaskID) (last team.Approval, err error) {
	all, err := p.List(ctx)
	for _, a := range all {
		if a.Task == id && a.IsPlan() && (a.EndedAt == nil || last.EndedAt != nil || last.ID == "") {
			last = a
		}
	}
	return last, err
}

// Submit stores a plan for the member's present task, in place of an earlier plan, and asks its approver by mail.
// Errors: InvalidState for a member that needs no plan; InvalidArgument; Unavailable, and then the plan may or may not
// have been submitted, and the next plan takes its place.
func (g *Gate) Submit(ctx context.Context, plan string) (team.Approval, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	t := g.holds()
	gate := g.self.Gate(t)
	if gate == "" {
		return team.Approval{}, team.Errorf(team.InvalidState, "you need no approved plan: you are not in plan mode%s", notGated(t)).WithHint("carry it out")
	}
	a, err := team.NewApproval(g.self.Holder(), t, gate, plan, time.Now().UTC())
	if err != nil {
		return a, err
	}
	// The earlier plan ends first, so that two plans of a member never wait for a decision.
	if err := g.end(ctx); err != nil {
		return a, err
	}
	g.newest = a // also if it is not known whether it is stored
	if a, err = g.plans.put(ctx, a); err != nil {
		return a, fmt.Errorf("submit the plan %s: %w", a.ID, err)
	}
	g.newest = a
	_, _, err = g.plans.o.Post.Send(ctx, request(a, t))
	return a, err
}

// notGated returns the end of the sentence on why a member that holds t needs no plan.
func notGated(t team.Task) string {
	if t.ID == "" {
		return ""
	}
	return ", and " + string(t.ID) + " needs none"
}

// request returns the message to the approver.
func request(a team.Approval, t team.Task) team.Message {
	how := "" // an agent's runtime explains how it decides
	if a.Approver == team.ByHuman {
		how = fmt.Sprintf(" Decide with: teamctl approvals approve %s, or reject %s --feedback TEXT.", a.ID, a.ID)
	}
	whose := fmt.Sprintf("its plan %s%s", a.ID, about(t))
	if a.Author != "" {
		whose = fmt.Sprintf("the plan %s%s, which %s had submitted before %s took the task,", a.ID, about(t), a.Author, a.AgentID)
	}
	return team.Message{Type: team.MsgPlanRequest, From: a.AgentID, To: a.Asks(), RequestID: a.ID,
		Summary: team.Summarize("plan" + about(t) + ": " + a.Plan),
		Content: fmt.Sprintf("%s asks for approval of %s and changes nothing before.%s\n\n%s", a.AgentID, whose, how, a.Plan)}
}

func about(t team.Task) string {
	if t.ID == "" {
		return ""
	}
	return fmt.Sprintf(" for %s (%s)", t.ID, t.Title)
}

// Pass returns nil if the member may make the call of r, and marks the plan that allows it as used before the first
// time. It is a [tool.Gate]. Errors: PermissionDenied with a hint on the next step; Unavailable.
func (g *Gate) Pass(ctx context.Context, r tool.Request) error {
	if !r.Changes() {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	t := g.holds()
	if g.self.Gate(t) == "" {
		return nil
	}
	h := g.self.Holder()
	here, err := g.inherit(ctx, t)
	switch {
	case err != nil:
		return err
	case g.newest.ID == "" || g.newest.Status == team.PlanUsed && g.newest.Incarnation == h.Incarnation:
		err := g.newest.Covers(h, here) // only this gate changes the record
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
	case here && a.Status == team.PlanPending && team.CodeOf(err) == team.PermissionDenied:
		return tool.With(refused(r.Called, err), tool.Effects{Await: a.Await()})
	}
	return refused(r.Called, err)
}

// here reports whether a is for the member's present hold of t; with a zero t, whether a is for no task. Errors:
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

// refused returns the gate's error for a call of tool, nil if err is nil.
func refused(tool string, err error) error {
	if err == nil {
		return nil
	}
	return team.Errorf(team.CodeOf(err), "%s was not run: %w", tool, err).WithHint("%s", team.ModelHintOf(err))
}

// Requeue ends the member's plan if it is for no task, when the member goes idle: a later run needs another plan, whatever
// wakes the member. Errors: Unavailable; the next Rest ends the plan then.
func (g *Gate) Requeue(ctx context.Context) error {
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

// ended ends a plan or request of an incarnation, or of an earlier one.
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

// gone reports whether err means that a plan's record is absent or unreadable.
func gone(err error) bool { return errors.Is(err, team.NotFound) || errors.Is(err, team.ErrUnreadable) }
