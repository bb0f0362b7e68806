package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"agentteam/pkg/client"
	"agentteam/pkg/store/usage"
	"agentteam/pkg/team/explain"
)

func (a *app) costCmd() *cobra.Command {
	var by string
	var goal int
	cmd := &cobra.Command{
		Use: "cost", Short: "Show what the team's model calls have used and cost", Args: atMost(0),
		Long: "cost sums up the tokens and the price of all model calls that the team's journals hold, or of one goal, the costly first.\n" +
			"Cached tokens are part of the input, reasoning is part of the output; wasted are those of tries that\n" +
			"were thrown away, in addition. The cost is in the currency of the prices in the settings, and unknown\n" +
			"where they hold none. Numbers with ~ are in part estimated, of an endpoint that does not tell its usage.\n" +
			"The row - is that of calls without a task, or of which the role or alias is not known.",
		RunE: func(*cobra.Command, []string) error {
			by, err := usage.ParseBy(by)
			if err != nil {
				return err
			}
			return a.readTeam(a.printNone, func(ctx context.Context, t *client.Team) error {
				table, err := t.Cost(ctx, goal, by)
				if err != nil {
					return err
				}
				if len(table.Rows) == 0 {
					a.note(fmt.Sprintf("no member of team %s has called a model yet%s", t.ID(), onlyIf(goal != 0, " for that goal")))
				}
				return a.printCost(table)
			})
		},
	}
	cmd.Flags().StringVar(&by, "by", string(usage.ByAgent), "a row for each agent, role, alias (of the model) or task")
	cmd.Flags().IntVar(&goal, "goal", 0, "only calls from when the goal of this number was set until the next one was; -1: the newest, 0: all")
	completeFlags(cmd, map[string]cobra.CompletionFunc{"by": fixed(usage.Bys()...)})
	return cmd
}

// costRow is a row for programs. The last row is the total: it has by "total" and no name.
type costRow struct {
	By              string   `json:"by"`
	Name            string   `json:"name"`
	ModelCalls      int      `json:"model_calls"`
	InputTokens     int      `json:"input_tokens"`
	CachedTokens    int      `json:"cached_tokens"`  // of the input, read from the endpoint's cache
	WrittenTokens   int      `json:"written_tokens"` // of the input, put into it
	PlainTokens     int      `json:"plain_tokens"`   // all other input
	OutputTokens    int      `json:"output_tokens"`
	ReasoningTokens int      `json:"reasoning_tokens"`
	WastedTokens    int      `json:"wasted_tokens"`
	Cost            *float64 `json:"cost"`     // the part that is known; null: nothing is
	Currency        string   `json:"currency"` // of it; "" if the prices name none
	UnpricedCalls   int      `json:"unpriced_calls"`
	Estimated       bool     `json:"estimated"`
}

const total = "total"

func newCostRow(by, name string, s usage.Sum) costRow {
	return costRow{
		By: by, Name: name, ModelCalls: s.Calls,
		InputTokens: s.PromptTokens, CachedTokens: s.CachedTokens, WrittenTokens: s.WrittenTokens, PlainTokens: s.Plain(),
		OutputTokens: s.CompletionTokens, ReasoningTokens: s.ReasoningTokens,
		WastedTokens: s.Wasted(),
		Cost:         s.Known(), Currency: s.Currency, UnpricedCalls: s.Unpriced, Estimated: s.Estimated,
	}
}

func (a *app) printCost(c usage.Table) error {
	items, names := make([]any, 0, len(c.Rows)+1), []string{}
	for _, row := range c.Rows {
		items = append(items, newCostRow(string(c.By), row.Name, row.Sum))
		if row.Name != "" {
			names = append(names, row.Name)
		}
	}
	if len(c.Rows) > 0 {
		items = append(items, newCostRow(total, "", c.Total))
	}
	return a.print(items, names, func() {
		if len(c.Rows) == 0 {
			return
		}
		t := table{columns: []column{
			{head: strings.ToUpper(string(c.By)), cut: true}, {head: "CALLS"}, {head: "INPUT"}, {head: "CACHED", drop: 3}, {head: "WRITTEN", drop: 5}, {head: "PLAIN", drop: 6},
			{head: "OUTPUT"}, {head: "REASONING", drop: 2}, {head: "WASTED", drop: 1}, {head: "COST"}, {head: "UNPRICED", drop: 4, wide: true},
		}}
		for _, row := range c.Rows {
			t.add(costTexts(printable(orDash(row.Name)), row.Sum)...)
		}
		t.add(costTexts(total, c.Total)...)
		a.printTable(t)
	})
}

// costTexts returns the cells of one row. Cached, written and reasoning tokens are never estimated: the
// endpoint reports them, or they are unknown.
func costTexts(name string, s usage.Sum) []string {
	return []string{
		name, fmt.Sprint(s.Calls),
		about(s.PromptTokens, s.Estimated), fmt.Sprint(s.CachedTokens), fmt.Sprint(s.WrittenTokens), about(s.Plain(), s.Estimated),
		about(s.CompletionTokens, s.Estimated), fmt.Sprint(s.ReasoningTokens),
		about(s.Wasted(), s.Estimated), price(s.Known(), s.Currency, s.Unpriced, s.Estimated), fmt.Sprint(s.Unpriced),
	}
}

// about formats a number of tokens, and marks an estimate.
func about(tokens int, estimated bool) string {
	if estimated && tokens > 0 {
		return fmt.Sprintf("~%d", tokens)
	}
	return fmt.Sprint(tokens)
}

// price formats the known part of a cost, nil if there is none, in its currency, which may be "", and how
// much is unknown.
func price(known *float64, currency string, unpriced int, estimated bool) string {
	if known == nil {
		return "unknown"
	}
	s := amount(*known)
	if estimated && *known > 0 {
		s = "~" + s
	}
	if currency != "" {
		s += " " + printable(currency)
	}
	if unpriced > 0 {
		s += " + " + explain.Counted(unpriced, "call") + " of unknown price"
	}
	return s
}

// amount formats a sum of money: in hundredths, or finer if it is small, since a call may cost much less.
func amount(sum float64) string {
	switch {
	case sum == 0:
		return "0"
	case sum < 0.0001:
		return "<0.0001"
	case sum < 1:
		return fmt.Sprintf("%.4f", sum)
	default:
		return fmt.Sprintf("%.2f", sum)
	}
}
