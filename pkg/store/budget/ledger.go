package budget

import (
	"context"
	"errors"
	"maps"
	"slices"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

// ledger is the record of what a team has used of its budgets.
type ledger struct {
	V       int                    `json:"v"`
	Goal    int                    `json:"goal"` // the number of the goal of which the account goal is
	Used    map[string]team.Budget `json:"used,omitempty"`
	Open    map[team.AgentID]slice `json:"open,omitempty"`
	Warned  map[string]team.Budget `json:"warned,omitempty"`  // by account: the limit of which four fifths were reported
	Reached map[string]team.Budget `json:"reached,omitempty"` // by account: the limit at which a member waits
	Ticked  map[string]int64       `json:"ticked,omitempty"`  // by account: when working time was last added, in milliseconds

	revision uint64
	kept     team.Extra
}

// slice is the part of the budgets that one member has drawn and not yet given back.
type slice struct {
	ID       string      `json:"id"`
	Accounts []string    `json:"accounts"`
	Amount   team.Budget `json:"amount"`
}

// hold is the record of a member's use of its slice.
type hold struct {
	V           int         `json:"v"`
	Slice       string      `json:"slice"`
	Incarnation uint64      `json:"incarnation"`
	Spent       team.Budget `json:"spent,omitzero"` // of calls that have ended
	Calls       team.Budget `json:"calls,omitzero"` // the most that the calls under way may use
	Closed      bool        `json:"closed,omitempty"`

	revision uint64
	kept     team.Extra
}

// reserve is the share of the budgets of team and goal that only the leader may draw, so that it can end in words.
const reserve = 20

// shares is the number of slices that a budget is cut into at least.
const shares = 200

func readLedger(ctx context.Context, b *broker.Bucket) (l ledger, err error) {
	e, err := b.Get(ctx, subject.KeyBudget)
	if errors.Is(err, team.NotFound) {
		return ledger{V: team.Protocol}.whole(), nil
	}
	if err != nil {
		return l, err
	}
	l.kept, err = e.Decode(&l, &l.V)
	l.revision = e.Revision
	return l.whole(), err
}

func (l ledger) whole() ledger {
	for _, m := range []*map[string]team.Budget{&l.Used, &l.Warned, &l.Reached} {
		if *m == nil {
			*m = map[string]team.Budget{}
		}
	}
	if l.Open == nil {
		l.Open = map[team.AgentID]slice{}
	}
	if l.Ticked == nil {
		l.Ticked = map[string]int64{}
	}
	return l
}

// update changes the ledger by compare-and-set.
func update(ctx context.Context, b *broker.Bucket, change func(*ledger) (bool, error)) (ledger, error) {
	return broker.Update(ctx, func(ctx context.Context) (ledger, error) { return readLedger(ctx, b) }, change,
		func(ctx context.Context, l ledger) (ledger, error) {
			var err error
			l.revision, err = broker.Save(ctx, b, subject.KeyBudget, l, l.kept, l.revision)
			return l, err
		})
}

func readHold(ctx context.Context, b *broker.Bucket, of team.AgentID) (h hold, err error) {
	e, err := b.Get(ctx, subject.KeySlice(of))
	if errors.Is(err, team.NotFound) {
		return hold{V: team.Protocol}, nil
	}
	if err != nil {
		return h, err
	}
	h.kept, err = e.Decode(&h, &h.V)
	h.revision = e.Revision
	return h, err
}

func (h hold) put(ctx context.Context, b *broker.Bucket, of team.AgentID) (hold, error) {
	revision, err := broker.Save(ctx, b, subject.KeySlice(of), h, h.kept, h.revision)
	if err == nil {
		h.revision = revision
	}
	return h, err
}

// begins makes l that of a goal: the account of the goal begins again with each.
func (l *ledger) begins(goal int) {
	if goal <= l.Goal {
		return
	}
	l.Goal = goal
	account := team.BudgetOf{}.Account()
	for _, m := range []map[string]team.Budget{l.Used, l.Warned, l.Reached} {
		delete(m, account)
	}
	delete(l.Ticked, account)
	for of, s := range l.Open { // what is drawn of the last goal's budget is not of this one's
		s.Accounts = slices.DeleteFunc(slices.Clone(s.Accounts), func(a string) bool { return a == account })
		l.Open[of] = s
	}
}

// drawn returns what is used of an account, with the open slices of all members but one.
func (l ledger) drawn(account string, but team.AgentID) (sum team.Budget, others bool) {
	sum = l.Used[account]
	for of, s := range l.Open {
		if of != but && slices.Contains(s.Accounts, account) {
			sum, others = sum.Plus(s.Amount), true
		}
	}
	return sum, others
}

// settle removes the open slice of a member, and counts its use. It returns false if that slice is not open: it was
// given back before.
func (l *ledger) settle(of team.AgentID, id string, used team.Budget) bool {
	s, open := l.Open[of]
	if !open || s.ID != id {
		return false
	}
	delete(l.Open, of)
	for _, account := range s.Accounts {
		l.Used[account] = l.Used[account].Plus(used)
	}
	return true
}

// States returns how each account stands that has a limit in the record or was used, by name. The use includes open
// slices as far as their members have recorded it. Errors: Unavailable; those of a record that cannot be read.
func States(ctx context.Context, t *broker.Storage, record team.Team) ([]team.BudgetState, error) {
	l, err := readLedger(ctx, t.Bucket)
	if err != nil {
		return nil, err
	}
	l.begins(record.GoalNumber)
	for of, s := range maps.Clone(l.Open) {
		h, err := readHold(ctx, t.Bucket, of)
		if err != nil {
			return nil, err
		}
		if h.Slice != s.ID {
			h = hold{}
		}
		l.settle(of, s.ID, h.Spent.Plus(h.Calls))
	}
	limits := record.Budgets.All()
	names := slices.Sorted(maps.Keys(l.Used))
	for _, account := range slices.Sorted(maps.Keys(limits)) {
		if !slices.Contains(names, account) {
			names = append(names, account)
		}
	}
	slices.Sort(names)
	var all []team.BudgetState
	for _, account := range names {
		s := team.BudgetState{Account: account, Limit: limits[account], Used: l.Used[account]}
		s.Reached = s.Limit != (team.Budget{}) && l.Reached[account] == s.Limit
		all = append(all, s)
	}
	return all, nil
}

// Seed counts a use that was before an account had a limit. Of that and the use in the ledger the larger counts: calls
// that no limit held are in the journals only. Errors: Unavailable.
func Seed(ctx context.Context, t *broker.Storage, goal int, account string, used team.Budget) error {
	_, err := update(ctx, t.Bucket, func(l *ledger) (bool, error) {
		l.begins(goal)
		l.Used[account] = l.Used[account].AtLeast(used)
		return true, nil
	})
	return err
}
