package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
	"agentteam/pkg/team/explain"
	"agentteam/pkg/view/render"
)

func (a *app) goalsCmd() *cobra.Command {
	return &cobra.Command{
		Use: "goals", Short: "List the team's past goals: end, result, time and cost", Args: atMost(0),
		Long: "goals lists the goals of the team that have ended, the oldest first: how each ended, what became of its tasks,\n" +
			"how long it took, what its model calls have cost, and the leader's summary or why the goal failed. The team keeps the\n" +
			"newest five. The cost is that of the calls from when the goal was set until the next one was, as with `teamctl cost --goal N`.",
		RunE: func(*cobra.Command, []string) error {
			return a.readTeam(a.printNone, func(ctx context.Context, t *client.Team) error {
				goals, err := t.Goals().Took(ctx)
				if err != nil {
					return err
				}
				switch {
				case len(goals) == 0:
					a.note(fmt.Sprintf("no goal of team %s has ended yet", t.ID()))
				case goals[0].Number > 1:
					a.note(fmt.Sprintf("not kept: %s before these", explain.Counted(goals[0].Number-1, "goal")))
				}
				return printList(a, goals, func(g client.EndedGoal) string { return fmt.Sprint(g.Number) }, func() table { return goalsTable(goals) })
			})
		},
	}
}

func goalsTable(goals []client.EndedGoal) table {
	t := table{columns: []column{{head: "GOAL"}, {head: "END"}, {head: "ENDED", drop: 2}, {head: "TIME"}, {head: "COST"}, {head: "TOKENS", drop: 4},
		{head: "TASKS", cut: true, drop: 3}, {head: "TEXT", cut: true, drop: 1}, {head: "RESULT", cut: true}}}
	for _, g := range goals {
		took, cost, tokens, ended := "-", "unknown", "-", "-"
		if g.Elapsed != nil {
			took = time.Duration(*g.Elapsed * float64(time.Second)).Round(time.Second).String()
		}
		if g.EndedAt != nil {
			ended = clockOf(*g.EndedAt, time.Now())
		}
		if u := g.Usage; u != nil {
			cost, tokens = price(u.Cost, u.Currency, u.UnpricedCalls, u.Estimated), about(u.TotalTokens, u.Estimated)
		}
		t.add(fmt.Sprint(g.Number), render.Paint(string(g.Status), g.InWords()), ended, took, cost, tokens, orDash(printable(g.Tasks)), printable(team.OneLine(g.Goal)), orDash(printable(team.OneLine(resultOf(g.PastGoal)))))
	}
	return t
}

// resultOf returns a goal's result: why it has failed, if it has, and the first line of the leader's summary.
func resultOf(g team.PastGoal) string {
	first, _, _ := strings.Cut(strings.TrimSpace(g.Summary), "\n")
	first = strings.TrimLeft(first, "# ")
	if g.Reason == "" || first == "" {
		return g.Reason + first
	}
	return g.Reason + ": " + first
}
