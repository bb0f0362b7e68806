package budget_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/budget"
	"agentteam/pkg/team"
)

// endpoint counts what reaches it.
type endpoint struct {
	mu    sync.Mutex
	used  team.Budget
	calls int
	most  team.Budget // of one call
	over  team.Budget // of calls of killed members, between what was drawn and what was used
}

func (e *endpoint) answers(used, most team.Budget, killed bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.used, e.most, e.calls = e.used.Plus(used), e.most.AtLeast(most), e.calls+1
	if killed {
		e.over = e.over.Plus(most.Less(used))
	}
}

func record(b team.Budgets) team.Team {
	return team.Team{ID: "t", GoalNumber: 1, LeaseSeconds: 1, Budgets: b}
}

func meter(t *testing.T, bt *broker.Storage, name team.AgentID, incarnation uint64, r func() team.Team) *budget.Meter {
	t.Helper()
	return budget.New(budget.Options{Team: bt, Role: "coder", Record: r, Member: team.Member{AgentID: name, Incarnation: incarnation}})
}

func used(t *testing.T, bt *broker.Storage, r team.Team, account string) team.BudgetState {
	t.Helper()
	all, err := budget.States(t.Context(), bt, r)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		if s.Account == account {
			return s
		}
	}
	return team.BudgetState{}
}

// worker makes calls until its budget is used up. Now and then its process is killed in a call, or pauses in one for
// longer than the lease.
func worker(t *testing.T, bt *broker.Storage, e *endpoint, r *rand.Rand, name team.AgentID, now func() team.Team) error {
	for incarnation := uint64(1); ; incarnation++ {
		m := meter(t, bt, name, incarnation, now)
		for {
			most := team.Budget{Tokens: 2000 + r.Int64N(3000), Turns: 1}
			most.Cost = most.Tokens * 3000
			end, err := m.Begin(t.Context(), most)
			if over := (*budget.ExceededError)(nil); errors.As(err, &over) {
				return nil
			}
			if err != nil {
				return err
			}
			took := most.Share(1 + r.Int64N(4))
			took.Turns = 1
			killed := r.IntN(20) == 0
			e.answers(took, most, killed)
			if killed { // nothing of its memory is left
				break
			}
			if r.IntN(100) == 0 {
				time.Sleep(1500 * time.Millisecond) // the process was stopped for that long
			}
			end(took)
		}
	}
}

// 64 members with kills and pauses use what the budget has, and no more.
func TestManyMembers(t *testing.T) {
	for seed := range uint64(2) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			bt := brokertest.Team(t, "t")
			limit := team.Budget{Tokens: 3_000_000, Cost: 20 * team.Dollar, Turns: 100_000}
			now := func() team.Team { return record(team.Budgets{}.With(team.BudgetOf{}, limit)) }
			var e endpoint
			var all sync.WaitGroup
			for i := range 64 {
				r := rand.New(rand.NewPCG(seed, uint64(i)))
				all.Go(func() {
					if err := worker(t, bt, &e, r, team.AgentID(fmt.Sprintf("coder-%d", i)), now); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			s := used(t, bt, now(), "goal")
			t.Logf("%d calls used %v of %v, the ledger has %v; drawn by killed calls in addition %v", e.calls, e.used, limit, s.Used, e.over)
			if over := e.used.Above(limit); over != (team.Budget{}) {
				t.Errorf("exceeded by %v", over)
			}
			// The leader's share, one call, and the difference of calls that were under way.
			least := limit.Tokens - limit.Tokens/20 - e.most.Tokens
			if s.Used.Tokens < least {
				t.Errorf("the ledger stops at %v, want at least %d tokens", s.Used, least)
			}
			if most := e.used.Plus(e.over); s.Used.Tokens > most.Tokens+64*e.most.Tokens || s.Used.Tokens < e.used.Tokens {
				t.Errorf("the ledger has %v, the endpoint %v", s.Used, e.used)
			}
			if !s.Reached {
				t.Error("nobody waits")
			}
		})
	}
}

// A slice that a dead member holds is given back after a lease, less its call under way, and only once.
func TestDeadMember(t *testing.T) {
	bt := brokertest.Team(t, "t")
	limit := team.Budget{Turns: 10, Tokens: 1000}
	now := func() team.Team { return record(team.Budgets{}.With(team.BudgetOf{Role: "coder"}, limit)) }
	dead := meter(t, bt, "coder-1", 1, now)
	if _, err := dead.Begin(t.Context(), team.Budget{Turns: 1, Tokens: 600}); err != nil {
		t.Fatal(err)
	}
	others := []*budget.Meter{meter(t, bt, "coder-2", 1, now), meter(t, bt, "coder-3", 1, now)}
	var all sync.WaitGroup
	for _, m := range others { // both wait for the slice of the dead one, and find it gone
		all.Go(func() {
			end, err := m.Begin(t.Context(), team.Budget{Turns: 1, Tokens: 500})
			if over := (*budget.ExceededError)(nil); !errors.As(err, &over) || end != nil {
				t.Errorf("a call was drawn, %v", err)
			}
		})
	}
	all.Wait()
	if s := used(t, bt, now(), "role.coder"); s.Used != (team.Budget{Turns: 1, Tokens: 600}) {
		t.Errorf("used: %v", s.Used)
	}
	// The dead one was only paused: its next call is drawn again.
	end, err := dead.Begin(t.Context(), team.Budget{Turns: 1, Tokens: 300})
	if err != nil {
		t.Fatal(err)
	}
	end(team.Budget{Turns: 1, Tokens: 250})
	if err := dead.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s := used(t, bt, now(), "role.coder"); s.Used != (team.Budget{Turns: 2, Tokens: 850}) {
		t.Errorf("used: %v", s.Used)
	}
}

// The next incarnation of a member settles the slice of the last one, whose process cannot begin a call of it any more.
func TestNextIncarnation(t *testing.T) {
	bt := brokertest.Team(t, "t")
	now := func() team.Team { return record(team.Budgets{}.With(team.BudgetOf{}, team.Budget{Tokens: 100_000})) }
	first, second := meter(t, bt, "coder-1", 1, now), meter(t, bt, "coder-1", 2, now)
	end, err := first.Begin(t.Context(), team.Budget{Tokens: 300})
	if err != nil {
		t.Fatal(err)
	}
	end(team.Budget{Tokens: 200})
	if _, err := first.Begin(t.Context(), team.Budget{Tokens: 100}); err != nil { // it is killed in this call
		t.Fatal(err)
	}
	if _, err := second.Begin(t.Context(), team.Budget{Tokens: 10}); err != nil {
		t.Fatal(err)
	}
	if s := used(t, bt, now(), "goal"); s.Used.Tokens != 200+100+10 {
		t.Errorf("used: %v", s.Used)
	}
	if _, err := first.Begin(t.Context(), team.Budget{Tokens: 100}); !errors.Is(err, team.ErrSuperseded) {
		t.Errorf("the first begins a call: %v", err)
	}
}

// A raise holds for the next try, a budget below the use leaves nothing; a goal begins again, the team's budget does not.
func TestLimitsChange(t *testing.T) {
	bt := brokertest.Team(t, "t")
	r := record(team.Budgets{}.With(team.BudgetOf{}, team.Budget{Tokens: 1000}).With(team.BudgetOf{Team: true}, team.Budget{Tokens: 5000}))
	var warned []team.BudgetState
	m := budget.New(budget.Options{Team: bt, Role: team.LeaderRole, Record: func() team.Team { return r }, Member: team.Member{AgentID: team.Leader, Incarnation: 1},
		Warn: func(_ context.Context, s team.BudgetState) { warned = append(warned, s) }})
	call := func(tokens int64) error {
		t.Helper()
		end, err := m.Begin(t.Context(), team.Budget{Tokens: tokens})
		if err == nil {
			end(team.Budget{Tokens: tokens})
		}
		return err
	}
	if err := call(700); err != nil || len(warned) != 0 {
		t.Fatal(err, warned)
	}
	if err := call(150); err != nil || len(warned) != 1 || warned[0].Account != "goal" {
		t.Fatal(err, warned)
	}
	over := (*budget.ExceededError)(nil)
	if err := call(151); !errors.As(err, &over) || over.Account != "goal" || !errors.Is(err, team.BudgetExceeded) {
		t.Fatal(err)
	}
	r.Budgets = r.Budgets.With(team.BudgetOf{}, team.Budget{Tokens: 2000})
	if err := call(151); err != nil {
		t.Fatal(err)
	}
	r.Budgets = r.Budgets.With(team.BudgetOf{}, team.Budget{Tokens: 500})
	if err := call(1); !errors.As(err, &over) {
		t.Fatal(err)
	}
	r.GoalNumber++
	if err := call(400); err != nil {
		t.Fatal(err)
	}
	if s := used(t, bt, r, "goal"); s.Used.Tokens != 400 || s.Reached {
		t.Errorf("the new goal: %+v", s)
	}
	if s := used(t, bt, r, "team"); s.Used.Tokens != 700+150+151+400 {
		t.Errorf("the team: %+v", s)
	}
}

// Members that work at the same time use working time once.
func TestWorkingTime(t *testing.T) {
	bt := brokertest.Team(t, "t")
	now := func() team.Team { return record(team.Budgets{}.With(team.BudgetOf{}, team.Budget{WallTime: 1000})) }
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	meters := []*budget.Meter{meter(t, bt, "coder-1", 1, now), meter(t, bt, "coder-2", 1, now), meter(t, bt, "coder-3", 1, now)}
	for _, m := range meters {
		end, err := m.Begin(ctx, team.Budget{Turns: 1})
		if err != nil {
			t.Fatal(err)
		}
		end(team.Budget{Turns: 1})
		all.Go(func() { _ = m.Run(ctx) })
	}
	begun := time.Now()
	brokertest.Until(t, "the working time is used up", func() bool {
		end, err := meters[2].Begin(ctx, team.Budget{Turns: 1})
		if err == nil {
			end(team.Budget{Turns: 1})
		}
		over := (*budget.ExceededError)(nil)
		return errors.As(err, &over)
	})
	if took := time.Since(begun); took < 900*time.Millisecond {
		t.Errorf("a second of three members took %v", took)
	}
}

// Members that find another one dead give its slice back once.
func TestGivenBackOnce(t *testing.T) {
	bt := brokertest.Team(t, "t")
	now := func() team.Team { return record(team.Budgets{}.With(team.BudgetOf{}, team.Budget{Tokens: 10_000})) }
	if _, err := meter(t, bt, "coder-1", 1, now).Begin(t.Context(), team.Budget{Tokens: 5000}); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for _, name := range []team.AgentID{"a-1", "a-2", "a-3", "a-4", "a-5", "a-6", "a-7", "a-8", "a-9", "b-1", "b-2", "b-3", "b-4", "b-5", "b-6", "b-7"} {
		m := meter(t, bt, name, 1, now)
		all.Go(func() {
			_, err := m.Begin(t.Context(), team.Budget{Tokens: 6000})
			if over := (*budget.ExceededError)(nil); !errors.As(err, &over) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if s := used(t, bt, now(), "goal"); s.Used.Tokens != 5000 {
		t.Errorf("used: %v", s.Used)
	}
}
