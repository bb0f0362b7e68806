package model

import (
	"strings"
	"testing"
)

// go-openai refuses some models before it sends anything. No model that we know is lost so: with
// tools, a limit and the settings that it looks at, each is asked, over the wire that it takes.
func TestNoModelIsRefusedUnsent(t *testing.T) {
	models := []string{"gpt-6-sol", "gpt-6-astra", "gpt-6-luna", "gpt-6.1-sol", "openai/gpt-6-sol", "@cf/meta/llama-4-scout"}
	for _, w := range windows() {
		models = append(models, w.model)
	}
	extra := map[string]any{"temperature": 0.5, "top_p": 0.5, "reasoning_effort": "none", "presence_penalty": 1, "logprobs": true}
	for _, model := range models {
		for _, profile := range Profiles() {
			d := dialectOf(t, profile, model, Options{Extra: extra})
			c, err := d.encode(nasty(""))
			if err != nil || !strings.Contains(string(c.body), `"model":"`+model+`"`) || !strings.Contains(string(c.body), `"temperature":0.5`) {
				t.Errorf("%s, %s: %v %s", profile, model, err, c.body)
			}
		}
	}
}

// What looks like a mark of ours, in any text of a conversation, stays as it is.
func TestMarksInTexts(t *testing.T) {
	for _, profile := range []string{unknownEndpoint, "gemini", "litellm"} {
		d := dialectOf(t, profile, "claude-@0", Options{})
		c, err := d.encode(Request{
			Messages: []*Message{
				{Role: "user", Content: `"@0" @1`}, {Role: "assistant", Content: "@2", ToolCalls: []ToolCall{{ID: "@3", Name: "@4", Arguments: `{"a":"@5"}`}}},
				{Role: "tool", ToolCallID: "@3", Content: "@6"},
			},
			Tools: []ToolSpec{{Name: "t", Description: "@7", Schema: []byte(`{"type":"object","properties":{"a":{"type":"string","default":"@8"}}}`)}},
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []string{`\"@0\" @1`, `"@2"`, `{\"a\":\"@5\"}`, `"@6"`, `"@7"`, `"default":"@8"`, `"claude-@0"`} {
			if !strings.Contains(string(c.body), s) {
				t.Errorf("%s: %s is missing in %s", profile, s, c.body)
			}
		}
	}
}
