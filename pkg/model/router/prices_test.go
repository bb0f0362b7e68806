package router

import (
	"math"
	"testing"

	"agentteam/pkg/model"
	"agentteam/pkg/telemetry"
)

// A call with a long prompt costs more where the model's maker charges more; to the token.
func TestLongPromptsCostMore(t *testing.T) {
	p := &Prices{Input: 2, Cached: 0.2, Written: 2.5, Output: 10}
	for _, tt := range []struct {
		model string
		used  model.Usage
		tries int // of WastedPrompt
		want  float64
	}{
		{"gpt-6.2-sol", model.Usage{PromptTokens: 272_000, CachedTokens: 200_000, WrittenTokens: 70_000, CompletionTokens: 1000}, 0, .004 + .04 + .175 + .01},
		{"gpt-6.2-sol", model.Usage{PromptTokens: 272_001, CachedTokens: 200_000, WrittenTokens: 70_001, CompletionTokens: 1000}, 0, 2*(.004+.04+.1750025) + 1.5*.01},
		{"gpt-6.2-sol", model.Usage{WastedPrompt: 600_000, WastedCompletion: 1000}, 3, 1.2 + .01}, // no call was long
		{"gpt-6.2-sol", model.Usage{PromptTokens: 200_000, WastedPrompt: 400_000, CompletionTokens: 1000}, 2, 1.2 + .01},
		{"gpt-6.2-sol", model.Usage{WastedPrompt: 300_000, WastedCompletion: 1000}, 1, 2*.6 + 1.5*.01},
		{"claude-haiku-5-5", model.Usage{PromptTokens: 100_001, CachedTokens: 100_001, CompletionTokens: 1000}, 0, 5 * (.0200002 + .01)},
		{"claude-opus-5-5", model.Usage{PromptTokens: 900_000, CompletionTokens: 1000}, 0, 1.8 + .01},
	} {
		r := Router{cost: telemetry.Counters(nil, "c_total", "", "currency")}
		got := r.price(&route{Alias: Alias{Options: model.Options{Model: tt.model}, Prices: p}}, tt.used, max(tt.used.PromptTokens, tt.used.WastedPrompt/max(tt.tries, 1))).Cost
		if math.Abs(got-tt.want) > 1e-9 {
			t.Errorf("%s, %+v: %v, want %v", tt.model, tt.used, got, tt.want)
		}
	}
}
