package model

import (
	"slices"
	"strings"
	"testing"
)

func TestKnownLimits(t *testing.T) {
	if _, err := parseWindows(windowsCSV); err != nil {
		t.Fatal(err)
	}
	for model, want := range map[string]Limits{
		"gpt-5-mini":                  {400_000, 128_000},
		"my-gpt-5.4":                  {1_050_000, 128_000}, // not gpt-5's
		"openai/gpt-oss-120b":         {131_072, 65_536},
		"gpt-4o-mini":                 {128_000, 16_384}, // not gpt-4's
		"claude-sonnet-4-5-20250929":  {200_000, 64_000},
		"anthropic/claude-sonnet-4-6": {1_000_000, 128_000},
		"gemini-3-pro-preview":        {1_048_576, 65_536},
		"deepseek-reasoner":           {1_000_000, 384_000},
		"qwen3-coder:30b":             {262_144, 65_536},
		"llama3.1:8b":                 {131_072, 8192},
		"kimi-k2.6":                   {262_144, 65_536},
		"glm-4.6":                     {204_800, 131_072},
		"home-made":                   {},
	} {
		if got := knownLimits(model); got != want {
			t.Errorf("%s: %+v, want %+v", model, got, want)
		}
		backwards := slices.Clone(windows())
		slices.Reverse(backwards)
		if got := limitsIn(backwards, model); got != want {
			t.Errorf("%s, with the table backwards: %+v, want %+v", model, got, want)
		}
	}
	for _, bad := range []string{"a,b,c,d\nm,x,1,s", "a,b,c,d\nm,0,1,s", "a,b,c,d\nm,1,-1,s", "a,b,c,d\nm,1,1,", "a,b,c,d\nm,1,1"} {
		if _, err := parseWindows(bad); err == nil {
			t.Errorf("%s is read", strings.ReplaceAll(bad, "\n", "; "))
		}
	}
}

// The setting wins over what the endpoint told, that over the profile, that over
// the model's name.
func TestWhichLimitHolds(t *testing.T) {
	for name, tt := range map[string]struct {
		profile, model string
		opt            Options
		told           int
		want           Limits
	}{
		"nothing known": {unknownEndpoint, "m", Options{}, 0, Limits{0, 8000}},
		"the model":     {unknownEndpoint, "gpt-4", Options{}, 0, Limits{8192, 8000}},
		"told":          {unknownEndpoint, "gpt-4", Options{}, 4000, Limits{4000, 8000}},
		"the setting":   {unknownEndpoint, "gpt-4", Options{Window: 6000, MaxTokens: 99}, 4000, Limits{6000, 99}},
		"the profile":   {"ollama", "llama3.1", Options{}, 0, Limits{4096, 8000}},
		"told, ollama":  {"ollama", "llama3.1", Options{}, 16_000, Limits{16_000, 8000}},
		"small output":  {"openai", "gpt-3.5-turbo", Options{}, 0, Limits{16_385, 4096}},
	} {
		d := dialectOf(t, tt.profile, tt.model, tt.opt)
		if tt.told > 0 {
			d.told(tt.told)
		}
		if got := d.limits(); got != tt.want {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
}

// Ollama's own window is too small, and a setting goes before what is known.
func TestWindowOf(t *testing.T) {
	for want, o := range map[int]Options{
		4096:    {BaseURL: "http://127.0.0.1:11434/v1", Model: "qwen3:8b"},
		32768:   {BaseURL: "http://127.0.0.1:11434/v1", Model: "qwen3:8b", Window: 32768},
		1000000: {BaseURL: "http://h/v1", Model: "m", Window: 1000000},
		0:       {BaseURL: "http://h/v1", Model: "m"},
	} {
		if got := WindowOf(o); got != want {
			t.Errorf("%+v: %d, want %d", o, got, want)
		}
	}
}
