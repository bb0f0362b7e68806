package model

import (
	"bytes"
	"fmt"
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
	return body[:max(bytes.LastIndex(body, []byte(`],"stream":`)), bytes.LastIndex(body, []byte(`],"instructions":`)))]
}

// Whatever is appended, the prompt of each request begins with that of the one before.
func TestPromptsBeginAlike(t *testing.T) {
	for _, name := range []string{"openai", "anthropic-compat", "deepseek", "gemini", unknownEndpoint} {
		for _, model := range []string{"m", "gpt-5.6"} {
			d := dialectOf(t, name, model, Options{})
			all := nasty(d.origin(model))
			ms := all.Messages
			var before []byte
			for n := 1; n <= len(ms); n++ {
				req := all
				req.Messages = ms[:n]
				c, err := d.encode(req)
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.HasPrefix(c.body, before) {
					t.Errorf("%s, %s: with message %d the prompt begins in another way:\n%s\n%s", name, model, n-1, before, c.body)
				}
				before = messagesEnd(c.body)
			}
		}
	}
}

// What is written once and kept reads as if it were written anew: in a conversation that grows, that
// is shortened, or in which a message was changed, in each profile.
func TestKeptBeginnings(t *testing.T) {
	for _, name := range Profiles() {
		for _, model := range []string{"m", "gpt-5.6", "claude-sonnet-5"} {
			opt := Options{Window: 34_000} // so that the limit of the answer tells the size of the prompt
			kept := dialectOf(t, name, model, opt)
			look := func(req Request) {
				t.Helper()
				got, err1 := kept.encode(req)
				want, err2 := dialectOf(t, name, model, opt).encode(req)
				if err1 != nil || err2 != nil || !bytes.Equal(got.body, want.body) || got.bound != want.bound {
					t.Fatalf("%s, %s, %d messages: %v, %v\n%s\n%s", name, model, len(req.Messages), err1, err2, got.body, want.body)
				}
			}
			all := nasty(kept.origin(model))
			all.Messages = append(all.Messages, talk(60, 2000)[1:]...)
			for n := range all.Messages {
				req := all
				req.Messages = all.Messages[:n+1]
				look(req)
			}
			if len(kept.begun.list) != 1 {
				t.Errorf("%s, %s: %d beginnings of one conversation", name, model, len(kept.begun.list))
			}
			if b := kept.begun.list[0]; len(b.messages) < len(all.Messages)-5 {
				t.Errorf("%s, %s: of %d messages %d are kept", name, model, len(all.Messages), len(b.messages))
			}
			for n := len(all.Messages); n > 0; n-- {
				req := all
				req.Messages = all.Messages[:n]
				look(req)
			}
			look(all)
			changed := *all.Messages[40]
			changed.Content = "[left out]"
			all.Messages = append(append(all.Messages[:40:40], &changed), all.Messages[41:]...)
			look(all)
			all.Image = nil
			look(all)
			if len(kept.begun.list) > mostBegun {
				t.Errorf("%s, %s: %d beginnings", name, model, len(kept.begun.list))
			}
		}
	}
}

// A bit that an error turned holds for what was said before, too.
func TestLearnedChangesAll(t *testing.T) {
	d := dialectOf(t, unknownEndpoint, "m", Options{})
	req := nasty(d.origin("m"))
	before, err := d.encode(req)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(before.body, []byte(`"reasoning_content"`)) {
		t.Fatalf("no reasoning in %s", before.body)
	}
	if e := (apiError{status: 400, message: "property 'reasoning_content' is unsupported"}); !d.learn(e) || d.learn(e) {
		t.Error("it is not learned, or twice")
	}
	after, err := d.encode(req)
	if err != nil || bytes.Contains(after.body, []byte(`"reasoning_content"`)) {
		t.Errorf("%v: %s", err, after.body)
	}
}

// The marks lie on the system message, the last tool, and the last two messages that
// are not the assistant's, and nowhere else.
func TestCacheMarks(t *testing.T) {
	d := dialectOf(t, "litellm", "claude-sonnet-5", Options{})
	mark := []byte(`"cache_control"`)
	ms := talk(20, 10)
	for n := 2; n <= len(ms); n++ {
		c, err := d.encode(Request{Messages: ms[:n], Tools: nasty("").Tools})
		if err != nil {
			t.Fatal(err)
		}
		want := 4
		if n <= 3 { // system, user, assistant: one message is not the assistant's
			want = 3
		}
		if got := bytes.Count(c.body, mark); got != want {
			t.Errorf("%d messages: %d marks, want %d: %s", n, got, want, c.body)
		}
		if n == len(ms) {
			rest := messagesEnd(c.body)[bytes.LastIndex(c.body, []byte(`"role":"user"`)):] // message 19, after the tool's
			if bytes.Count(rest, mark) != 1 {
				t.Errorf("the last user has no mark: %s", rest)
			}
		}
	}
}

// BenchmarkEncode encodes a conversation: its milliseconds are
// small beside the seconds of a model's answer.
func BenchmarkEncode(b *testing.B) {
	for _, n := range []int{20, 200, 800} {
		d := dialectOf(b, "openai", "gpt-5", Options{})
		req := Request{Messages: talk(n, 1500), Tools: nasty("").Tools}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := d.encode(req); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
