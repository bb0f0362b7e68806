package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"agentteam/pkg/client"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/team"
)

func TestUsed(t *testing.T) {
	cost := 1.2
	for want, u := range map[string]client.Usage{ // without prices in the settings
		"0 tokens":                  {},
		"30 tokens (in 20, out 10)": {PromptTokens: 20, CompletionTokens: 10, TotalTokens: 30, UnpricedCalls: 2},
		"30 tokens (in 20, out 10), cost 1.20 USD": {PromptTokens: 20, CompletionTokens: 10, TotalTokens: 30, Cost: &cost, Currency: "USD"},
		"30 tokens (in 20, cached 15, out 10, reasoning 5, wasted 40), cost 1.20": {
			PromptTokens: 20, CachedTokens: 15, CompletionTokens: 10, ReasoningTokens: 5, TotalTokens: 30, WastedTokens: 40, Cost: &cost},
		"~30 tokens (in 20, out 10), cost ~1.20 + 1 call of unknown price": {
			PromptTokens: 20, CompletionTokens: 10, TotalTokens: 30, Cost: &cost, UnpricedCalls: 1, Estimated: true},
		"0 tokens (wasted 40)": {WastedTokens: 40, UnpricedCalls: 1},
	} {
		if got := used(u, false); got != want {
			t.Errorf("used = %q, want %q", got, want)
		}
	}
	for want, u := range map[string]client.Usage{ // with some
		"0 tokens": {},
		"30 tokens (in 20, out 10), cost unknown": {PromptTokens: 20, CompletionTokens: 10, TotalTokens: 30, UnpricedCalls: 2},
		"0 tokens (wasted 40), cost ~1.20 EUR + 1 call of unknown price": {
			WastedTokens: 40, Cost: &cost, Currency: "EUR", UnpricedCalls: 1, Estimated: true},
	} {
		if got := used(u, true); got != want {
			t.Errorf("used = %q, want %q", got, want)
		}
	}
}

func TestAmount(t *testing.T) {
	for sum, want := range map[float64]string{0: "0", 0.000_04: "<0.0001", 0.003: "0.0030", 0.99: "0.9900", 1: "1.00", 1234.567: "1234.57"} {
		if got := amount(sum); got != want {
			t.Errorf("amount(%v) = %q, want %q", sum, got, want)
		}
	}
}

// A goal ends the command well if it has finished and its leader has given up each task that
// failed; else it is said why not.
func TestOutcomeErr(t *testing.T) {
	lost, given := failedTask{ID: "T-002"}, failedTask{ID: "T-003", Given: true}
	for want, o := range map[string]outcome{
		"":                         {Status: "finished"},
		"given up":                 {Status: "finished", Failed: []failedTask{given}},
		"the goal ended as failed": {Status: "failed"},
		"the goal ended as failed: open tasks: T-004":                                                  {Status: "failed", Reason: "open tasks: T-004"},
		"the goal ended as finished, with failed tasks that the leader has not given up: T-002, T-002": {Status: "finished", Failed: []failedTask{lost, given, lost}},
	} {
		err := o.err()
		if want == "" || want == "given up" {
			if err != nil {
				t.Errorf("%s: %v", want, err)
			}
		} else if team.CodeOf(err) != team.InvalidState || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// What failed is named before the last line, whose beginning scripts look for.
func TestOutcomeNamesFailedTasks(t *testing.T) {
	o := outcome{Status: "finished", Summary: "done", completed: 1, all: 3, Usage: client.Usage{ModelCalls: 2}, Elapsed: 1.25,
		Failed: []failedTask{{"T-002", "two\x1b[2J", "the check\nfailed\x07: " + strings.Repeat("x", 300), false}, {"T-003", "three", "", true}}}
	print := func(o outcome) string {
		t.Helper()
		var out bytes.Buffer
		if err := newApp(&out, &out).printOutcome(o, ""); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	want := "\ndone\n\nfailed: T-002 two[2J: the check failed: " + strings.Repeat("x", 181) + "…\nfailed: T-003 three\n" +
		"finished, 2 tasks failed: 1 of 3 tasks completed, 2 model calls, 0 tokens, 1.2 s\n"
	if got := print(o); got != want {
		t.Errorf("printed\n%q, want\n%q", got, want)
	}
	o.open = []team.TaskView{{Task: team.Task{ID: "T-004", Title: "four", Status: team.InProgress}}}
	if got := print(o); strings.Contains(got, "not done:") {
		t.Errorf("of a goal that is finished it printed\n%q", got)
	}
	o.Status = "failed"
	if got := print(o); !strings.Contains(got, "failed: T-003 three\nnot done: T-004 four (in_progress)\nfailed, 2 tasks failed: 1 of 3") {
		t.Errorf("of a goal that failed it printed\n%q", got)
	}
	o.Status, o.Usage.ModelCalls = "finished", 1
	if got := print(o); !strings.Contains(got, " completed, 1 model call, 0 tokens") {
		t.Errorf("printed\n%q", got)
	}
	for i := range 30 {
		o.Failed = append(o.Failed, failedTask{team.TaskID(fmt.Sprintf("T-1%02d", i)), "more", "", false})
	}
	if got := print(o); strings.Count(got, "\nfailed: T-") != 20 || !strings.Contains(got, "\nfailed: and 12 more\nfinished, 32 tasks failed: ") {
		t.Errorf("printed\n%s", got)
	}
}

// Only tasks of the goal count: one that failed before it is not its failure.
func TestOutcomeCounts(t *testing.T) {
	url := brokertest.Server(t)
	c, err := client.Connect(t.Context(), client.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	tm, err := c.Make(t.Context(), client.NewTeam{ID: "t"})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := tm.Board().Add(t.Context(), "", team.NewTask{Title: "old"}, team.NewTask{Title: "two"}, team.NewTask{Title: "three"}); err != nil {
		t.Fatal(err)
	}
	fail := func(id team.TaskID, why string) {
		t.Helper()
		if _, err := tm.Board().Seating("ann").Claim(t.Context(), id, "ann"); err != nil {
			t.Fatal(err)
		}
		if _, err := tm.Board().Fail(t.Context(), id, "ann", why); err != nil {
			t.Fatal(err)
		}
	}
	fail("T-001", "before")
	g, err := tm.Goals().Start(t.Context(), "go", "")
	if err != nil {
		t.Fatal(err)
	}
	fail("T-002", "too hard")
	var o outcome
	if o.Tasks, err = tm.Board().Tasks(t.Context()); err != nil {
		t.Fatal(err)
	}
	o.count(g, team.Team{GivenUp: []team.TaskID{"T-002"}})
	if want := []failedTask{{"T-002", "two", "too hard", true}}; !slices.Equal(o.Failed, want) || o.all != 2 || o.completed != 0 {
		t.Errorf("failed are %+v, and completed %d of %d; want %+v, 0 of 2", o.Failed, o.completed, o.all, want)
	}
}
