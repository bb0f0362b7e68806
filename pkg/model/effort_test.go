package model

import (
	"encoding/json"
	"strings"
	"testing"
)

// The effort of a request stands where the wire has it, in place of the alias's, leaves the rest of the prompt as it
// is, and is left out once the endpoint does not take it.
func TestEffortOfARequest(t *testing.T) {
	for name, tt := range map[string]struct {
		profile, model string
		want           string
		refusal        string
	}{
		"chat":      {"", "m", `"reasoning_effort":"low"`, "Unsupported value: 'reasoning_effort' does not support 'low' with this model."},
		"responses": {"openai", "gpt-5.6", `"reasoning":{"effort":"low"}`, "Unsupported parameter: 'reasoning_effort' is not supported with this model."},
		"messages":  {"anthropic", "claude-opus-5-5", `"output_config":{"effort":"low"}`, "This model does not support the effort parameter."},
	} {
		for _, extra := range []map[string]any{nil, {"reasoning_effort": "high"}} {
			d := dialectOf(t, tt.profile, tt.model, Options{Extra: extra})
			body := func(effort string) string {
				c, err := d.encode(Request{Effort: effort, Messages: []*Message{{Role: "user", Content: "x"}}})
				if err != nil || !json.Valid(c.body) {
					t.Fatalf("%s: %v, %s", name, err, c.body)
				}
				return string(c.body)
			}
			low := body("low")
			if plain := body(""); !strings.Contains(low, tt.want) || strings.Contains(low, "high") || strings.Contains(plain, "low") ||
				strings.Contains(plain, "high") != (extra != nil) || plain[:40] != low[:40] {
				t.Errorf("%s: with effort %s\nwithout %s", name, low, plain)
			}
			if !d.learn(apiError{status: 400, message: tt.refusal}) || strings.Contains(body("low"), "effort") {
				t.Errorf("%s: after %q: %s", name, tt.refusal, body("low"))
			}
		}
	}
}
