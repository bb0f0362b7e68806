package engine

import (
	"strings"
	"testing"

	"agentteam/pkg/model"
)

// What a probe has shown ends with a larger request that is reported whole, and holds for
// that alias only.
func TestProvenWindowIsDropped(t *testing.T) {
	text := func(n int) []*model.Message {
		return []*model.Message{{Role: "user", Content: strings.Repeat("word ", n)}}
	}
	g := calibration{by: "a"}
	g.counted(text(9000), "a", model.Usage{PromptTokens: 3000})
	if g.guess != 0 {
		t.Error("one low report is a guess")
	}
	g.counted(text(9000), "a", model.Usage{PromptTokens: 2900})
	if g.guess != 3000 || g.bound != 0 || g.probeSize() != 7000 {
		t.Errorf("after two low reports: guess %d, bound %d, probe %d", g.guess, g.bound, g.probeSize())
	}
	g.probed(3000)
	if g.window() != 3000 {
		t.Errorf("the window is %d", g.window())
	}
	g.counted(text(2500), "a", model.Usage{PromptTokens: 2500})
	if g.window() != 3000 {
		t.Errorf("after a smaller request: %d", g.window())
	}
	g.counted(text(5000), "a", model.Usage{PromptTokens: 5000})
	if g.window() != 0 {
		t.Errorf("after a larger request that was read whole: %d", g.window())
	}
	g.probed(3000)
	g.counted(text(100), "b", model.Usage{PromptTokens: 100})
	if g.window() != 0 {
		t.Errorf("of another alias: %d", g.window())
	}
}
