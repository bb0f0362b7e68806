package model

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// read gives the events to a new reader and returns the turn that it makes of them.
func read(t testing.TB, events ...string) Reply {
	t.Helper()
	r := newChatReader(asked, func(string) {})
	for _, e := range events {
		if err := r.event("", []byte(e)); err != nil {
			t.Fatalf("%s: %v", e, err)
		}
	}
	if !r.finished() {
		t.Fatal("the turn is not finished")
	}
	return r.reply()
}

// Calls without ids, under one number or none: where one ends and the next begins.
func TestCallsWithoutIDs(t *testing.T) {
	piece := func(name, args string) string {
		quoted, _ := json.Marshal(args)
		return fmt.Sprintf(`{"index":0,"function":{"name":%q,"arguments":%s}}`, name, quoted)
	}
	for name, tt := range map[string]struct {
		pieces []string
		want   string // names and arguments
	}{
		"two whole ones":                     {[]string{piece("bash", `{"x":1}`), piece("list_tasks", `{"y":2}`)}, `bash{"x":1} list_tasks{"y":2}`},
		"two of one tool":                    {[]string{piece("bash", `{"x":1}`), piece("bash", `{"x":2}`)}, `bash{"x":1} bash{"x":2}`},
		"the arguments once more":            {[]string{piece("bash", `{"x"`), piece("", `:1}`), piece("", `{"x":1}`)}, `bash{"x":1}`},
		"other arguments without a name":     {[]string{piece("bash", `{"x":1}`), piece("", `{"x":2}`)}, `bash{"x":1}{"x":2}`},
		"both in pieces":                     {[]string{piece("bash", `{"x"`), piece("", `:{"a":"}`), piece("", `{"}}`), piece("list_tasks", ""), piece("", `{}`)}, `bash{"x":{"a":"}{"}} list_tasks{}`},
		"the first without arguments":        {[]string{piece("list_tasks", ""), piece("bash", `{"x":1}`)}, `list_tasks{} bash{"x":1}`},
		"an empty object as a placeholder":   {[]string{piece("bash", `{}`), piece("", `{"x"`), piece("", `:1}`)}, `bash{"x":1}`},
		"a named placeholder":                {[]string{piece("bash", `{}`), piece("bash", `{"x":1}`)}, `bash{"x":1}`},
		"an escaped quote ends no string":    {[]string{piece("web", `{"x":"\"{"}`), piece("fetch", `{}`)}, `web{"x":"\"{"} fetch{}`},
		"a known name in every piece":        {[]string{piece("bash", `{"x"`), piece("bash", `:1}`), piece("bash", "")}, `bash{"x":1}`},
		"an unknown name in every piece":     {[]string{piece("web", `{"x"`), piece("web", `:1}`)}, `web{"x":1}`},
		"a name that grows":                  {[]string{piece("list", ""), piece("list_tasks", `{}`)}, `list_tasks{}`},
		"a name in pieces":                   {[]string{piece("list", ""), piece("_tasks", `{}`)}, `list_tasks{}`},
		"an unknown name in pieces":          {[]string{piece("web_", ""), piece("search", `{}`)}, `web_search{}`},
		"a brace in a string ends nothing":   {[]string{piece("bash", `{"x":"}`), piece("", `{\"","y":1}`)}, `bash{"x":"}{\"","y":1}`},
		"a fence around arguments":           {[]string{piece("bash", "```json\n{\"x\":1,}\n```")}, `bash{"x":1}`},
		"null for no arguments":              {[]string{piece("list_tasks", "null")}, `list_tasks{}`},
		"numbers in quotes stay as they are": {[]string{piece("bash", `{"x":"1"}`)}, `bash{"x":"1"}`},
		"what cannot be repaired":            {[]string{piece("bash", `{"x":1`)}, `bash{"x":1`},
	} {
		t.Run(name, func(t *testing.T) {
			var events []string
			for _, p := range tt.pieces {
				events = append(events, calls(p))
			}
			var got []string
			for _, c := range read(t, append(events, finish("tool_calls"))...).Message.ToolCalls {
				got = append(got, c.Name+c.Arguments)
			}
			if strings.Join(got, " ") != tt.want {
				t.Errorf("calls %q, want %s", got, tt.want)
			}
		})
	}
	t.Run("another id with every piece", func(t *testing.T) {
		got := read(t, calls(`{"index":0,"id":"a","function":{"name":"bash","arguments":"{\"x\""}}`), calls(`{"index":0,"id":"b","function":{"arguments":":1}"}}`), finish("stop"))
		if c := got.Message.ToolCalls; len(c) != 1 || c[0].Arguments != `{"x":1}` || c[0].ID != "a" {
			t.Errorf("calls %+v", c)
		}
	})
	t.Run("without a number too", func(t *testing.T) {
		got := read(t, calls(`{"function":{"name":"bash","arguments":"{\"x\""}}`), calls(`{"function":{"name":"bash","arguments":":1}"}}`),
			calls(`{"function":{"name":"bash","arguments":"{\"x\":2}"}}`), finish("stop"))
		if c := got.Message.ToolCalls; len(c) != 2 || c[0].Arguments != `{"x":1}` || c[1].Arguments != `{"x":2}` {
			t.Errorf("calls %+v", c)
		}
	})
}

// The forms that numbers, names and texts come in.
func TestLooseForms(t *testing.T) {
	got := read(t,
		`{"model":7,"choices":[{"index":"0","delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"let me "}]},{"type":"text","text":"a"},{"type":"reference","reference_ids":[1]}]}}]}`,
		`{"choices":[{"index":0.0,"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"see"}]}]}}]}`,
		`{"choices":[{"delta":{"content":"b","tool_calls":[{"index":0.0,"id":42,"function":{"name":"bash","arguments":{"x":1}}}]}}]}`,
		`{"choices":[{"delta":{"tool_calls":[{"index":"1","id":43,"function":{"name":"list_tasks","arguments":""}}]}}]}`,
		`{"choices":[{"index":0,"finish_reason":"tool_calls","delta":null}],"usage":{"prompt_tokens":12.0,"completion_tokens":"3"}}`,
		`{"choices":[],"usage":{"prompt_tokens":0}}`)
	want := Reply{
		Message: Message{Role: "assistant", Content: "ab", Extra: map[string]json.RawMessage{"reasoning_content": json.RawMessage(`"let me see"`)},
			ToolCalls: []ToolCall{{ID: "42", Name: "bash", Arguments: `{"x":1}`}, {ID: "43", Name: "list_tasks", Arguments: "{}"}}},
		FinishReason: "tool_calls", Model: "7", Usage: Usage{PromptTokens: 12, CompletionTokens: 3},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("turn %+v\nwant %+v", got, want)
	}
}

func TestFinishReasons(t *testing.T) {
	for told, want := range map[string]string{
		"stop": "stop", "STOP": "stop", "end_turn": "stop", "length": "length", "MAX_TOKENS": "length", "model_length": "length",
		"content_filter": "content_filter", "SAFETY": "content_filter", "something new": "something new",
	} {
		if got := read(t, text("x"), finish(told)); got.FinishReason != want {
			t.Errorf("%s: %s, want %s", told, got.FinishReason, want)
		}
	}
}

// A message in place of a delta is taken, but not what only repeats.
func TestMessageInPlaceOfDelta(t *testing.T) {
	message := `{"choices":[{"index":0,"message":{"role":"assistant","content":"all"},"finish_reason":"stop"}]}`
	if got := read(t, message); got.Message.Content != "all" {
		t.Errorf("content %q", got.Message.Content)
	}
	if got := read(t, text("all"), message); got.Message.Content != "all" {
		t.Errorf("content %q, want it once", got.Message.Content)
	}
}

// A thought comes in thousands of pieces and is stored as one.
func TestReasoningIsMerged(t *testing.T) {
	const n = 12_000
	var events []string
	for i := range n {
		events = append(events, delta(fmt.Sprintf(`{"reasoning":"w%d ","reasoning_details":[{"type":"reasoning.text","text":"w%d ","format":"f","index":0}]}`, i, i)))
	}
	events = append(events,
		delta(`{"reasoning_details":[{"type":"reasoning.text","signature":"sig","format":"f","index":0},{"type":"reasoning.encrypted","data":"xyz","id":"e","index":1}]}`),
		text("done"), finish("stop"))
	got := read(t, events...)
	var details []struct{ Type, Text, Signature, Format, Data, ID string }
	if err := json.Unmarshal(got.Message.Extra["reasoning_details"], &details); err != nil || len(details) != 2 {
		t.Fatalf("%d details, %v", len(details), err)
	}
	var thought string
	if err := json.Unmarshal(got.Message.Extra["reasoning"], &thought); err != nil || strings.Count(thought, " ") != n {
		t.Errorf("reasoning of %d words, %v", strings.Count(thought, " "), err)
	}
	first, second := details[0], details[1]
	if first.Text != thought || first.Signature != "sig" || first.Format != "f" || second.Data != "xyz" || second.ID != "e" {
		t.Errorf("details begin with %.80q, %+v", first.Text, second)
	}
	stored, err := json.Marshal(got)
	if most := 2*len(thought) + 500; err != nil || len(stored) > most {
		t.Errorf("the turn takes %d bytes, want at most %d", len(stored), most)
	}
}

func TestBlocks(t *testing.T) {
	for name, tt := range map[string]struct{ pieces, want string }{
		"by number, in any order":           {`[{"type":"t","index":0,"text":"a"},{"type":"t","index":1,"text":"x"},{"type":"t","index":0,"text":"b"}]`, `[{"index":0,"text":"ab","type":"t"},{"type":"t","index":1,"text":"x"}]`},
		"another type":                      {`[{"type":"t","index":0,"text":"a"},{"type":"s","index":0,"summary":"b"}]`, `[{"type":"t","index":0,"text":"a"},{"type":"s","index":0,"summary":"b"}]`},
		"no number":                         {`[{"type":"thinking","thinking":"a"},{"type":"thinking","thinking":"b","signature":""},{"type":"thinking","thinking":"","signature":"s"}]`, `[{"signature":"s","thinking":"ab","type":"thinking"}]`},
		"no number, a signature ends it":    {`[{"type":"thinking","thinking":"a","signature":"s"},{"type":"thinking","thinking":"b"}]`, `[{"type":"thinking","thinking":"a","signature":"s"},{"type":"thinking","thinking":"b"}]`},
		"no number, encrypted ones":         {`[{"type":"r","data":"a"},{"type":"r","data":"b"}]`, `[{"type":"r","data":"a"},{"type":"r","data":"b"}]`},
		"other lists stay":                  {`[{"type":"url_citation","url_citation":{"url":"a"}},{"type":"url_citation","url_citation":{"url":"b"}},{"n":1},7]`, `[{"type":"url_citation","url_citation":{"url":"a"}},{"type":"url_citation","url_citation":{"url":"b"}},{"n":1},7]`},
		"what one piece leaves out is kept": {`[{"type":"t","index":0,"text":"a","id":"i"},{"type":"t","index":0,"text":"b","id":null}]`, `[{"id":"i","index":0,"text":"ab","type":"t"}]`},
	} {
		if got := joined([]json.RawMessage{json.RawMessage(tt.pieces)}); string(got) != tt.want {
			t.Errorf("%s: %s\nwant %s", name, got, tt.want)
		}
	}
}

// Whatever comes, the reader neither panics nor calls a turn finished that has no
// finish reason, and the turn's calls can be stored.
func FuzzChatReader(f *testing.F) {
	for _, seed := range []string{
		text("a"), finish("stop"), count, calls(`{"index":0,"id":"a","function":{"name":"bash","arguments":"{}"}}`),
		delta(`{"reasoning_details":[{"type":"t","index":0,"text":"a"}],"content":[{"type":"text","text":"x"}]}`),
		`{"error":{"message":"x","code":400}}`, `[]`, `{"choices":[{"message":{"content":"x"}}]}`, `null`, `{"choices":null}`, `[{"error":"x"}]`,
	} {
		f.Add("", seed, seed)
		f.Add("error", seed, finish("length"))
	}
	f.Fuzz(func(t *testing.T, name, a, b string) {
		r := newChatReader(asked, func(string) {})
		for _, data := range []string{a, b} {
			if r.event(name, []byte(data)) != nil {
				return
			}
		}
		turn := r.reply()
		if r.finished() != (turn.FinishReason != "" && r.finish != "") || r.size() < 0 {
			t.Errorf("finished %v with %q, size %d", r.finished(), turn.FinishReason, r.size())
		}
		ids := map[string]bool{}
		for _, c := range turn.Message.ToolCalls {
			if c.ID == "" || ids[c.ID] || c.Arguments == "" {
				t.Errorf("call %+v", c)
			}
			ids[c.ID] = true
		}
		if _, err := json.Marshal(turn); err != nil {
			t.Error(err)
		}
	})
}
