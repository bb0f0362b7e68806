package model

import (
	"slices"
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
		"claude-fable-5-2":            {1_000_000, 128_000},
		"claude-mythos-5-1":           {1_000_000, 128_000},
		"claude-opus-5-5":             {1_000_000, 128_000},
		"claude-opus-4-5":             {200_000, 64_000},
		"claude-sonnet-5-5":           {1_000_000, 128_000},
		"claude-haiku-5-5":            {1_000_000, 128_000},
		"claude-haiku-4-5":            {200_000, 64_000},
		"gpt-6.2-astra":               {1_050_000, 128_000},
		"gpt-6.1-terra":               {1_050_000, 128_000},
		"gpt-6-luna":                  {1_050_000, 128_000},
		"gpt-5.6-sol":                 {1_050_000, 128_000},
		"gpt-5.3-codex":               {400_000, 128_000},
		"gemini-4-argon":              {1_048_576, 65_536},
		"gemini-3.8-flash":            {1_048_576, 65_536},
		"gemini-3.1-pro-preview":      {1_048_576, 65_536},
		"deepseek-flash":              {1_000_000, 384_000},
		"deepseek-v4-pro":             {1_000_000, 384_000},
		"qwen3.8-max":                 {1_000_000, 65_536},
		"glm-5.3-flash":               {1_000_000, 131_072},
		"kimi-k3.1-pro":               {1_048_576, 131_072},
		"mistral-large-4":             {1_048_576, 262_144},
		"mistral-medium-3.5":          {262_144, 0},
		"mistral-small-2603":          {262_144, 0},
		"muse-spark-1.3":              {1_048_576, 0},
		"home-made":                   {},
	} {
		if got := knownLimits(model); got != want {
			t.Errorf("%s: %+v, want %+v", model, got, want)
		}
		backwards := slices.Clone(windows())
		slices.Reverse(backwards)
		if got := entryOf(backwards, model).Limits; got != want {
			t.Errorf("%s, with the table backwards: %+v, want %+v", model, got, want)
		}
	}
	for _, bad := range []string{"m,x,1,0,1,1,s", "m,0,1,0,1,1,s", "m,1,-1,0,1,1,s", "m,1,1,-1,1,1,s", "m,1,1,0,x,1,s", "m,1,1,0,1,0,s", "m,1,1,0,1,1,", "m,1,1,s"} {
		if _, err := parseWindows("a,b,c,d,e,f,g\n" + bad); err == nil {
			t.Errorf("%s is read", bad)
		}
	}
}

func TestSurcharge(t *testing.T) {
	type surcharge struct {
		above         int
		input, output float64
	}
	for model, want := range map[string]surcharge{
		"gpt-6.2-sol":            {272_000, 2, 1.5},
		"openai/gpt-5.4":         {272_000, 2, 1.5},
		"gpt-5.4-mini":           {0, 1, 1},
		"claude-haiku-5-5":       {100_000, 5, 5},
		"claude-opus-5-5":        {0, 1, 1},
		"gemini-3.1-pro-preview": {200_000, 2, 1.5},
		"home-made":              {0, 1, 1},
	} {
		for prompt, want := range map[int]surcharge{want.above: {0, 1, 1}, want.above + 1: want, 2_000_000: want} {
			if input, output := Surcharge(model, prompt); input != want.input || output != want.output {
				t.Errorf("%s, %d tokens: %v and %v, want %+v", model, prompt, input, output, want)
			}
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
