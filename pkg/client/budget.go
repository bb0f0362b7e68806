package client

import (
	"context"
	"slices"
	"time"

	"agentteam/pkg/shutdown"
	"agentteam/pkg/store/budget"
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
	_, err = t.client.registry.Edit(ctx, t.team, func(record *team.Team) {
		limit := limit
		if had := record.Budgets.All()[of.Account()]; limit.Cost > 0 && limit.Tokens == 0 { // else calls of unknown price would be refused
			limit.Unpriced = had.Unpriced
		}
		record.Budgets = record.Budgets.With(of, limit)
	})
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

// budgetPoll is the time between two looks at the budgets.
const budgetPoll = time.Second

// BudgetReached blocks until a member waits at the limit of a budget, and returns that; until ctx ends. It leaves out the limits in
// but, by account.
func (t *Team) BudgetReached(ctx context.Context, but map[string]team.Budget) (team.BudgetState, error) {
	for {
		all, err := t.Budgets(ctx)
		all = slices.DeleteFunc(all, func(s team.BudgetState) bool { return !s.Reached || but[s.Account] == s.Limit })
		if err == nil && len(all) > 0 { // a member came to the limit; it may be gone since
			var members []Agent
			members, err = t.Members().List(ctx, false)
			if slices.ContainsFunc(members, func(a Agent) bool { return a.State == team.WaitingBudget }) {
				return all[0], nil
			}
		}
		if err == nil && !shutdown.Sleep(ctx, budgetPoll) {
			err = ctx.Err()
		}
		if err != nil {
			return team.BudgetState{}, err
		}
	}
}
