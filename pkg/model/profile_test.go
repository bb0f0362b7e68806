package model

import (
	"errors"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"agentteam/pkg/model/rehearsal/stricttest"
	"agentteam/pkg/team"
)

func TestProfileIsFoundByBaseURL(t *testing.T) {
	for base, want := range map[string]string{
		"https://api.openai.com/v1":                                  "openai",
		"https://eu.api.openai.com/v1":                               "openai",
		"https://API.OpenAI.com/v1":                                  "openai",
		"https://red.openai.azure.com/openai/v1/":                    "azure",
		"https://red.services.ai.azure.com/openai/v1":                "azure",
		"https://red.openai.azure.com/openai/deployments/my-gpt-5":   "azure-classic",
		"http://localhost:11434/v1":                                  "ollama",
		"http://gpu.lan:1234/v1":                                     "lmstudio",
		"https://openrouter.ai/api/v1":                               "openrouter",
		"https://api.deepseek.com":                                   "deepseek",
		"https://dashscope-intl.aliyuncs.com/compatible-mode/v1":     "qwen",
		"https://generativelanguage.googleapis.com/v1beta/openai":    "gemini",
		"https://europe-west1-aiplatform.googleapis.com/v1/projects": "gemini",
		"https://api.mistral.ai/v1":                                  "mistral",
		"https://api.anthropic.com/v1":                               "anthropic",
		"https://api.groq.com/openai/v1":                             "groq",
		"https://api.cerebras.ai/v1":                                 "cerebras",
		"http://127.0.0.1:8000/v1":                                   "unknown",
		"https://api.openai.com.evil.test/v1":                        "unknown",
	} {
		u, err := url.Parse(base)
		if err != nil {
			t.Fatal(err)
		}
		if p, err := profileOf("", u); err != nil || p.Name != want {
			t.Errorf("%s: %s, %v; want %s", base, p.Name, err, want)
		}
		if p, err := profileOf("vllm", u); err != nil || p.Name != "vllm" {
			t.Errorf("%s with a setting: %s, %v", base, p.Name, err)
		}
	}
	_, err := newDialect(Options{BaseURL: "https://api.openai.com/v1", Profile: "opennai", Model: "m"})
	if !errors.Is(err, team.InvalidArgument) || err.Error() != `no profile is named "opennai"` || !strings.Contains(team.HintOf(err), "anthropic, anthropic-compat, azure, azure-classic, cerebras,") {
		t.Errorf("an unknown profile: %v, hint %q", err, team.HintOf(err))
	}
}

// The table holds what the code relies on.
func TestTableOfProfiles(t *testing.T) {
	if last := profiles[len(profiles)-1]; last.Name != unknownEndpoint {
		t.Errorf("the last profile is %s", last.Name)
	}
	if names := Profiles(); !slices.IsSorted(names) || len(slices.Compact(names)) != len(profiles) {
		t.Errorf("profiles %v: not sorted, or one twice", names)
	}
	for _, p := range profiles {
		if p.Wire == messages { // the fields of the others mean nothing there
			continue
		}
		switch {
		case p.Wire != chat && p.Wire != responses:
			t.Errorf("%s: wire %q", p.Name, p.Wire)
		case p.LimitField == "" || p.MaxOutput <= 0 || p.SystemRole == "":
			t.Errorf("%s: a field is missing: %+v", p.Name, p)
		case p.WithCalls != emptyText && p.WithCalls != null && p.WithCalls != absent:
			t.Errorf("%s: beside calls %q", p.Name, p.WithCalls)
		case p.Always != "" && !p.echoes(p.Always):
			t.Errorf("%s: %s is always there but never sent back", p.Name, p.Always)
		case !regexp.MustCompile(p.Names).MatchString("_unknown"):
			t.Errorf("%s: no name can be mapped to %s", p.Name, p.Names)
		}
		if p.Name != unknownEndpoint {
			if !stricttest.Known(p.Name) {
				t.Errorf("%s: stricttest does not have it", p.Name)
			}
		}
	}
}

func TestModelNames(t *testing.T) {
	for _, tt := range []struct {
		entry, model string
		want         bool
	}{
		{"gpt-5", "gpt-5", true}, {"gpt-5", "GPT-5-mini", true}, {"gpt-5", "openai/gpt-5", true}, {"gpt-5", "my-gpt-5", true},
		{"gpt-5", "xgpt-5", false}, {"gpt-5", "gpt-4", false}, {"o1", "foo1", false}, {"o1", "o1-mini", true}, {"claude", "us.anthropic.claude-3", true}, {"x", "", false},
	} {
		if names(tt.entry, tt.model) != tt.want {
			t.Errorf("%q names %q: %v", tt.entry, tt.model, !tt.want)
		}
	}
	for model, want := range map[string]protocol{"gpt-5.5": responses, "gpt-5.6-mini": responses, "gpt-5.3-codex": responses, "gpt-5.2": chat, "gpt-4.1": chat, "o3": chat} {
		if got := dialectOf(t, "openai", model, Options{}).settings(false).wireFor(model); got != want {
			t.Errorf("%s is asked over %s, want %s", model, got, want)
		}
	}
}

func TestCallNames(t *testing.T) {
	e := &encoding{endpointSettings: speak(profiles[0])}
	gemini := &encoding{endpointSettings: speak(profile{Names: `^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$`})}
	for name, want := range map[string]string{
		"bash": "bash", "": "unknown", "a.b c": "a_b_c", "工具": "__", strings.Repeat("x", 70): strings.Repeat("x", 64),
		"functions.bash<|channel|>commentary": "functions_bash__channel__commentary",
	} {
		if got := e.callName(name); got != want || !e.names.MatchString(got) {
			t.Errorf("%q becomes %q, want %q", name, got, want)
		}
		if got := gemini.callName(name); !gemini.names.MatchString(got) {
			t.Errorf("for Gemini %q becomes %q", name, got)
		}
	}
	if got := gemini.callName("1.2"); got != "_1_2" {
		t.Errorf("a digit first becomes %q", got)
	}
}
