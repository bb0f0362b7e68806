package usage

import (
	"encoding/json"
	"testing"

	"agentteam/pkg/model"
	"agentteam/pkg/store/journal"
)

func raw(t testing.TB, v any) json.RawMessage {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
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
			Call{Model: "gpt-4", Usage: model.Usage{PromptTokens: 7, CompletionTokens: 2, Unpriced: 1}}, false,
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
	} {
		t.Run(name, func(t *testing.T) {
			tt.record.Agent = "coder-1"
			if tt.want.Agent = "coder-1"; tt.none {
				tt.want = Call{}
			}
			if got, ok := callOf(tt.record); ok == tt.none || got != tt.want {
				t.Errorf("call = %+v, %v, want %+v", got, ok, tt.want)
			}
		})
	}
}
