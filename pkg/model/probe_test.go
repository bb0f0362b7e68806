package model

import (
	"strings"
	"testing"

	"agentteam/pkg/tokens"
)

// Two probes ask for different words: an endpoint that keeps the beginning of a prompt in a
// cache may report the rest only. Their size is as they say.
func TestProbe(t *testing.T) {
	a, b := NewProbe("doctor", 6000), NewProbe("doctor", 6000)
	if a.text[:40] == b.text[:40] {
		t.Errorf("both begin with %q", a.text[:40])
	}
	if whole := tokens.Count(a.system + a.text); whole < 5700 || whole > 6600 || whole < a.Tokens*95/100 || whole > a.Tokens*105/100 {
		t.Errorf("it has %d tokens and is said to have %d", whole, a.Tokens)
	}
	if r := a.Request("strong"); r.Model != "strong" || !strings.HasPrefix(r.Messages[0].Content, "You are doctor, role doctor,") {
		t.Errorf("%+v", r)
	}
}

func TestProbeIsRead(t *testing.T) {
	p := NewProbe("doctor", 6000)
	reply := func(text string, reported int) Reply {
		return Reply{Message: Message{Content: text}, Usage: Usage{PromptTokens: reported, Estimated: reported == 0}}
	}
	for name, tt := range map[string]struct {
		reply Reply
		want  Reading
	}{
		"all":                            {reply("sunshine", 6000), ReadWhole},
		"another vocabulary":             {reply("", 4800), ReadWhole},
		"characters":                     {reply("", 24000), ReadWhole},
		"a part is counted, all is read": {reply("The word is "+strings.ToUpper(p.word)+".", 900), ReadWhole},
		"cut":                            {reply("sunshine", 2048), ReadCut},
		"no usage":                       {reply(p.word, 0), ReadBeginning},
		"no usage and no word":           {reply("sunshine", 0), ReadUnknown},
	} {
		if got := p.Read(tt.reply); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
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
