package probe

import (
	"strings"
	"testing"

	"agentteam/pkg/model"
	"agentteam/pkg/model/tokens"
)

// Two probes ask for different words: an endpoint that keeps the beginning of a prompt in a
// cache may report the rest only. Their size is as they say.
func TestProbe(t *testing.T) {
	a, b := New("doctor", 6000), New("doctor", 6000)
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
	p := New("doctor", 6000)
	reply := func(text string, reported int) model.Reply {
		return model.Reply{Message: model.Message{Content: text}, Usage: model.Usage{PromptTokens: reported, Estimated: reported == 0}}
	}
	for name, tt := range map[string]struct {
		reply model.Reply
		want  Reading
	}{
		"all":                            {reply("sunshine", 6000), Whole},
		"another vocabulary":             {reply("", 4800), Whole},
		"characters":                     {reply("", 24000), Whole},
		"a part is counted, all is read": {reply("The word is "+strings.ToUpper(p.word)+".", 900), Whole},
		"cut":                            {reply("sunshine", 2048), Cut},
		"no usage":                       {reply(p.word, 0), Beginning},
		"no usage and no word":           {reply("sunshine", 0), Unknown},
	} {
		if got := p.Read(tt.reply); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}
