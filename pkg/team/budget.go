package team

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Dollar is one US dollar in the unit of [Budget].Cost, billionths: a token costs a ten-millionth of a dollar or more.
const Dollar = 1_000_000_000

// Budget is an amount of what model calls use, or a limit of it. In a limit, 0 of a kind means no limit.
type Budget struct {
	Cost     int64 `json:"cost,omitempty"`      // billionths of a US dollar
	Tokens   int64 `json:"tokens,omitempty"`    // prompt and answer
	Unpriced int64 `json:"unpriced,omitempty"`  // tokens of calls whose price is not known
	Turns    int64 `json:"turns,omitempty"`     // model calls
	WallTime int64 `json:"wall_time,omitempty"` // milliseconds in which a member worked
}

// DefaultBudget is the budget of a goal that is set without one.
var DefaultBudget = Budget{Cost: 20 * Dollar, Unpriced: 10_000_000}

// Fields returns pointers to the amounts of b, in a fixed order.
func (b *Budget) Fields() [5]*int64 {
	return [5]*int64{&b.Cost, &b.Tokens, &b.Unpriced, &b.Turns, &b.WallTime}
}

// Each returns f of each amount of b and the same one of o.
func (b Budget) Each(o Budget, f func(b, o int64) int64) (r Budget) {
	to, of := r.Fields(), o.Fields()
	for i, n := range b.Fields() {
		*to[i] = f(*n, *of[i])
	}
	return r
}

// Plus returns b and o together.
func (b Budget) Plus(o Budget) Budget { return b.Each(o, func(x, y int64) int64 { return x + y }) }

// Less returns the rest of b without o; no amount is below 0.
func (b Budget) Less(o Budget) Budget {
	return b.Each(o, func(x, y int64) int64 { return max(x-y, 0) })
}

// Above returns the amounts of b that exceed the limit, less the limit.
func (b Budget) Above(limit Budget) Budget {
	return b.Each(limit, func(used, most int64) int64 {
		if most == 0 {
			return 0
		}
		return max(used-most, 0)
	})
}

// Share returns the n-th part of b, at least 1 of what b has.
func (b Budget) Share(n int64) Budget {
	return b.Each(b, func(x, _ int64) int64 { return (x + n - 1) / n })
}

// Kinds are the names of the amounts, in the order of [Budget.Fields].
var budgetKinds = [5]string{"cost", "tokens", "tokens of unknown price", "turns", "wall_time"}

// String returns the amounts that b has, as [ParseBudget] reads them: "5usd,2Mtok,400turns,1h30m0s".
func (b Budget) String() string {
	var parts []string
	add := func(n int64, text string) {
		if n != 0 {
			parts = append(parts, text)
		}
	}
	add(b.Cost, Dollars(b.Cost)+"usd")
	add(b.Tokens, tokensText(b.Tokens)+"tok")
	add(b.Unpriced, tokensText(b.Unpriced)+"tok of unknown price")
	add(b.Turns, strconv.FormatInt(b.Turns, 10)+"turns")
	add(b.WallTime, (time.Duration(b.WallTime) * time.Millisecond).String())
	if parts == nil {
		return "none"
	}
	return strings.Join(parts, ",")
}

// Dollars returns an amount of [Budget].Cost in dollars, to a hundredth of a cent: "0.25".
func Dollars(cost int64) string {
	return strings.TrimSuffix(strings.TrimRight(strconv.FormatFloat(float64(cost)/Dollar, 'f', 4, 64), "0"), ".")
}

func tokensText(n int64) string {
	for _, unit := range []struct {
		of   int64
		name string
	}{{1_000_000, "M"}, {1000, "k"}} {
		if n >= unit.of && n%(unit.of/100) == 0 {
			return strconv.FormatFloat(float64(n)/float64(unit.of), 'f', -1, 64) + unit.name
		}
	}
	return strconv.FormatInt(n, 10)
}

// NoBudget is the word for a goal without a budget.
const NoBudget = "none"

// ParseBudget reads budgets as people write them, each a list with commas: US dollars as 5 or 5usd, tokens as 2Mtok,
// 500ktok or 900tok, turns as 400turns, working time as 90m or 1h30m. none is true for "none", which means no budget.
// Errors: InvalidArgument, in one line.
func ParseBudget(texts ...string) (b Budget, none bool, err error) {
	for _, part := range strings.Split(strings.Join(texts, ","), ",") {
		if part = strings.TrimSpace(part); part == NoBudget {
			none = true
			continue
		}
		kind, n, err := parseAmount(part)
		if err != nil {
			return Budget{}, false, err
		}
		if to := b.Fields()[kind]; *to != 0 && *to != n {
			return Budget{}, false, Errorf(InvalidArgument, "budget %q contradicts another %s in the same list", part, budgetKinds[kind])
		} else {
			*to = n
		}
	}
	if none && b != (Budget{}) {
		return Budget{}, false, Errorf(InvalidArgument, "budget none contradicts %s", b)
	}
	return b, none, nil
}

// The indexes of [Budget.Fields].
const (
	costKind  = 0
	tokenKind = 1
	turnKind  = 3
	wallKind  = 4
)

const budgetHint = "write dollars as 5 or 5usd, tokens as 2Mtok, turns as 400turns, time as 90m"

// parseAmount reads one amount. The index is that of [Budget.Fields].
func parseAmount(text string) (kind int, n int64, err error) {
	bad := func(format string, args ...any) (int, int64, error) {
		return 0, 0, Errorf(InvalidArgument, "budget %.40q "+format, append([]any{text}, args...)...).WithHint(budgetHint)
	}
	number := strings.TrimRight(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
	unit := strings.ToLower(text[len(number):])
	if d, err := time.ParseDuration(text); err == nil && unit != "" {
		if d < time.Second {
			return bad("is not a second or more")
		}
		return wallKind, d.Milliseconds(), nil
	}
	f, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return bad("is no amount")
	}
	scale := map[string]float64{"": Dollar, "usd": Dollar, "tok": 1, "ktok": 1000, "mtok": 1_000_000, "turns": 1, "turn": 1}[unit]
	switch {
	case len(unit) == 3 && scale == 0:
		return bad("is in an unknown currency: only usd is known")
	case unit == "k" || unit == "m":
		return bad("has no unit")
	case scale == 0:
		return bad("has an unknown unit")
	case f <= 0 || f*scale < 1:
		return bad("is not above 0")
	case f*scale > 1<<62:
		return bad("is too large")
	case strings.HasSuffix(unit, "tok"):
		kind = tokenKind
	case strings.HasPrefix(unit, "turn"):
		kind = turnKind
	}
	if n = int64(f * scale); kind != costKind && float64(n) != f*scale {
		return bad("is no whole number")
	}
	return kind, n, nil
}

// Budgets are the limits of a team's model calls. A call counts to the team, its goal, and its member with that
// member's role and task.
type Budgets struct {
	Team    Budget             `json:"team,omitzero"`
	Goal    Budget             `json:"goal,omitzero"` // begins again with each goal
	Roles   map[string]Budget  `json:"roles,omitempty"`
	Members map[AgentID]Budget `json:"members,omitempty"`
	Tasks   map[TaskID]Budget  `json:"tasks,omitempty"`
}

// BudgetOf names what a budget is of. The zero value is the goal.
type BudgetOf struct {
	Team   bool
	Role   string
	Member AgentID
	Task   TaskID
}

// Account returns the name of the account that b's use is counted in: goal, team, role.coder, member.coder-1, task.T-001.
func (b BudgetOf) Account() string {
	switch {
	case b.Team:
		return "team"
	case b.Role != "":
		return "role." + b.Role
	case b.Member != "":
		return "member." + string(b.Member)
	case b.Task != "":
		return "task." + string(b.Task)
	}
	return "goal"
}

// With returns b with the limit of one of its accounts; the zero limit removes it. The receiver is not changed.
func (b Budgets) With(of BudgetOf, limit Budget) Budgets {
	switch {
	case of.Team:
		b.Team = limit
	case of.Role != "":
		b.Roles = withLimit(b.Roles, of.Role, limit)
	case of.Member != "":
		b.Members = withLimit(b.Members, of.Member, limit)
	case of.Task != "":
		b.Tasks = withLimit(b.Tasks, of.Task, limit)
	default:
		b.Goal = limit
	}
	return b
}

// Over returns old with the limits of b; the goal's is always that of b.
func (b Budgets) Over(old Budgets) Budgets {
	old.Goal = b.Goal
	if b.Team != (Budget{}) {
		old.Team = b.Team
	}
	for name, l := range b.Roles {
		old = old.With(BudgetOf{Role: name}, l)
	}
	for name, l := range b.Members {
		old = old.With(BudgetOf{Member: name}, l)
	}
	for id, l := range b.Tasks {
		old = old.With(BudgetOf{Task: id}, l)
	}
	return old
}

func withLimit[K comparable](m map[K]Budget, key K, limit Budget) map[K]Budget {
	if m = maps.Clone(m); m == nil {
		m = map[K]Budget{}
	}
	if m[key] = limit; limit == (Budget{}) {
		delete(m, key)
	}
	return m
}

// Limits returns the limits that hold for a call, by account; without a limit an account is left out.
func (b Budgets) Limits(role string, member AgentID, task TaskID) map[string]Budget {
	limits := map[string]Budget{BudgetOf{}.Account(): b.Goal, BudgetOf{Team: true}.Account(): b.Team}
	if member != "" {
		limits[BudgetOf{Member: member}.Account()] = b.Members[member]
	}
	if role != "" {
		limits[BudgetOf{Role: role}.Account()] = b.Roles[role]
	}
	if task != "" {
		limits[BudgetOf{Task: task}.Account()] = b.Tasks[task]
	}
	maps.DeleteFunc(limits, func(_ string, l Budget) bool { return l == (Budget{}) })
	return limits
}

// All returns every limit of b, by account.
func (b Budgets) All() map[string]Budget {
	all := b.Limits("", "", "")
	for r, l := range b.Roles {
		all[BudgetOf{Role: r}.Account()] = l
	}
	for m, l := range b.Members {
		all[BudgetOf{Member: m}.Account()] = l
	}
	for t, l := range b.Tasks {
		all[BudgetOf{Task: t}.Account()] = l
	}
	return all
}

// BudgetState is how an account stands: the limit, and the use.
type BudgetState struct {
	Account string `json:"account"`
	Limit   Budget `json:"limit"`
	Used    Budget `json:"used"`
	Reached bool   `json:"reached,omitempty"` // a member waits at the limit
}

// Exceeded returns the limits of s that leave nothing, in words such as "cost 5usd"; "" if none.
func (s BudgetState) Exceeded() string {
	var words []string
	limit, used := s.Limit.Fields(), s.Used.Fields()
	for i, n := range limit {
		if *n > 0 && *used[i] >= *n {
			words = append(words, budgetKinds[i])
		}
	}
	slices.Sort(words)
	return strings.Join(words, ", ")
}

// AtLeast returns the larger amounts of b and o.
func (b Budget) AtLeast(o Budget) Budget {
	return b.Each(o, func(x, y int64) int64 { return max(x, y) })
}

// Least returns the smaller amounts of b and o, of which 0 means that there is none.
func (b Budget) Least(o Budget) Budget {
	return b.Each(o, func(x, y int64) int64 {
		if x == 0 || y == 0 {
			return max(x, y)
		}
		return min(x, y)
	})
}

// Of returns the amounts of b that a limit has.
func (b Budget) Of(limit Budget) Budget {
	return b.Each(limit, func(x, l int64) int64 {
		if l == 0 {
			return 0
		}
		return x
	})
}

// Holds reports whether b is as large as need in each kind that one of the limits has.
func (b Budget) Holds(need Budget, limits map[string]Budget) bool {
	need.WallTime = 0
	for _, l := range limits {
		if need.Less(b).Of(l) != (Budget{}) {
			return false
		}
	}
	return true
}

// GoalBudget returns the budget of a goal to be set, as [ParseBudget] reads it; "" is [DefaultBudget]. Errors:
// InvalidArgument.
func GoalBudget(text string) (limit Budget, err error) {
	if text == "" {
		return DefaultBudget, nil
	}
	limit, _, err = ParseBudget(text)
	return limit, err
}
