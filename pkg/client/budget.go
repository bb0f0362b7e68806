package client

import (
	"context"
	"errors"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/budget"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/store/usage"
	"agentteam/pkg/team"
)

// rehearsed is the name of the model of a rehearsal, which costs nothing.
const rehearsed = "rehearsal"

// DefaultBudget returns the budget of a goal that is set without one, where the leader's process has that model; nil for
// a rehearsal: none.
func DefaultBudget(model string) *team.Budget {
	if model == rehearsed {
		return nil
	}
	limit := team.DefaultBudget
	return &limit
}

// Budgets returns how the team's budgets stand, by account.
func (t *Team) Budgets(ctx context.Context) ([]team.BudgetState, error) {
	record, err := t.record(ctx)
	if err != nil {
		return nil, err
	}
	return budget.States(ctx, t.team, record)
}

// SetBudget sets a limit; the zero limit removes it. Members that wait for it go on immediately. What was used before
// the account had a limit counts, as far as the journals hold it.
func (t *Team) SetBudget(ctx context.Context, of team.BudgetOf, limit team.Budget) error {
	record, err := t.record(ctx)
	if err != nil {
		return err
	}
	if _, limited := record.Budgets.All()[of.Account()]; !limited {
		used, err := t.usedBefore(ctx, record, of)
		if err != nil {
			return err
		}
		if err := budget.Seed(ctx, t.team, record.GoalNumber, of.Account(), used); err != nil {
			return err
		}
	}
	_, err = t.client.registry.Edit(ctx, t.team, func(record *team.Team) { record.Budgets = record.Budgets.With(of, limit) })
	return err
}

// usedBefore sums up the calls of an account in the journals.
func (t *Team) usedBefore(ctx context.Context, record team.Team, of team.BudgetOf) (team.Budget, error) {
	by, name, goal := usage.ByAgent, "", 0
	switch {
	case of.Role != "":
		by, name = usage.ByRole, of.Role
	case of.Member != "":
		name = string(of.Member)
	case of.Task != "":
		by, name = usage.ByTask, string(of.Task)
	case !of.Team && record.Goal == "":
		return team.Budget{}, nil
	case !of.Team:
		goal = record.GoalNumber
	}
	table, err := t.Cost(ctx, goal, by)
	if err != nil {
		return team.Budget{}, err
	}
	sum := table.Total
	if name != "" {
		sum = usage.Sum{}
		for _, row := range table.Rows {
			if row.Name == name {
				sum = row.Sum
			}
		}
	}
	used := team.Budget{Cost: int64(sum.Cost * team.Dollar), Tokens: int64(sum.Tokens() + sum.Wasted()), Turns: int64(sum.Calls)}
	if sum.Known() == nil {
		used.Unpriced = used.Tokens
	}
	return used, nil
}

// BudgetReached blocks until a member waits at the limit of a budget, and returns that; until ctx ends.
func (t *Team) BudgetReached(ctx context.Context) (reached team.BudgetState, err error) {
	err = t.team.Bucket.Watch(ctx, func(broker.Entry) error {
		all, err := t.Budgets(ctx)
		if err != nil {
			return err
		}
		for _, s := range all {
			if s.Reached {
				reached = s
				return broker.ErrEnough
			}
		}
		return nil
	}, nil, subject.KeyBudget, subject.KeyTeam)
	if errors.Is(err, broker.ErrEnough) || reached.Account != "" {
		err = nil
	}
	if err == nil && reached.Account == "" {
		err = ctx.Err()
	}
	return reached, err
}

// GoalBudget returns the budget of a goal to be set, as [team.ParseBudget] reads it; "" is [DefaultBudget]. Errors:
// InvalidArgument.
func (t *Team) GoalBudget(ctx context.Context, text string) (limit team.Budget, err error) {
	if text != "" {
		limit, _, err = team.ParseBudget(text)
		return limit, err
	}
	procs, _ := t.client.Processes(ctx) // without an answer the budget holds
	if l := DefaultBudget(procs.Model); l != nil {
		limit = *l
	}
	return limit, nil
}
