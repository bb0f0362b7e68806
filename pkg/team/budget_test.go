package team_test

import (
	"errors"
	"strings"
	"testing"

	"agentteam/pkg/team"
)

func TestParseBudget(t *testing.T) {
	for text, want := range map[string]team.Budget{
		"5":                          {Cost: 5 * team.Dollar},
		"5usd":                       {Cost: 5 * team.Dollar},
		"0.25USD":                    {Cost: team.Dollar / 4},
		"2Mtok":                      {Tokens: 2_000_000},
		"1.5ktok":                    {Tokens: 1500},
		"90m":                        {WallTime: 90 * 60_000},
		"1h30m":                      {WallTime: 90 * 60_000},
		"400turns":                   {Turns: 400},
		"5usd, 2Mtok,90m,400turns":   {Cost: 5 * team.Dollar, Tokens: 2_000_000, WallTime: 90 * 60_000, Turns: 400},
		"5usd,5":                     {Cost: 5 * team.Dollar},
		"0.0000001usd":               {Cost: 100},
		"5usd,2Mtok,1h0m0s,400turns": {Cost: 5 * team.Dollar, Tokens: 2_000_000, WallTime: 3_600_000, Turns: 400},
	} {
		got, none, err := team.ParseBudget(text)
		if got != want || none || err != nil {
			t.Errorf("%s: %+v, %v, %v", text, got, none, err)
		}
		if again, _, err := team.ParseBudget(got.String()); again != got && got.Cost > 1000 || err != nil && got.Cost > 1000 {
			t.Errorf("%s is written as %s: %v", text, got, err)
		}
	}
	if b, none, err := team.ParseBudget("none"); b != (team.Budget{}) || !none || err != nil {
		t.Errorf("none: %v, %v, %v", b, none, err)
	}
}

func TestBadBudgets(t *testing.T) {
	for text, want := range map[string]string{
		"-5":         "is not above 0",
		"0":          "is not above 0",
		"0turns":     "is not above 0",
		"-2Mtok":     "is not above 0",
		"2M":         "has no unit",
		"5eur":       "unknown currency",
		"5parsecs":   "unknown unit",
		"1.5turns":   "no whole number",
		"":           "no amount",
		"5usd,":      "no amount",
		"usd":        "no amount",
		"NaN":        "no amount",
		"1e300":      "too large",
		"5ms":        "not a second",
		"-90m":       "not a second",
		"5,6usd":     "contradicts another cost",
		"1h,60s":     "contradicts another wall_time",
		"none,5usd":  "none contradicts 5usd",
		"9e18usd":    "too large",
		"9999999999": "too large",
	} {
		_, _, err := team.ParseBudget(text)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") || !errors.Is(err, team.InvalidArgument) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestLimits(t *testing.T) {
	five, one := team.Budget{Cost: 5 * team.Dollar}, team.Budget{Turns: 1}
	b := team.Budgets{}.With(team.BudgetOf{}, five).With(team.BudgetOf{Role: "coder"}, one).With(team.BudgetOf{Task: "T-001"}, one)
	for name, tt := range map[string]struct {
		role   string
		member team.AgentID
		task   team.TaskID
		want   int
	}{
		"the leader":             {"leader", "leader", "", 1},
		"a coder":                {"coder", "coder-1", "", 2},
		"a coder with that task": {"coder", "coder-1", "T-001", 3},
	} {
		if got := b.Limits(tt.role, tt.member, tt.task); len(got) != tt.want || got["goal"] != five {
			t.Errorf("%s: %v", name, got)
		}
	}
	if c := b.With(team.BudgetOf{Role: "coder"}, team.Budget{}); len(c.Roles) != 0 || len(b.Roles) != 1 {
		t.Errorf("without the role's: %v, before: %v", c, b)
	}
	if over := (team.Budget{Cost: 7, Turns: 3}).Above(team.Budget{Cost: 5}); over != (team.Budget{Cost: 2}) {
		t.Errorf("above: %v", over)
	}
}
