package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
)

func (a *app) budgetCmd() *cobra.Command {
	cmd := group(&cobra.Command{Use: "budget", Short: "Show or set the limits of what the team may use",
		Long: "budget shows what the team's budgets have, and what is used of them.\n" +
			"A call that would exceed a budget is not made: its member waits (waiting_budget) with its work, until the budget is raised."})
	cmd.RunE = func(*cobra.Command, []string) error { return a.showBudgets() }
	show := &cobra.Command{Use: "show", Short: "Show the budgets and their use", Args: atMost(0), RunE: cmd.RunE}
	var of team.BudgetOf
	set := &cobra.Command{Use: "set {AMOUNT[,AMOUNT]... | none}", Short: "Set the budget of the goal, or of another account", Args: exactly(1, "AMOUNT"),
		Long: "set replaces a budget: US dollars as 5 or 5usd, tokens as 2Mtok, turns as 400turns, working time as 90m; none lifts it.\n" +
			"Without a flag it is that of the present goal. Members that wait go on immediately."}
	f := set.Flags()
	f.BoolVar(&of.Team, "whole-team", false, "of the team, over all its goals")
	f.StringVar(&of.Role, "role", "", "of all members of this role together")
	f.StringVar((*string)(&of.Member), "member", "", "of this member")
	f.StringVar((*string)(&of.Task), "task", "", "of this task")
	set.MarkFlagsMutuallyExclusive("whole-team", "role", "member", "task")
	completeFlags(set, map[string]cobra.CompletionFunc{"role": completeRoles})
	set.RunE = func(_ *cobra.Command, args []string) error {
		limit, _, err := team.ParseBudget(args[0])
		if err != nil {
			return err
		}
		if of.Task != "" {
			if of.Task, err = team.ParseTaskID(string(of.Task)); err != nil {
				return err
			}
		}
		return a.withTeam(func(ctx context.Context, t *client.Team) error {
			if err := t.SetBudget(ctx, of, limit); err != nil {
				return err
			}
			a.note(fmt.Sprintf("the budget of %s is %s", of.Account(), limit))
			return nil
		})
	}
	cmd.AddCommand(readsStored(a, show), set)
	cmd.RunE = show.RunE
	return cmd
}

// budgetAmount is a [team.Budget] for programs; 0 in a limit: none.
type budgetAmount struct {
	Cost     float64 `json:"cost"` // US dollars
	Tokens   int64   `json:"tokens"`
	Unpriced int64   `json:"unpriced_tokens"` // of calls whose price is not known
	Turns    int64   `json:"turns"`
	WallTime float64 `json:"wall_time_seconds"`
}

func amountOf(b team.Budget) budgetAmount {
	return budgetAmount{float64(b.Cost) / team.Dollar, b.Tokens, b.Unpriced, b.Turns, float64(b.WallTime) / 1000}
}

type budgetRow struct {
	Account string       `json:"account"`
	Limit   budgetAmount `json:"limit"`
	Used    budgetAmount `json:"used"`
	Reached bool         `json:"reached"` // a member waits
}

func (a *app) showBudgets() error {
	return a.readTeam(a.printNone, func(ctx context.Context, t *client.Team) error {
		all, err := t.Budgets(ctx)
		if err != nil {
			return err
		}
		rows := make([]budgetRow, 0, len(all))
		shown := table{columns: []column{{head: "ACCOUNT"}, {head: "LIMIT"}, {head: "USED"}, {head: "WAITS"}}}
		for _, s := range all {
			rows = append(rows, budgetRow{s.Account, amountOf(s.Limit), amountOf(s.Used), s.Reached})
			used := s.Used
			if s.Limit != (team.Budget{}) {
				used = used.Of(s.Limit)
			}
			shown.add(printable(s.Account), s.Limit.String(), used.String(), onlyIf(s.Reached, "yes"))
		}
		if len(rows) == 0 {
			a.note(fmt.Sprintf("team %s has no budget; teamctl budget set 5usd sets one for its goal", t.ID()))
		}
		return printList(a, rows, func(r budgetRow) string { return r.Account }, func() table { return shown })
	})
}

// whileWithin returns a context that ends, with the reason as its cause (BudgetExceeded), once a member waits for a
// budget and no person is at the terminal to raise it. At a terminal the person is asked.
func (a *app) whileWithin(ctx context.Context, t *client.Team, p *runRequest) (within context.Context, done func()) {
	within, end := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		shown := map[string]team.Budget{}
		for within.Err() == nil {
			s, err := t.BudgetReached(within, shown)
			if err != nil {
				pauseFor(within, time.Second)
				continue
			}
			text := fmt.Sprintf("the budget of %s is used up: %s of %s", s.Account, s.Used.Of(s.Limit), s.Limit)
			raise := a.command("budget set", t.ID()) + " AMOUNT" + flagOf(s.Account)
			if !term.IsTerminal(int(os.Stdin.Fd())) {
				err := team.Errorf(team.BudgetExceeded, "%s", text)
				if p.epilogue == "" { // else the cluster is thrown away
					first := ""
					if p.own { // the cluster ends with the command
						first = "teamctl up -d, "
					}
					err = err.WithHint("the goal is kept; raise the budget and continue: %s%s, then %s", first, raise, a.command("run --resume", t.ID()))
				}
				if p.own && s.Account == (team.BudgetOf{}).Account() && p.epilogue == "" {
					err = err.WithHint("the goal is kept; raise the budget and continue: %s --budget AMOUNT", a.command("run --resume", t.ID()))
				}
				end(err)
				return
			}
			a.note(text + "; its members wait. Raise it: " + raise + "; or have the leader finish with what is there: " +
				a.command("send leader", t.ID()) + ` "finish"; or stop: ` + a.command("stop", t.ID()))
			shown[s.Account] = s.Limit
		}
	}()
	return within, func() { end(nil); <-ended }
}

// flagOf returns the flag of `teamctl budget set` for an account.
func flagOf(account string) string {
	kind, name, named := strings.Cut(account, ".")
	switch {
	case named:
		return " --" + kind + " " + name
	case kind == (team.BudgetOf{Team: true}).Account():
		return " --whole-team"
	}
	return ""
}

// pauseFor returns after d, or when ctx ends.
func pauseFor(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
