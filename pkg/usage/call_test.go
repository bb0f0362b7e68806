package usage

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"agentteam/pkg/journal"
	"agentteam/pkg/model"
	"agentteam/pkg/team"
)

func raw(t testing.TB, v any) json.RawMessage {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// turn is the record of an answer that took so many tokens of input.
func turn(t testing.TB, task team.TaskID, prompt int) journal.Record {
	t.Helper()
	return journal.Record{Kind: journal.Turn, Agent: "coder-1", TaskID: task,
		Turn: raw(t, model.Reply{Alias: "strong", Usage: model.Usage{PromptTokens: prompt}})}
}

func told(id team.TaskID) journal.Record {
	return journal.Record{Kind: journal.Task, Agent: "coder-1", Task: &team.Task{ID: id}}
}

func TestCallOf(t *testing.T) {
	all := model.Usage{PromptTokens: 100, CachedTokens: 60, CompletionTokens: 20, ReasoningTokens: 5, WastedPrompt: 50, WastedCompletion: 7, Cost: 0.25}
	tried := model.Usage{WastedPrompt: 90, WastedCompletion: 1, Cost: 0.5}
	old := json.RawMessage(`{"message":{"role":"assistant","content":"hi"},"finish_reason":"stop","usage":{"prompt_tokens":7,"completion_tokens":2},"model":"gpt-4"}`)
	for name, tt := range map[string]struct {
		record journal.Record
		want   Call
		none   bool
	}{
		"an answer": {
			journal.Record{Kind: journal.Turn, TaskID: "T-001", Turn: raw(t, model.Reply{Alias: "strong", Usage: all})},
			Call{Alias: "strong", Task: "T-001", Usage: all}, false,
		},
		"of a model that is free": {
			journal.Record{Kind: journal.Turn, Turn: raw(t, model.Reply{Alias: "home", Usage: model.Usage{PromptTokens: 9}})},
			Call{Alias: "home", Usage: model.Usage{PromptTokens: 9}}, false,
		},
		"of unknown price": {
			journal.Record{Kind: journal.Turn, Turn: raw(t, model.Reply{Alias: "new", Usage: model.Usage{PromptTokens: 9, Unpriced: 1, Estimated: true}})},
			Call{Alias: "new", Usage: model.Usage{PromptTokens: 9, Unpriced: 1, Estimated: true}}, false,
		},
		"from before prices were recorded": {
			journal.Record{Kind: journal.Turn, Turn: old},
			Call{Usage: model.Usage{PromptTokens: 7, CompletionTokens: 2, Unpriced: 1}}, false,
		},
		"a summary": {
			journal.Record{Kind: journal.Compact, Turn: raw(t, model.Reply{Alias: "cheap", Usage: all})},
			Call{Alias: "cheap", Usage: all}, false,
		},
		"tries that gave none": {
			journal.Record{Kind: journal.Refused, TaskID: "T-002", Refusal: &journal.Refusal{Alias: "strong", Usage: raw(t, tried)}},
			Call{Alias: "strong", Task: "T-002", Usage: tried}, false,
		},
		"tries that gave none, of unknown price": {
			journal.Record{Kind: journal.Refused, Refusal: &journal.Refusal{Usage: raw(t, model.Usage{WastedPrompt: 9})}},
			Call{Usage: model.Usage{WastedPrompt: 9, Unpriced: 1}}, false,
		},
		"a refusal that used nothing": {
			journal.Record{Kind: journal.Refused, Refusal: &journal.Refusal{Cause: "wrong key"}},
			Call{}, false,
		},
		"no record of a call":       {record: journal.Record{Kind: journal.Note, Text: "hi"}, none: true},
		"made shorter without one":  {record: journal.Record{Kind: journal.Compact}, none: true},
		"an answer without one":     {record: journal.Record{Kind: journal.Turn}, none: true},
		"a refusal without one":     {record: journal.Record{Kind: journal.Refused}, none: true},
		"a usage that is no object": {record: journal.Record{Kind: journal.Refused, Refusal: &journal.Refusal{Usage: json.RawMessage(`7`)}}, none: true},
		"a task without one":        {record: journal.Record{Kind: journal.Task}, none: true},
		"mail without a message":    {record: journal.Record{Kind: journal.Mail}, none: true},
		"a result without one":      {record: journal.Record{Kind: journal.Result}, none: true},
	} {
		t.Run(name, func(t *testing.T) {
			tt.record.Agent = "coder-1"
			if tt.want.Agent = "coder-1"; tt.none {
				tt.want = Call{}
			}
			if got, ok := (ledger{}).call(tt.record); ok == tt.none || got != tt.want {
				t.Errorf("call = %+v, %v, want %+v", got, ok, tt.want)
			}
		})
	}
}

// A record that does not name its task, of a program that never did, is of the task
// that the agent was at.
func TestTaskOfCall(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	awaits := journal.Record{Kind: journal.Result, Agent: "coder-1", Result: &journal.ToolResult{Await: &journal.Await{From: "coder-2", Until: at.Add(time.Minute)}}}
	mail := func(from team.AgentID) journal.Record {
		return journal.Record{Kind: journal.Mail, Agent: "coder-1", Message: &team.Message{Type: team.MsgMessage, From: from, Content: "so it is"}}
	}
	end := func(after time.Duration) journal.Record {
		return journal.Record{Kind: journal.End, Agent: "coder-1", At: at.Add(after)}
	}
	start := journal.Record{Kind: journal.Start, Agent: "coder-1"}
	other := told("T-009")
	other.Agent = "coder-2"
	for name, tt := range map[string]struct {
		records []journal.Record
		want    []team.TaskID // of each call
	}{
		"before any task":          {[]journal.Record{turn(t, "", 1), told("T-001")}, []team.TaskID{""}},
		"in its run":               {[]journal.Record{told("T-001"), turn(t, "", 1), turn(t, "", 1)}, []team.TaskID{"T-001", "T-001"}},
		"after its run":            {[]journal.Record{told("T-001"), turn(t, "", 1), end(0), turn(t, "", 1)}, []team.TaskID{"T-001", ""}},
		"in the next one's":        {[]journal.Record{told("T-001"), turn(t, "", 1), told("T-002"), turn(t, "", 1)}, []team.TaskID{"T-001", "T-002"}},
		"in a new process":         {[]journal.Record{told("T-001"), start, turn(t, "", 1)}, []team.TaskID{"T-001"}},
		"of another agent":         {[]journal.Record{other, turn(t, "", 1)}, []team.TaskID{""}},
		"awaiting an answer":       {[]journal.Record{told("T-001"), awaits, end(0), mail("coder-3"), turn(t, "", 1), end(0), mail("coder-2"), turn(t, "", 1)}, []team.TaskID{"T-001", "T-001"}},
		"after the answer":         {[]journal.Record{told("T-001"), awaits, end(0), mail("coder-2"), turn(t, "", 1), end(0), turn(t, "", 1)}, []team.TaskID{"T-001", ""}},
		"no longer awaiting one":   {[]journal.Record{told("T-001"), awaits, told("T-002"), turn(t, "", 1), end(0), turn(t, "", 1)}, []team.TaskID{"T-002", ""}},
		"when no answer came":      {[]journal.Record{told("T-001"), awaits, end(0), turn(t, "", 1), end(time.Minute), turn(t, "", 1)}, []team.TaskID{"T-001", ""}},
		"named":                    {[]journal.Record{told("T-001"), turn(t, "T-001", 1), turn(t, "", 1)}, []team.TaskID{"T-001", ""}},
		"named by an earlier one":  {[]journal.Record{turn(t, "T-001", 1), start, told("T-002"), turn(t, "", 1)}, []team.TaskID{"T-001", "T-002"}},
		"named without being told": {[]journal.Record{turn(t, "T-003", 1)}, []team.TaskID{"T-003"}},
	} {
		t.Run(name, func(t *testing.T) {
			calls := ledger{}
			var got []team.TaskID
			for _, r := range tt.records {
				if c, ok := calls.call(r); ok {
					got = append(got, c.Task)
				}
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("the calls are of %q, want %q", got, tt.want)
			}
		})
	}
}
