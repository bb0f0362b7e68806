package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"agentteam/pkg/config"
	"agentteam/pkg/model"
	"agentteam/pkg/model/probe"
	"agentteam/pkg/model/tokens"
	"agentteam/pkg/team"
)

// listener is a model endpoint that answers, given the text of a prompt, with content
// and, if it is not 0, the number of tokens that it says the prompt had.
func listener(t *testing.T, answer func(prompt string) (content string, reported int)) config.Config {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req struct {
			Messages []struct{ Content string }
		}
		if err := json.NewDecoder(r.Body).Decode(&req); err != nil || len(req.Messages) == 0 {
			http.Error(w, `{"error":{"message":"no request"}}`, http.StatusBadRequest)
			return
		}
		var prompt strings.Builder
		for _, m := range req.Messages {
			prompt.WriteString(m.Content)
		}
		content, reported := answer(prompt.String())
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%q},\"finish_reason\":\"stop\"}]}\n\n", content)
		if reported > 0 {
			fmt.Fprintf(w, "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":%d,\"completion_tokens\":1}}\n\n", reported)
		}
		fmt.Fprint(w, "data: [DONE]\n\n")
	}))
	t.Cleanup(srv.Close)
	return config.Config{BaseURL: srv.URL + "/v1", Model: "small"}
}

func TestWindow(t *testing.T) {
	for name, tt := range map[string]struct {
		answer func(prompt string) (string, int)
		status Status
		detail string
		hint   string
	}{
		"reads all": {func(prompt string) (string, int) { return "", tokens.Count(prompt) }, OK, "whole", ""},
		"another vocabulary": {func(prompt string) (string, int) { return "", tokens.Count(prompt) * 8 / 10 },
			OK, "whole", ""},
		"cuts without a word": {func(string) (string, int) { return "", 4096 }, Warn, "counted 4096: it cuts", "OLLAMA_CONTEXT_LENGTH"},
		"counts only a part, and has read the beginning": {func(prompt string) (string, int) {
			_, word, _ := strings.Cut(prompt, "The word of the day is ")
			return "It is " + word[:10], 900
		}, OK, "whole", ""},
		"no usage, and it has read the beginning": {func(prompt string) (string, int) {
			_, word, _ := strings.Cut(prompt, "The word of the day is ")
			return strings.ToUpper(word[:10]), 0
		}, OK, "reads the beginning", ""},
		"no usage, and it has not": {func(string) (string, int) { return "sunshine", 0 }, Warn, "may cut", "in its log"},
	} {
		t.Run(name, func(t *testing.T) {
			c := windowCheck(t.Context(), listener(t, tt.answer), false)
			if c.Status != tt.status || !strings.Contains(c.Detail, tt.detail) || !strings.Contains(c.Hint, tt.hint) || (c.Status == OK) != (c.Hint == "") {
				t.Errorf("%+v, want %s with %q and %q", c, tt.status, tt.detail, tt.hint)
			}
		})
	}
}

// A short prompt proves nothing of a large window, and that is said; the whole of it is sent
// on demand.
func TestWindowIsProven(t *testing.T) {
	sent := 0
	cfg := listener(t, func(prompt string) (string, int) {
		sent = tokens.Count(prompt)
		return "", min(sent, 8192)
	})
	cfg.Window = 32000
	if c := windowCheck(t.Context(), cfg, false); c.Status != OK || !strings.Contains(c.Detail, "32000 is not proven") || !strings.Contains(c.Detail, "--probe-window sends 25600 tokens, which may cost") {
		t.Errorf("%+v", c)
	}
	if c := windowCheck(t.Context(), cfg, true); c.Status != Warn || !strings.Contains(c.Detail, "counted 8192: it cuts") || sent < 20000 {
		t.Errorf("after a prompt of %d tokens: %+v", sent, c)
	}
}

// The default of `models:` is probed, as the settings have it, and not the model of the
// plain settings.
func TestWindowOfDefault(t *testing.T) {
	var asked http.Header
	cfg := listener(t, func(prompt string) (string, int) { return "", tokens.Count(prompt) })
	home := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.Header
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer home.Close()
	cfg.Models = []config.Alias{
		{Name: "away", BaseURL: "https://192.0.2.1/v1", Model: "large"},
		{Name: "home", BaseURL: home.URL, Model: "small", Key: "k1", Headers: map[string]config.Secret{"X-Service-Key": "k2"},
			Limits: config.Limits{Total: time.Nanosecond}}, // the probe is more patient
	}
	if c := windowCheck(t.Context(), cfg, false); c.Status != OK || !strings.Contains(c.Detail, "not asked") {
		t.Errorf("the default is remote, yet: %+v", c)
	}
	cfg.DefaultModel = "home"
	if windowCheck(t.Context(), cfg, false); asked.Get("Authorization") != "Bearer k1" || asked.Get("X-Service-Key") != "k2" {
		t.Errorf("the default was asked with %v", asked)
	}
}

// What is not in this network is asked only if that is asked for.
func TestWindowNotAsked(t *testing.T) {
	asked := 0
	cfg := listener(t, func(prompt string) (string, int) { asked++; return "", tokens.Count(prompt) })
	c := windowCheck(t.Context(), config.Config{BaseURL: "https://192.0.2.1/v1", Model: "large"}, false)
	if c.Status != OK || !strings.Contains(c.Detail, "--probe-window") {
		t.Errorf("a remote endpoint: %+v", c)
	}
	for url, want := range map[string]bool{
		"": false, "https://192.0.2.1/v1": false, "http://[2001:db8::1]:80/v1": false, "http://": false,
		"http://127.0.0.1:11434/v1": true, "http://[::1]:11434/v1": true, "http://10.1.2.3/v1": true,
		"http://192.168.1.9:8000/v1": true, "http://[fd00::1]/v1": true, "http://localhost:11434/v1": true,
	} {
		if got := local(t.Context(), url); got != want {
			t.Errorf("%q is local: %v", url, got)
		}
	}
	if windowCheck(t.Context(), cfg, true); asked != 1 {
		t.Errorf("asked %d times", asked)
	}
}

func TestWindowRefused(t *testing.T) {
	p := probe.New("doctor", probeTokens)
	c := judge(p, "small", model.Reply{}, &model.Refusal{Reason: model.ContextLength, Err: errors.New("too long")})
	if c.Status != Warn || !strings.Contains(c.Detail, "says so") {
		t.Errorf("an endpoint that refuses: %+v", c)
	}
	c = judge(p, "small", model.Reply{}, team.Errorf(team.InvalidArgument, "there is no model small"))
	if c.Status != Fail || c.Code != team.InvalidArgument {
		t.Errorf("one that has no such model: %+v", c)
	}
}

// A machine that is too slow to read the prompt costs no more than the time limit.
func TestWindowSlow(t *testing.T) {
	done := make(chan struct{})
	cfg := listener(t, func(string) (string, int) { <-done; return "", 1 })
	defer close(done)
	ctx, cancel := context.WithTimeout(t.Context(), lastWord)
	defer cancel()
	if c := windowCheck(ctx, cfg, false); ctx.Err() != nil || c.Status != Warn || !strings.Contains(c.Hint, "--timeout") {
		t.Errorf("%+v (%v)", c, ctx.Err())
	}
}
