package runtime

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"agentteam/pkg/agent/engine"
	"agentteam/pkg/model"
	"agentteam/pkg/shutdown"
	"agentteam/pkg/store/budget"
	"agentteam/pkg/store/mailbox"
	"agentteam/pkg/team"
	"agentteam/pkg/telemetry"
)

// purse draws the model calls of the member and of its subagents from the budgets.
type purse struct {
	*member
	meter *budget.Meter

	mu      sync.Mutex
	changed chan struct{} // closed when the team's record changes
	refused chan struct{} // as it was before the last call that was not drawn
}

func (m *member) newPurse(box *mailbox.Mailbox) *purse {
	p := &purse{member: m, changed: make(chan struct{})}
	p.refused = p.changed
	p.meter = budget.New(budget.Options{Team: m.Team, Member: m.Member, Role: m.Member.Role, Record: m.record, Logger: m.Logger,
		Task: func() team.TaskID {
			t, _ := m.hand.Task()
			return t.ID
		},
		Working: func() bool { return m.heart.Now().State == team.Running },
		Warn:    func(ctx context.Context, s team.BudgetState) { p.warn(ctx, box, s) }})
	return p
}

// raised wakes the calls that wait for a budget.
func (p *purse) raised() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *purse) now() chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.changed
}

// warn notifies the leader that a budget is nearly used up.
func (p *purse) warn(ctx context.Context, box *mailbox.Mailbox, s team.BudgetState) {
	p.Logger.WarnContext(ctx, "four fifths of a budget are used", "account", s.Account, "limit", s.Limit.String())
	telemetry.Counters(p.Metrics, "agentteam_budget_warnings_total", "Budgets of which four fifths were used.").WithLabelValues().Inc()
	text := fmt.Sprintf("Four fifths of the budget of %s are used or drawn: %s of %s. Bring the work to an end within it.", s.Account, s.Used.Of(s.Limit), s.Limit)
	if s.Account == (team.BudgetOf{}).Account() || s.Account == (team.BudgetOf{Team: true}).Account() {
		text += " At the limit every member but you waits; you may still use the last twentieth, to end in words."
	}
	id := fmt.Sprintf("budget-%s-%d-%s", s.Account, p.record().GoalNumber, s.Limit)
	if _, _, err := box.Send(ctx, team.Message{ID: id, Type: team.MsgWatchdog, From: team.Watchdog, To: team.Leader, Content: text}); err != nil && ctx.Err() == nil {
		p.Logger.WarnContext(ctx, "notice not sent", "to", team.Leader, "err", err)
	}
}

// of returns llm with every call drawn from the budgets. A subagent waits in the call for a budget to be raised; its
// owner's loop waits in its own way.
func (p *purse) of(llm engine.Model, subagent bool) engine.Model {
	if llm == nil || p == nil {
		return llm
	}
	return metered{llm, p, subagent}
}

type metered struct {
	engine.Model
	purse *purse
	waits bool
}

// Complete implements [engine.Model].
func (d metered) Complete(ctx context.Context, r model.Request, onDelta func(string)) (model.Reply, error) {
	r.Meter = d.draw
	return d.Model.Complete(ctx, r, onDelta)
}

// draw draws one try of a call.
func (d metered) draw(ctx context.Context, alias string, most model.Usage) (func(model.Usage), error) {
	for {
		changed := d.purse.now()
		end, err := d.purse.begin(ctx, alias, most)
		over := (*budget.ExceededError)(nil)
		switch {
		case err == nil:
			return func(u model.Usage) { end(amount(u)) }, nil
		case errors.As(err, &over) && d.waits:
			if err := d.purse.waitIn(ctx, changed, over); err != nil {
				return nil, err
			}
			continue
		case errors.As(err, &over):
			d.purse.mu.Lock()
			d.purse.refused = changed
			d.purse.mu.Unlock()
			return nil, &model.Refusal{OverBudget: true, Advice: model.GiveUp, Reason: model.InvalidRequest, Alias: alias,
				Err: team.Errorf(team.BudgetExceeded, "%w", over).WithHint("raise it: teamctl budget set")}
		case ctx.Err() != nil:
			return nil, ctx.Err()
		}
		if r, ok := errors.AsType[*model.Refusal](err); ok {
			return nil, r
		}
		return nil, &model.Refusal{Advice: model.TryAgain, Reason: model.Connection, Alias: alias,
			Err: team.Errorf(team.Unavailable, "the call was not drawn from the budgets: %w", err)}
	}
}

// waitIn waits within a subagent's call until the budgets change; meanwhile the member's heartbeat shows that.
func (p *purse) waitIn(ctx context.Context, changed <-chan struct{}, over error) error {
	p.heart.Set(func(b *team.Heartbeat) {
		if b.State == team.Running { // in the call that waits for the subagent
			b.State, b.Awaits, b.About = team.WaitingBudget, team.UserAgent, over.Error()
		}
	})
	defer p.heart.Set(func(b *team.Heartbeat) {
		if b.State == team.WaitingBudget {
			b.State, b.Awaits, b.About = team.Running, "", ""
		}
	})
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-changed:
		return nil
	}
}

// goalWithin bounds the wait for the record of a goal.
const goalWithin = 300 * time.Millisecond

// awaitGoal has the leader's call between two goals wait for the record of the next one: the mail of a goal comes before its
// record, and the first call of the goal is drawn from its budget.
func (p *purse) awaitGoal(ctx context.Context) {
	ctx, done := context.WithTimeout(ctx, goalWithin)
	defer done()
	for p.Member.AgentID == team.Leader && !p.record().AtWork() && shutdown.Sleep(ctx, 10*time.Millisecond) {
	}
}

func (p *purse) begin(ctx context.Context, alias string, most model.Usage) (func(team.Budget), error) {
	p.awaitGoal(ctx)
	if account := p.meter.NeedsPrice(); account != "" && (most.Unpriced > 0 || !inDollars(most.Currency)) {
		return nil, &model.Refusal{Advice: model.Park, Reason: model.InvalidRequest, Alias: alias,
			Err: team.Errorf(team.InvalidArgument, "the price of the model alias %s in US dollars is not known, and the budget of %s limits the cost", alias, account).
				WithHint("set prices for %s under models in team.yaml, or assume_price", alias)}
	}
	return p.meter.Begin(ctx, amount(most))
}

// inDollars reports whether a currency, as settings name it, is the US dollar.
func inDollars(currency string) bool {
	return currency == "" || strings.EqualFold(currency, "usd") || currency == "$"
}

// amount returns a usage as an amount of the budgets. A try that has used no tokens is no turn.
func amount(u model.Usage) (b team.Budget) {
	b.Tokens = int64(u.PromptTokens + u.CompletionTokens + u.WastedPrompt + u.WastedCompletion)
	switch {
	case b.Tokens == 0:
		return b
	case u.Unpriced > 0 || !inDollars(u.Currency):
		b.Unpriced = b.Tokens
	default:
		b.Cost = int64(math.Ceil(u.Cost * team.Dollar))
	}
	b.Turns = 1
	return b
}

// settleWithin bounds the return of what the member has drawn and not used.
const settleWithin = 2 * time.Second

// settleBudgets gives back what the member has drawn and not used. If that fails, the slice ends with its lease.
func (m *member) settleBudgets(ctx context.Context) {
	if m.purse == nil {
		return
	}
	ctx, done := context.WithTimeout(ctx, settleWithin)
	defer done()
	if err := m.purse.meter.Settle(ctx); err != nil {
		m.Logger.DebugContext(ctx, "budget slice not given back", "err", err)
	}
}
