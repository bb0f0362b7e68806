package client

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"agentteam/pkg/team"
)

// Plan is a plan that was submitted for approval, or a call that a person must allow, as it is
// printed.
type Plan struct {
	team.Approval
	Void string `json:"void,omitempty"` // of a pending one: why a decision would come too late
}

// Waits reports whether p waits for a decision.
func (p Plan) Waits() bool { return p.Status == team.PlanPending && p.Void == "" }

// Entry returns p as a feed entry, at the time of its submission.
func (p Plan) Entry() Entry {
	value, _ := json.Marshal(p.Approval) // which was read from JSON
	return Entry{Time: p.CreatedAt, Event: team.Event{AgentID: p.AgentID, Event: team.EventBody{Type: team.ApprovalRequested, Value: value}}}
}

// List returns the submitted plans and requested calls, oldest first.
func (t Plans) List(ctx context.Context) ([]Plan, error) {
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

// Get returns one of them. Errors: NotFound.
func (t Plans) Get(ctx context.Context, id string) (Plan, error) {
	a, err := t.plans.Get(ctx, id)
	if err != nil {
		return Plan{}, err
	}
	return t.plan(ctx, a)
}

// Find returns the plan that which identifies: by its id, by a prefix of the id that is unique
// among the waiting ones, or by a member with only one waiting. Errors: NotFound; InvalidArgument,
// with the candidates, if several match.
func (t Plans) Find(ctx context.Context, which string) (Plan, error) {
	p, err := t.Get(ctx, which)
	if which == "" || !errors.Is(err, team.NotFound) {
		return p, err
	}
	all, lerr := t.List(ctx)
	if lerr != nil {
		return Plan{}, lerr
	}
	for _, named := range []func(Plan) bool{
		func(p Plan) bool { return p.Waits() && string(p.AgentID) == which },
		func(p Plan) bool { return p.Waits() && strings.HasPrefix(p.ID, which) },
		func(p Plan) bool { return strings.HasPrefix(p.ID, which) }, // the decision on it has a better error
	} {
		switch found := slices.DeleteFunc(slices.Clone(all), func(p Plan) bool { return !named(p) }); len(found) {
		case 0:
		case 1:
			return found[0], nil
		default:
			lines := make([]string, len(found))
			for i, p := range found {
				lines[i] = p.ID + " of " + string(p.AgentID) + ": " + team.Clip(team.OneLine(p.Brief()), 60)
			}
			return Plan{}, team.Errorf(team.InvalidArgument, "%q can mean %d requests: %s", which, len(found), team.Some(lines, 5)).WithHint("give more of the id")
		}
	}
	return Plan{}, err
}

func (t *core) plan(ctx context.Context, a team.Approval) (p Plan, err error) {
	p.Approval = a
	if a.Status == team.PlanPending {
		p.Void, err = t.plans.Void(ctx, a)
	}
	return p, err
}

// Decide decides on a plan or a call on behalf of a person: of as, who has a seat, or "" for the
// user; By and Seated of d are filled in. A decision with scope always also adds its rule to what
// the team allows; if it was interrupted before that, the same decision again completes it. Errors:
// NotFound; Conflict if it was decided on before, the decision comes too late, or the team was
// saved; InvalidArgument for a plan's rejection without feedback and an unknown scope; those of a
// seat.
func (t Plans) Decide(ctx context.Context, as team.AgentID, id string, d team.Decision) (team.Approval, error) {
	if err := t.here(ctx); err != nil {
		return team.Approval{}, err
	}
	d.By = team.UserAgent
	if as != "" {
		if err := t.requireSeat(ctx, as); err != nil {
			return team.Approval{}, err
		}
		d.By = as
	}
	a, err := t.plans.Decide(ctx, id, d)
	repeated := errors.Is(err, team.Conflict) && d.Approve && d.Scope == team.Always && a.Scope == team.Always && a.DecidedBy == d.By
	if err != nil && !repeated || a.Scope != team.Always {
		return a, err
	}
	added := false
	_, editErr := t.client.registry.Edit(ctx, t.team, func(record *team.Team) {
		p := &record.Policy.Permissions
		if added = !slices.Contains(p.Allow, a.Call.Rule); added {
			p.Allow = append(slices.Clone(p.Allow), a.Call.Rule)
			if p.Given = maps.Clone(p.Given); p.Given == nil {
				p.Given = map[string]team.Grant{}
			}
			p.Given[a.Call.Rule] = team.Grant{Approval: a.ID, By: a.DecidedBy}
		}
	})
	switch {
	case editErr != nil:
		return a, team.Errorf(team.CodeOf(editErr), "the call is allowed, and the rule %s is not added: %w", a.Call.Rule, editErr).WithHint("the same command once more adds it")
	case repeated && !added:
		return a, err
	}
	return a, nil
}
