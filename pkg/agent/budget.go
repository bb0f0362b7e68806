package agent

import (
	"context"
	"errors"
	"time"

	"agentteam/pkg/agent/engine"
	"agentteam/pkg/model"
	"agentteam/pkg/team"
)

// budgetAgain is how often an agent at its limit tries again, in addition to each change of the budgets: calls of
// others may have used less than they drew.
const budgetAgain = 30 * time.Second

// awaitsBudget waits if err states that a call would exceed a budget; over is false for any other error. The agent keeps
// its task and its conversation.
func (a *Agent) awaitsBudget(ctx context.Context, err error) (over bool, _ error) {
	r, ok := errors.AsType[*model.Refusal](err)
	if !ok || !r.OverBudget {
		return false, err
	}
	cause := team.Clean(engine.Cause(r), engine.MaxTrouble)
	if r.Used != (model.Usage{}) { // of tries before
		if err := a.engine.Refused(ctx, r, r.Advice, cause); err != nil {
			return true, err
		}
	}
	a.engine.Trouble = ""
	a.short = cause
	a.heartbeat(team.WaitingBudget)
	a.log.InfoContext(ctx, "waits for a budget", "err", cause)
	err = a.pause(ctx, wants{budget: a.o.Team.BudgetChanged()}, budgetAgain)
	a.short = ""
	a.o.Heart.Progress() // it has not stalled
	return true, err
}
