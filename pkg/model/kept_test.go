package model

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// talk returns n messages as an agent's conversation brings them, each of about size
// bytes.
func talk(n, size int) []*Message {
	text := strings.Repeat("word ", size/5)
	ms := []*Message{{Role: "system", Content: "You are coder-1, role coder, in team red."}}
	for i := 1; i < n; i++ {
		id := fmt.Sprintf("call_%d", i/3)
		switch i % 3 {
		case 1:
			ms = append(ms, &Message{Role: "user", Content: text})
		case 2:
			ms = append(ms, &Message{Role: "assistant", Content: text, ToolCalls: []ToolCall{{ID: id, Name: "bash", Arguments: `{"command":"ls"}`}}})
		case 0:
			ms = append(ms, &Message{Role: "tool", ToolCallID: id, Content: text})
		}
	}
	return ms
}

// messagesEnd returns what stands in body up to where its messages end.
func messagesEnd(body []byte) []byte {
	return body[:bytes.LastIndex(body, []byte(`],"max_`))]
}

// Whatever is appended, the prompt of each request begins with that of the one
// before, and it is what a request without memory of earlier ones would be.
func TestPromptsBeginAlike(t *testing.T) {
	for _, name := range []string{"openai", "anthropic", "deepseek", "gemini", unknownEndpoint} {
		for _, model := range []string{"m", "gpt-5.6"} {
			d := dialectOf(t, name, model, Options{})
			all := nasty(d.origin(model))
			ms, kept := all.Messages, new(Kept)
			var before []byte
			for n := 1; n <= len(ms); n++ {
				req := all
				req.Messages, req.Kept = ms[:n], kept
				c, err := d.encode(req)
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.HasPrefix(c.body.bytes(), before) {
					t.Errorf("%s, %s: with message %d the prompt begins in another way:\n%s\n%s", name, model, n-1, before, c.body.bytes())
				}
				before = messagesEnd(c.body.bytes())
				req.Kept = nil
				anew, err := d.encode(req)
				if err != nil || !bytes.Equal(anew.body.bytes(), c.body.bytes()) {
					t.Errorf("%s, %s: with message %d:\n%s\nwant\n%s", name, model, n-1, c.body.bytes(), anew.body.bytes())
				}
			}
		}
	}
}

// Whatever happens to the conversation and the dialect between two requests, what is
// kept gives the same body as encoding anew.
func TestKeptNeverShows(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		name := Profiles()[rng.IntN(len(Profiles()))]
		d := dialectOf(t, name, "claude-sonnet-5", Options{})
		all := nasty(d.origin("claude-sonnet-5"))
		kept := new(Kept)
		for range 12 {
			req := all
			switch rng.IntN(6) {
			case 0: // compacted
				i := 1 + rng.IntN(3)
				req.Messages = append(all.Messages[:1:1], all.Messages[1+i:]...)
			case 1: // one of them is another
				req.Messages = append([]*Message(nil), all.Messages...)
				other := *req.Messages[1+rng.IntN(4)]
				other.Content += "!"
				req.Messages[1+rng.IntN(2)] = &Message{Role: "user", Content: other.Content}
			case 2:
				req.Model = "another"
			case 3:
				d.learn(apiError{status: 400, message: []string{
					"roles must alternate", "property 'reasoning_content' is unsupported", "cache_control: unknown field", "use /v1/responses",
				}[rng.IntN(4)]})
			case 4:
				req.Tools = all.Tools[:1]
			}
			req.Messages = req.Messages[:2+rng.IntN(len(req.Messages)-2)]
			req.Kept = kept
			got, err := d.encode(req)
			if err != nil {
				t.Fatal(err)
			}
			req.Kept = nil
			want, err := d.encode(req)
			if err != nil || !bytes.Equal(got.body.bytes(), want.body.bytes()) {
				t.Fatalf("%s: body\n%s\nwant\n%s", name, got.body.bytes(), want.body.bytes())
			}
		}
	}
}

// A bit that an error turned holds for what was said before, too.
func TestLearnedChangesAll(t *testing.T) {
	d := dialectOf(t, unknownEndpoint, "m", Options{})
	req := nasty(d.origin("m"))
	req.Kept = new(Kept)
	before, err := d.encode(req)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(before.body.bytes(), []byte(`"reasoning_content"`)) {
		t.Fatalf("no reasoning in %s", before.body.bytes())
	}
	if e := (apiError{status: 400, message: "property 'reasoning_content' is unsupported"}); !d.learn(e) || d.learn(e) {
		t.Error("it is not learned, or twice")
	}
	after, err := d.encode(req)
	if err != nil || bytes.Contains(after.body.bytes(), []byte(`"reasoning_content"`)) {
		t.Errorf("%v: %s", err, after.body.bytes())
	}
}

// The marks lie on the system message, the last tool, and the last two messages that
// are not the assistant's, and nowhere else.
func TestCacheMarks(t *testing.T) {
	d := dialectOf(t, "litellm", "claude-sonnet-5", Options{})
	mark := []byte(`"cache_control"`)
	kept := new(Kept)
	ms := talk(20, 10)
	for n := 2; n <= len(ms); n++ {
		c, err := d.encode(Request{Messages: ms[:n], Tools: nasty("").Tools, Kept: kept})
		if err != nil {
			t.Fatal(err)
		}
		want := 4
		if n <= 3 { // system, user, assistant: one message is not the assistant's
			want = 3
		}
		if got := bytes.Count(c.body.bytes(), mark); got != want {
			t.Errorf("%d messages: %d marks, want %d: %s", n, got, want, c.body.bytes())
		}
		if n == len(ms) {
			rest := c.body.bytes()[bytes.LastIndex(c.body.bytes(), []byte(`"role":"user"`)):] // message 19, after the tool's
			if bytes.Count(rest, mark) != 1 {
				t.Errorf("the last user has no mark: %s", rest)
			}
		}
	}
}

// What a turn costs does not grow with the conversation. Counted in allocations,
// which do not depend on who else uses the machine; the time is in BenchmarkEncode.
func TestEncodingCostsWhatIsNew(t *testing.T) {
	cost := func(n int) float64 {
		d := dialectOf(t, "openai", "gpt-5", Options{})
		ms := talk(n+2, 1500)
		req := Request{Messages: ms[:n], Kept: new(Kept)}
		return testing.AllocsPerRun(50, func() {
			req.Messages = ms[:n+len(ms)-len(req.Messages)] // two more, two fewer, and so on
			if _, err := d.encode(req); err != nil {
				t.Fatal(err)
			}
		})
	}
	if few, many := cost(20), cost(800); many > 1.3*few {
		t.Errorf("%v allocations at 800 messages, %v at 20", many, few)
	}
}

// BenchmarkEncode encodes a conversation to which each turn appends a call and its
// result. Beside it stands what must be paid in any case: the body is a copy.
func BenchmarkEncode(b *testing.B) {
	tools := nasty("").Tools
	const turns = 16
	for _, n := range []int{20, 200, 800} {
		d := dialectOf(b, "openai", "gpt-5", Options{})
		ms := talk(n+2*turns, 1500)
		req := Request{Messages: ms[:n], Tools: tools, Kept: new(Kept)}
		first, err := d.encode(req)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("%d/kept", n), func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				req.Messages = ms[:n+2*(i%turns)]
				if _, err := d.encode(req); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("%d/copy", n), func(b *testing.B) {
			for b.Loop() {
				bytes.Clone(first.body.bytes())
			}
		})
		b.Run(fmt.Sprintf("%d/anew", n), func(b *testing.B) {
			anew := req
			anew.Kept = nil
			for b.Loop() {
				if _, err := d.encode(anew); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// bytes is the body in one piece.
func (b body) bytes() []byte { return bytes.Join(b, nil) }
