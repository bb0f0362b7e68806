package client

import (
	"context"

	"agentteam/pkg/team"
)

// Plan is a plan that was submitted for approval, as it is printed.
type Plan struct {
	team.Approval
	Void string `json:"void,omitempty"` // of a pending one: why a decision would come too late
}

// Waits reports whether p waits for a decision.
func (p Plan) Waits() bool { return p.Status == team.PlanPending && p.Void == "" }

// Plans returns the plans that were submitted, oldest first.
func (t *Team) Plans(ctx context.Context) ([]Plan, error) {
	all, err := t.plans.List(ctx)
	if err != nil {
		return nil, err
	}
	plans := make([]Plan, len(all))
	for i, a := range all {
		if plans[i], err = t.plan(ctx, a); err != nil {
			return nil, err
		}
	}
	return plans, nil
}

// Plan returns one plan. Errors: NotFound.
func (t *Team) Plan(ctx context.Context, id string) (Plan, error) {
	a, err := t.plans.Get(ctx, id)
	if err != nil {
		return Plan{}, err
	}
	return t.plan(ctx, a)
}

func (t *Team) plan(ctx context.Context, a team.Approval) (p Plan, err error) {
	p.Approval = a
	if a.Status == team.PlanPending {
		p.Void, err = t.plans.Void(ctx, a)
	}
	return p, err
}

// DecidePlan approves or rejects a plan on behalf of a person. Errors: NotFound; Conflict if it
// was decided on before, or the decision comes too late; InvalidArgument for a rejection
// without feedback.
func (t *Team) DecidePlan(ctx context.Context, id string, approve bool, feedback string) (team.Approval, error) {
	return t.plans.Decide(ctx, id, team.Decision{By: team.UserAgent, Approve: approve, Feedback: feedback})
}
