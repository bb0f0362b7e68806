package model

import "testing"

func TestReadUsage(t *testing.T) {
	for name, tt := range map[string]struct {
		told string
		want Usage
	}{
		"OpenAI":                {`{"prompt_tokens":100,"completion_tokens":20,"total_tokens":120,"prompt_tokens_details":{"cached_tokens":64},"completion_tokens_details":{"reasoning_tokens":12}}`, Usage{PromptTokens: 100, CachedTokens: 64, CompletionTokens: 20, ReasoningTokens: 12}},
		"Responses":             {`{"input_tokens":100,"output_tokens":20,"input_tokens_details":{"cached_tokens":64},"output_tokens_details":{"reasoning_tokens":12},"total_tokens":120}`, Usage{PromptTokens: 100, CachedTokens: 64, CompletionTokens: 20, ReasoningTokens: 12}},
		"DeepSeek":              {`{"prompt_tokens":100,"completion_tokens":20,"prompt_cache_hit_tokens":64,"prompt_cache_miss_tokens":36}`, Usage{PromptTokens: 100, CachedTokens: 64, CompletionTokens: 20}},
		"Anthropic's own":       {`{"input_tokens":36,"output_tokens":20,"cache_read_input_tokens":64,"cache_creation_input_tokens":10}`, Usage{PromptTokens: 110, CachedTokens: 64, WrittenTokens: 10, CompletionTokens: 20}},
		"a proxy for Anthropic": {`{"prompt_tokens":100,"completion_tokens":20,"cache_read_input_tokens":64}`, Usage{PromptTokens: 100, CachedTokens: 64, CompletionTokens: 20}},
		"Gemini, xAI":           {`{"prompt_tokens":100,"completion_tokens":20,"total_tokens":150}`, Usage{PromptTokens: 100, CompletionTokens: 50, ReasoningTokens: 30}},
		"floats and texts":      {`{"prompt_tokens":100.0,"completion_tokens":"20","prompt_tokens_details":{"cached_tokens":"64.0"}}`, Usage{PromptTokens: 100, CachedTokens: 64, CompletionTokens: 20}},
		"nulls":                 {`{"prompt_tokens":100,"completion_tokens":20,"prompt_tokens_details":null,"completion_tokens_details":{"reasoning_tokens":null}}`, Usage{PromptTokens: 100, CompletionTokens: 20}},
		"nonsense":              {`{"prompt_tokens":-5,"completion_tokens":"many","total_tokens":1e300}`, Usage{}},
		"more cached than read": {`{"prompt_tokens":10,"completion_tokens":2,"prompt_cache_hit_tokens":64,"completion_tokens_details":{"reasoning_tokens":9}}`, Usage{PromptTokens: 10, CachedTokens: 10, CompletionTokens: 2, ReasoningTokens: 2}},
		"null":                  {`null`, Usage{}},
		"no object":             {`7`, Usage{}},
		"absent":                {``, Usage{}},
	} {
		if got := readUsage([]byte(tt.told)); got != tt.want {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
}

func TestUsageIsCompleted(t *testing.T) {
	for name, tt := range map[string]struct{ told, want Usage }{
		"all told":     {Usage{PromptTokens: 5, CompletionTokens: 3}, Usage{PromptTokens: 5, CompletionTokens: 3}},
		"nothing told": {Usage{}, Usage{PromptTokens: 100, CompletionTokens: 10, Estimated: true}},
		"half told":    {Usage{PromptTokens: 5}, Usage{PromptTokens: 5, CompletionTokens: 10, Estimated: true}},
	} {
		if got := completed(tt.told, 400, 40); got != tt.want {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
	if got := completed(Usage{PromptTokens: 5}, 400, 0); got.Estimated || got.CompletionTokens != 0 {
		t.Errorf("an empty answer: %+v", got)
	}
}

func TestThrownAway(t *testing.T) {
	for name, tt := range map[string]struct{ told, want Usage }{
		"all told":               {Usage{PromptTokens: 5, CompletionTokens: 30}, Usage{WastedPrompt: 5, WastedCompletion: 30}},
		"nothing told":           {Usage{}, Usage{WastedPrompt: 100, WastedCompletion: 10, Estimated: true}},
		"told before most words": {Usage{PromptTokens: 5, CompletionTokens: 1}, Usage{WastedPrompt: 5, WastedCompletion: 10, Estimated: true}},
	} {
		if got := thrownAway(tt.told, 400, 40); got != tt.want {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
}
