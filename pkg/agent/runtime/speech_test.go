package runtime

import (
	"testing"

	"agentteam/pkg/model"
	"agentteam/pkg/model/router"
	"agentteam/pkg/team"
)

// A model that is trained on patches is shown them in place of edits, unless the team speaks another dialect.
func TestPatchesForModelsOfThem(t *testing.T) {
	alias := func(name, url, model_ string) router.Alias {
		return router.Alias{Name: name, Options: model.Options{BaseURL: url, APIKey: "k", Model: model_}}
	}
	r, err := router.New(router.Routes{Aliases: []router.Alias{
		alias("gpt", "", "gpt-5.6-sol"), alias("old", "", "gpt-4.1"), alias("proxy", "https://openrouter.ai/api/v1", "openai/gpt-6-astra"),
		alias("claude", "https://api.anthropic.com/v1", "claude-opus-5-5"), alias("own", "http://127.0.0.1:1/v1", "gpt-5-lookalike"),
	}}, router.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, patches := range map[string]bool{"": true, "gpt": true, "old": false, "proxy": true, "claude": false, "own": false} {
		for _, d := range []team.Dialect{team.Native, team.Claude} {
			m := &member{Options: Options{Model: r}}
			if is := m.speech(d, name) == team.Native.Patching(); is != (patches && d == team.Native) {
				t.Errorf("%q, %s: patches %v", name, d, is)
			}
		}
	}
	m := &member{Options: Options{Model: windowed(1)}} // one that does not say
	if m.speech(team.Native, "") != team.Native {
		t.Error("patches for an unknown model")
	}
}
