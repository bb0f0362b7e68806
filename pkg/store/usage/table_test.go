package usage_test

import (
	"fmt"
	"slices"
	"testing"

	"agentteam/pkg/model"
	"agentteam/pkg/store/usage"
	"agentteam/pkg/team"
)

func ExampleTally() {
	t := usage.NewTally(nil, usage.ByTask)
	t.Add(usage.Call{Agent: "coder-1", Task: "T-001", Usage: model.Usage{PromptTokens: 900, CompletionTokens: 100, Cost: 0.25}})
	t.Add(usage.Call{Agent: "coder-1", Task: "T-002", Usage: model.Usage{PromptTokens: 500, CompletionTokens: 10, Unpriced: 1}})
	t.Add(usage.Call{Agent: "coder-2", Task: "T-001", Usage: model.Usage{PromptTokens: 1000, WastedPrompt: 300, Cost: 0.5}})
	table := t.Table()
	for _, row := range append(table.Rows, usage.Row{Name: "all", Sum: table.Total}) {
		cost := "unknown"
		if known := row.Known(); known != nil {
			cost = fmt.Sprint(*known)
		}
		fmt.Println(row.Name, row.Calls, row.Tokens(), row.Wasted(), cost, row.Unpriced)
	}
	// Output:
	// T-001 2 2000 300 0.75 0
	// T-002 1 510 0 unknown 1
	// all 3 2510 300 0.75 1
}

func TestTable(t *testing.T) {
	tokens := func(n int, cost float64) model.Usage { return model.Usage{PromptTokens: n, Cost: cost} }
	calls := []usage.Call{
		{Agent: "leader", Alias: "strong", Usage: tokens(10, 3)},
		{Agent: "coder-1", Alias: "cheap", Task: "T-001", Usage: tokens(5000, 1)},
		{Agent: "coder-2", Alias: "cheap", Task: "T-002", Usage: tokens(5000, 1)},
		{Agent: "coder-2", Alias: "strong", Task: "T-001", Usage: tokens(1, 4)},
		{Agent: "gone-1", Usage: tokens(7000, 0)},
		{Agent: "gone-2", Usage: model.Usage{CompletionTokens: 6000, WastedCompletion: 2000}},
	}
	roles := map[team.AgentID]string{"leader": "leader", "coder-1": "coder", "coder-2": "coder", "idle-1": "tester"}
	for by, want := range map[usage.By][]string{
		usage.ByAgent: {"coder-2 5", "leader 3", "coder-1 1", "gone-2 0", "gone-1 0"},
		usage.ByRole:  {"coder 6", "leader 3", " 0"},
		usage.ByAlias: {"strong 7", "cheap 2", " 0"},
		usage.ByTask:  {"T-001 5", " 3", "T-002 1"},
	} {
		t.Run(string(by), func(t *testing.T) {
			tally := usage.NewTally(roles, by)
			for _, c := range calls {
				tally.Add(c)
			}
			table := tally.Table()
			var got []string
			var calls, tokens int
			for _, row := range table.Rows {
				got = append(got, fmt.Sprint(row.Name, " ", row.Cost))
				calls, tokens = calls+row.Calls, tokens+row.Tokens()
			}
			if !slices.Equal(got, want) {
				t.Errorf("the rows are %q, want %q", got, want)
			}
			if table.By != by || table.Total.Calls != 6 || calls != 6 || table.Total.Tokens() != tokens || table.Total.Cost != 9 {
				t.Errorf("by %s: the rows are %d calls and %d tokens together, the total is %+v", table.By, calls, tokens, table.Total)
			}
		})
	}
}

// A row has parts by what is named next, which together are the row.
func TestParts(t *testing.T) {
	tally := usage.NewTally(map[team.AgentID]string{"coder-1": "coder", "coder-2": "coder"}, usage.ByRole, usage.ByAgent, usage.ByAlias)
	for _, c := range []struct {
		agent team.AgentID
		alias string
		cost  float64
	}{{"coder-1", "cheap", 1}, {"coder-2", "strong", 4}, {"coder-2", "cheap", 2}, {"coder-2", "cheap", 1}, {"leader", "strong", 9}} {
		tally.Add(usage.Call{Agent: c.agent, Alias: c.alias, Usage: model.Usage{PromptTokens: 1, Cost: c.cost}})
	}
	var show func(rows []usage.Row) string
	show = func(rows []usage.Row) (s string) {
		for _, r := range rows {
			s += fmt.Sprint("(", r.Name, " ", r.Calls, " ", r.Cost, show(r.Parts), ")")
		}
		return s
	}
	const want = "( 1 9(leader 1 9(strong 1 9)))(coder 4 8(coder-2 3 7(strong 1 4)(cheap 2 3))(coder-1 1 1(cheap 1 1)))"
	if got := show(tally.Table().Rows); got != want {
		t.Errorf("the rows are %s, want %s", got, want)
	}
}

// Unknown is not 0, and 0 is not unknown.
func TestKnown(t *testing.T) {
	priced, free := model.Usage{PromptTokens: 1, Cost: 0.1}, model.Usage{PromptTokens: 1}
	unpriced, partly := model.Usage{PromptTokens: 1, Unpriced: 1}, model.Usage{PromptTokens: 1, Cost: 0.2, Unpriced: 1}
	for name, tt := range map[string]struct {
		calls    []model.Usage
		want     string
		unpriced int
	}{
		"no call":           {nil, "0", 0},
		"free":              {[]model.Usage{free}, "0", 0},
		"unknown":           {[]model.Usage{unpriced, unpriced}, "unknown", 2},
		"nothing used":      {[]model.Usage{{}, unpriced}, "unknown", 1},
		"free, and unknown": {[]model.Usage{free, unpriced}, "0", 1},
		"known in part":     {[]model.Usage{unpriced, priced, priced, priced}, "0.3", 1},
		"a call in part":    {[]model.Usage{partly}, "0.2", 1},
	} {
		t.Run(name, func(t *testing.T) {
			tally := usage.NewTally(nil, usage.ByAgent)
			for _, u := range tt.calls {
				tally.Add(usage.Call{Usage: u})
			}
			sum := tally.Table().Total
			got := "unknown"
			if known := sum.Known(); known != nil {
				got = fmt.Sprint(*known)
			}
			if got != tt.want || sum.Unpriced != tt.unpriced {
				t.Errorf("known is %s, with %d of unknown price; want %s, %d", got, sum.Unpriced, tt.want, tt.unpriced)
			}
		})
	}
}

func TestParseBy(t *testing.T) {
	for _, s := range usage.Bys() {
		if by, err := usage.ParseBy(s); string(by) != s || err != nil {
			t.Errorf("ParseBy(%q) = %q, %v", s, by, err)
		}
	}
	for _, s := range []string{"", "Agent", "host"} {
		_, err := usage.ParseBy(s)
		if team.CodeOf(err) != team.InvalidArgument || team.HintOf(err) != "use agent, role, alias or task" {
			t.Errorf("ParseBy(%q): %v (%s)", s, err, team.HintOf(err))
		}
	}
}
