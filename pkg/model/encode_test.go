package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"agentteam/pkg/model/rehearsal/stricttest"
	"agentteam/pkg/team"
)

var update = flag.Bool("update", false, "write the golden files anew")

// dialectOf returns the dialect of that profile for the model.
func dialectOf(t testing.TB, profile, model string, o Options) *dialect {
	t.Helper()
	o.BaseURL, o.Profile, o.Model = "http://endpoint.test/v1", profile, model
	d, err := newDialect(o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// nasty is a conversation with all that some endpoint refuses if it is sent as it
// stands in the journal.
func nasty(origin string) Request {
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	return Request{
		Messages: []*Message{
			{Role: "system", Content: "You are coder-1, role coder, in team red."},
			{Role: "user", Content: "look at <this>"},
			{Role: "user", Parts: []Part{
				{Type: "text", Text: "a picture:"},
				{Type: "image", Image: &Image{MediaType: "image/png", Ref: "stored:abc"}},
			}},
			{Role: "assistant", Content: "I look.", Origin: origin,
				Extra: map[string]json.RawMessage{
					"reasoning": raw(`"hm"`), "reasoning_content": raw(`"hm"`), "reasoning_details": raw(`[{"type":"reasoning.text","text":"hm"}]`),
					reasoningItems: raw(`[{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gAAA"},{"type":"reasoning","id":"rs_2"}]`),
				},
				ToolCalls: []ToolCall{
					{ID: "call_1", Name: "bash", Arguments: `{"command":"ls"}`, Extra: map[string]json.RawMessage{"extra_content": raw(`{"google":{"thought_signature":"s"}}`)}},
					{ID: "chatcmpl-tool-ff8c53b1", Name: "functions.bash<|channel|>commentary", Arguments: `{"command":`},
				}},
			{Role: "tool", ToolCallID: "call_1", Content: "a b c"},
			{Role: "tool", ToolCallID: "chatcmpl-tool-ff8c53b1"},
			{Role: "user", Content: "mail while it worked"},
			{Role: "assistant", Content: " \n"}, // an empty turn
			{Role: "user", Content: "go on"},
			{Role: "assistant", Content: "One."},
			{Role: "assistant", Content: "Two.", Origin: "elsewhere m", Extra: map[string]json.RawMessage{"reasoning_content": raw(`"not yours"`)}},
			{Role: "user", Content: "x"},
			{Role: "assistant", Origin: "elsewhere m", ToolCalls: []ToolCall{{ID: "Abc123xyz", Name: "", Arguments: ""}}},
			{Role: "tool", ToolCallID: "Abc123xyz", Content: "no such tool"},
			{Role: "assistant", Origin: "elsewhere m", Content: "with a NUL\x00", ToolCalls: []ToolCall{
				{ID: "functions.bash:0", Name: "bash", Arguments: `["ls"]`},
				{ID: "call_" + strings.Repeat("0123456789", 7), Name: "bash", Arguments: `"ls -la"`},
			}},
			{Role: "tool", ToolCallID: "functions.bash:0", Content: "no object"},
			{Role: "tool", ToolCallID: "call_" + strings.Repeat("0123456789", 7), Content: "no object"},
		},
		Tools: []ToolSpec{
			{Name: "bash", Description: "runs", Schema: raw(`{"$schema":"x","type":"object","additionalProperties":false,"required":["command","env"],"properties":{` +
				`"command":{"type":"string"},"env":{"type":"object","additionalProperties":true},"files":{"type":["null","array"],"items":{"type":"object","properties":{"const":{"const":"a","type":"string"}}}}}}`)},
			{Name: "list_teammates"},
		},
		Image: func(i Image) ([]byte, error) {
			if i.Ref != "stored:abc" {
				return nil, errors.New("no such image")
			}
			return []byte("png"), nil
		},
	}
}

// Every profile's encoding of that conversation is taken by the endpoint it is made
// for, and stays as it is.
func TestEveryProfileIsTakenByItsEndpoint(t *testing.T) {
	for _, name := range append(Profiles(), "openai-responses") {
		t.Run(name, func(t *testing.T) {
			profile, model := name, "m"
			if name == "openai-responses" {
				profile, model = "openai", "gpt-5.6"
			}
			d := dialectOf(t, profile, model, Options{})
			c, err := d.encode(nasty(d.origin(model)))
			if err != nil {
				t.Fatal(err)
			}
			switch name {
			case "openai-responses":
				err = stricttest.CheckResponses(c.body)
			case unknownEndpoint:
				err = stricttest.Check("", c.body)
			case "anthropic":
				err = (&anthropic{}).check(messagesTo(), c.body)
			default:
				err = stricttest.Check(name, c.body)
			}
			if err != nil {
				t.Errorf("refused: %v", err)
			}
			golden(t, filepath.Join("testdata", "encode", name+".json"), c.body)
		})
	}
}

// An escaped NUL is left out of arguments as well, a lone surrogate is replaced, and what only
// looks like one stays.
func TestArgumentsAreSendable(t *testing.T) {
	for args, want := range map[string]string{
		`{"a":"x\u0000y","b\u0000":"\u0000"}`: `{"a":"xy","b":""}`,
		`{"a":"\\u0000","b":"\\\u0000"}`:      `{"a":"\\u0000","b":"\\"}`,
		`{"a":"\u00e9\""}`:                    `{"a":"\u00e9\""}`,
		`{"z":1.50,"a":"\ud83d"}`:             `{"z":1.50,"a":"\ufffd"}`,
		`{"a":"\uD83Dx\ud83d\ud83d\ude00"}`:   `{"a":"\ufffdx\ufffd\ud83d\ude00"}`,
		`{"a":"\ude00\ud83d\n\\ud83d"}`:       `{"a":"\ufffd\ufffd\n\\ud83d"}`,
	} {
		if got := arguments(ToolCall{Arguments: args}); got != want || !json.Valid([]byte(got)) {
			t.Errorf("%s becomes %s, want %s", args, got, want)
		}
	}
}

// golden compares the body with what the file holds: as JSON, for the order of its fields is
// go-openai's. The prefix test holds that one to itself.
func golden(t *testing.T, file string, body []byte) {
	t.Helper()
	var readable bytes.Buffer
	if err := json.Indent(&readable, body, "", "  "); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	readable.WriteByte('\n')
	if *update {
		if err := os.WriteFile(file, readable.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var got, held any
	if err := errors.Join(json.Unmarshal(body, &got), json.Unmarshal(want, &held)); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, held) {
		t.Errorf("the body is not that of %s; -update writes it:\n%s", file, readable.Bytes())
	}
}

// What is sent unprepared is refused by most: the table above could fail.
func TestTheNastyConversationIsRefusedAsItIs(t *testing.T) {
	d := dialectOf(t, unknownEndpoint, "m", Options{})
	c, err := d.encode(nasty(d.origin("m")))
	if err != nil {
		t.Fatal(err)
	}
	var taken []string
	for _, name := range Profiles() {
		if name != unknownEndpoint && name != "anthropic" && stricttest.Check(name, c.body) == nil {
			taken = append(taken, name)
		}
	}
	if want := []string{"litellm", "ollama"}; !slices.Equal(taken, want) {
		t.Errorf("taken by %v, want %v", taken, want)
	}
}

func TestEncodeRefuses(t *testing.T) {
	d := dialectOf(t, "", "m", Options{})
	for text, ms := range map[string][]*Message{
		"message 1 of the conversation is a system message": {{Role: "user"}, {Role: "system"}},
		`message 0 of the conversation has the role "bot"`:  {{Role: "bot"}},
	} {
		if _, err := d.encode(Request{Messages: ms}); !errors.Is(err, team.InvalidArgument) || !strings.Contains(err.Error(), text) {
			t.Errorf("encode = %v, want %q", err, text)
		}
	}
}

func TestRequestHeadersAndPath(t *testing.T) {
	for name, tt := range map[string]struct {
		opt  Options
		path string
		want http.Header
	}{
		"bearer": {Options{BaseURL: "https://api.openai.com/v1", APIKey: "k", Model: "gpt-5", Headers: map[string]string{"x-team": "red"}},
			"/chat/completions", http.Header{"Authorization": {"Bearer k"}, "X-Team": {"red"}}},
		"responses":       {Options{BaseURL: "https://api.openai.com/v1", APIKey: "k", Model: "gpt-5.6"}, "/responses", http.Header{"Authorization": {"Bearer k"}}},
		"azure":           {Options{BaseURL: "https://x.openai.azure.com/openai/v1", APIKey: "k", Model: "my-gpt-5.5"}, "/responses", http.Header{"Api-Key": {"k"}}},
		"classic":         {Options{BaseURL: "https://x.openai.azure.com/openai/deployments/d", APIKey: "k", Model: "d"}, "/chat/completions?api-version=2024-12-01-preview", http.Header{"Api-Key": {"k"}}},
		"own version":     {Options{BaseURL: "https://x.openai.azure.com/openai/deployments/d?api-version=2025", APIKey: "k", Model: "d"}, "/chat/completions", http.Header{"Api-Key": {"k"}}},
		"key in a header": {Options{BaseURL: "https://api.openai.com/v1", APIKey: "k", Model: "gpt-5", Headers: map[string]string{"api-key": "service"}}, "/chat/completions", http.Header{"Api-Key": {"service"}}},
		"no key":          {Options{BaseURL: "http://127.0.0.1:11434/v1", Model: "m"}, "/chat/completions", http.Header{}},
	} {
		d, err := newDialect(tt.opt)
		if err != nil {
			t.Fatal(err)
		}
		c, err := d.encode(Request{Messages: []*Message{{Role: "user", Content: "x"}}})
		if err != nil {
			t.Fatal(err)
		}
		if c.path != tt.path || len(c.header) != len(tt.want) {
			t.Errorf("%s: %s %v, want %s %v", name, c.path, c.header, tt.path, tt.want)
		}
		for k := range tt.want {
			if c.header.Get(k) != tt.want.Get(k) {
				t.Errorf("%s: %s is %q, want %q", name, k, c.header.Get(k), tt.want.Get(k))
			}
		}
	}
}

func TestExtraFields(t *testing.T) {
	for name, tt := range map[string]struct {
		profile, model string
		extra          map[string]any
		has, hasNot    []string
	}{
		"chat":              {"", "m", map[string]any{"temperature": 0, "reasoning_effort": "high"}, []string{`"reasoning_effort":"high"`, `"temperature":0`, `"stream_options":{"include_usage":true}`}, nil},
		"replaces ours":     {"", "m", map[string]any{"stream_options": map[string]bool{"a": true}}, []string{`"stream_options":{"a":true}`}, []string{"include_usage"}},
		"responses' words":  {"openai", "gpt-5.6", map[string]any{"reasoning_effort": "high", "verbosity": "low"}, []string{`"reasoning":{"effort":"high"}`, `"text":{"verbosity":"low"}`, `"store":false`}, []string{"reasoning_effort", `"verbosity":"low",`}},
		"responses' fields": {"openai", "gpt-5.6", map[string]any{"reasoning": map[string]string{"effort": "low"}, "reasoning_effort": "high"}, []string{`"reasoning":{"effort":"low"}`}, []string{"high"}},
		"on top":            {"openrouter", "anthropic/claude-sonnet-5", nil, []string{`"cache_control":{"type":"ephemeral"}`}, nil},
		"not on top":        {"openrouter", "openai/gpt-5", nil, nil, []string{"cache_control"}},
	} {
		c, err := dialectOf(t, tt.profile, tt.model, Options{Extra: tt.extra}).encode(Request{Messages: []*Message{{Role: "user", Content: "x"}}})
		if err != nil {
			t.Fatal(err)
		}
		body := string(c.body)
		for _, s := range tt.has {
			if !strings.Contains(body, s) {
				t.Errorf("%s: %s is missing in %s", name, s, body)
			}
		}
		for _, s := range tt.hasNot {
			if strings.Contains(body, s) {
				t.Errorf("%s: %s stands in %s", name, s, body)
			}
		}
		if !json.Valid(c.body) {
			t.Errorf("%s: no JSON: %s", name, body)
		}
	}
	for _, extra := range []map[string]any{{"messages": 1}, {"system": 1}, {"max_tokens": 1}, {"x": func() {}}} {
		if _, err := newDialect(Options{BaseURL: "http://x", Model: "m", Extra: extra}); !errors.Is(err, team.InvalidArgument) {
			t.Errorf("extra %v: %v", extra, err)
		}
	}
}

func TestLimitOfTheAnswer(t *testing.T) {
	prompt := func(tokens int) []*Message { return []*Message{{Role: "user", Content: strings.Repeat("a", 4*tokens)}} }
	for name, tt := range map[string]struct {
		profile, model string
		opt            Options
		prompt, asked  int
		low, high      int // what the limit lies between
	}{
		"the profile's":         {unknownEndpoint, "m", Options{}, 10, 0, 8000, 8000},
		"the model's":           {"openai", "gpt-4o", Options{}, 10, 0, 16384, 16384},
		"the settings'":         {unknownEndpoint, "m", Options{MaxTokens: 500}, 10, 0, 500, 500},
		"the request's":         {unknownEndpoint, "m", Options{MaxTokens: 500}, 10, 70, 70, 70},
		"what is left":          {unknownEndpoint, "m", Options{Window: 10_000}, 7000, 0, 2900, 3000},
		"not less":              {unknownEndpoint, "m", Options{Window: 10_000}, 12_000, 0, 256, 256},
		"ollama's small window": {"ollama", "llama3.1", Options{}, 3000, 0, 1000, 1096},
		"a small request":       {unknownEndpoint, "m", Options{Window: 10_000}, 12_000, 100, 100, 100},
	} {
		c, err := dialectOf(t, tt.profile, tt.model, tt.opt).encode(Request{Messages: prompt(tt.prompt), MaxTokens: tt.asked})
		if err != nil {
			t.Fatal(err)
		}
		var body struct {
			MaxTokens           int `json:"max_tokens"`
			MaxCompletionTokens int `json:"max_completion_tokens"`
		}
		if err := json.Unmarshal(c.body, &body); err != nil {
			t.Fatal(err)
		}
		if got := body.MaxTokens + body.MaxCompletionTokens; got < tt.low || got > tt.high {
			t.Errorf("%s: limit %d, want %d to %d", name, got, tt.low, tt.high)
		}
	}

	// What the endpoint has told counts for a setting, too.
	told := dialectOf(t, unknownEndpoint, "m", Options{MaxTokens: 9000})
	if !told.learn(apiError{status: 400, message: "the valid range of max_tokens is [1, 700]"}) {
		t.Error("the highest limit is not learned")
	}
	if c, err := told.encode(Request{Messages: prompt(1)}); err != nil || !bytes.HasSuffix(c.body, []byte(`"max_tokens":700}`)) {
		t.Errorf("%v %s", err, c.body)
	}

	// An image is long as text, but costs the window little.
	d := dialectOf(t, "openai", "m", Options{Window: 10_000})
	c, err := d.encode(Request{
		Messages: []*Message{{Role: "user", Parts: []Part{{Type: "image", Image: &Image{MediaType: "image/png", Ref: "stored:a"}}}}},
		Image:    func(Image) ([]byte, error) { return make([]byte, 100_000), nil },
	})
	if err != nil || !bytes.Contains(c.body, []byte(`"max_completion_tokens":9`)) {
		t.Errorf("beside an image: %v, %s", err, c.body[len(c.body)-60:])
	}
}

func TestImageThatCannotBeLoaded(t *testing.T) {
	d := dialectOf(t, "openai", "m", Options{})
	req := Request{Messages: []*Message{{Role: "user", Content: "see", Parts: []Part{{Type: "image", Image: &Image{Ref: "stored:a"}}}}}}
	req.Image = func(Image) ([]byte, error) { return nil, errors.New("gone") }
	c, err := d.encode(req)
	if err != nil || !bytes.Contains(c.body, []byte(`"content":"see\n(image stored:a, which you cannot see)"`)) {
		t.Errorf("%v %s", err, c.body)
	}
}
