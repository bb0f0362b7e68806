package main

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"agentteam/pkg/model"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/store/roster"
	"agentteam/pkg/team"
)

// costly fills the journals of the default team, as agents would, and returns
// teamctl on it.
func costly(t *testing.T) (teamctl func(args string) (stdout, stderr string, err error)) {
	t.Helper()
	t.Setenv("COLUMNS", "")
	url := brokertest.Server(t)
	teamctl = func(args string) (string, string, error) {
		var out, errs bytes.Buffer
		err := newApp(&out, &errs).run(t.Context(), append(strings.Fields(args), "--server", url))
		return out.String(), errs.String(), err
	}
	if stdout, stderr, err := teamctl("cost"); err != nil || stdout != "" || !strings.HasPrefix(stderr, `there is no team "default"`) {
		t.Errorf("cost of no team printed %q and %q, %v", stdout, stderr, err)
	}
	if _, _, err := teamctl("tasks add --title one"); err != nil {
		t.Fatal(err)
	}
	if stdout, stderr, err := teamctl("cost"); err != nil || stdout != "" || stderr != "no member of team default has called a model yet\n" {
		t.Errorf("cost of a team without calls printed %q and %q, %v", stdout, stderr, err)
	}

	bt, err := brokertest.Connect(t, url).Open(t.Context(), team.DefaultTeam)
	if err != nil {
		t.Fatal(err)
	}
	raw := func(v any) json.RawMessage {
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	turn := func(alias string, task team.TaskID, u model.Usage) journal.Record {
		return journal.Record{Kind: journal.Turn, TaskID: task, Turn: raw(model.Reply{Alias: alias, Usage: u})}
	}
	for a, records := range map[team.AgentID][]journal.Record{
		"leader": {
			turn("strong", "", model.Usage{PromptTokens: 4000, CachedTokens: 1500, CompletionTokens: 250, ReasoningTokens: 100, Cost: 1.2, Currency: "USD"}),
			turn("new", "", model.Usage{PromptTokens: 100, CompletionTokens: 10, Unpriced: 1}),
			turn("new", "", model.Usage{PromptTokens: 100, CompletionTokens: 10, Unpriced: 1}),
		},
		"coder-1": {
			turn("home", "T-001", model.Usage{PromptTokens: 700, CompletionTokens: 70, Estimated: true, Cost: 0.0035, Currency: "USD"}),
			{Kind: journal.Refused, TaskID: "T-001", Refusal: &journal.Refusal{Alias: "home", Usage: raw(model.Usage{WastedPrompt: 750, Estimated: true, Cost: 0.001, Currency: "USD"})}},
		},
		"gone-1": {turn("new", "T-001", model.Usage{PromptTokens: 9, CompletionTokens: 1, Unpriced: 1})},
	} {
		if role := map[team.AgentID]string{"leader": "leader", "coder-1": "coder"}[a]; role != "" {
			if _, err := roster.New(bt).Put(t.Context(), team.Member{AgentID: a, Role: role, State: team.Stopped}); err != nil {
				t.Fatal(err)
			}
		}
		j, _, err := journal.Open(t.Context(), bt, a, 1, journal.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range records {
			if _, err := j.Append(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
	}
	return teamctl
}

func TestCost(t *testing.T) {
	teamctl := costly(t)
	for args, golden := range map[string]string{
		"cost":                    "agent.txt",
		"cost --by role":          "role.txt",
		"cost --by alias -o wide": "alias.txt",
		"cost --by task":          "task.txt",
		"cost -o json":            "agent.json",
		"cost --by task -o jsonl": "task.jsonl",
		"cost --by role -o yaml":  "role.yaml",
		"cost --by task -o name":  "task.names",
	} {
		stdout, stderr, err := teamctl(args)
		if err != nil || stderr != "" {
			t.Errorf("%s: %v, %s", args, err, stderr)
		}
		file := "testdata/cost/" + golden
		if os.Getenv("UPDATE_SCRIPTS") != "" {
			if err := os.WriteFile(file, []byte(stdout), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if want, err := os.ReadFile(file); err != nil || stdout != string(want) {
			t.Errorf("%s printed\n%swant\n%s%v", args, stdout, want, err)
		}
	}
	for args, want := range map[string]team.Code{"cost --goal 1": team.NotFound, "cost --goal -1": team.NotFound, "cost --goal -2": team.InvalidArgument} {
		if stdout, _, err := teamctl(args); team.CodeOf(err) != want || stdout != "" {
			t.Errorf("%s of a team without a goal printed %q, %v; want %s", args, stdout, err, want)
		}
	}
}
