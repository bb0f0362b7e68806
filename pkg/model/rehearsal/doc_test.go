package rehearsal

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// The example of the reference must work as printed: here it is played by two
// agents whose tools are answered by hand.
func TestExampleOfTheReference(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/rehearsal.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindSubmatch(doc)
	if block == nil {
		t.Fatal("the reference has no example")
	}
	s, err := Parse("docs/rehearsal.md", block[1])
	if err != nil {
		t.Fatal(err)
	}

	lead := &actor{script: s, who: asker{"leader", "leader", "default"}}
	lead.hears("<mail from=\"user\">\nPlease count the Go files in /src/it's 项目\n</mail>")
	lead.calls(t, `spawn_teammate {"name":"scout-1","role":"coder"}`)
	lead.answered(`{"agent_id":"scout-1","role":"explorer"}`)
	lead.calls(t, `send_message {"content":"How many Go files are in /src/it's 项目?","to":"scout-1"}`)
	lead.answered(`{"message_id":"m1","delivered_to":["scout-1"]}`)
	lead.says(t, "Waiting for the answer.")

	scout := &actor{script: s, who: asker{"scout-1", "explorer", "default"}}
	scout.hears("<note>hello</note>")
	scout.says(t, "Nothing to do.")
	scout.hears("<mail from=\"leader\">\nHow many Go files are in /src/it's 项目?\n</mail>")
	scout.calls(t, `bash {"command":"find '/src/it'\\''s 项目' -name \"*.go\" | wc -l"}`)
	scout.answered("17\n")
	scout.calls(t, `send_message {"content":"There are 17 Go files.","to":"leader"}`)
	scout.answered(`{"message_id":"m2","delivered_to":["leader"]}`)
	scout.says(t, "Answered.")

	lead.hears("<mail from=\"scout-1\">\nThere are 17 Go files.\n</mail>")
	last := lead.calls(t, `finish_team {"summary":"/src/it's 项目 holds 17 Go files."}`)
	if last.fault == nil || last.fault.Status != 429 {
		t.Errorf("fault = %+v, want status 429", last.fault)
	}
	lead.answered(`{"summary":"done"}`)
	lead.says(t, "(nothing in the script for leader)")
}

// actor is an agent whose conversation grows by hand.
type actor struct {
	script *Script
	who    asker
	conv   []message
}

func (a *actor) hears(text string) { a.conv = append(a.conv, message{Role: "user", Content: text}) }

// answered gives a result to each call of the last turn.
func (a *actor) answered(results ...string) {
	for i, c := range a.conv[len(a.conv)-1].ToolCalls {
		a.conv = append(a.conv, message{Role: "tool", ToolCallID: c.ID, Content: results[i]})
	}
}

// turn plays the next turn and adds it to the conversation.
func (a *actor) turn(t *testing.T) turn {
	t.Helper()
	next, err := a.script.next(a.who, a.conv)
	if err != nil {
		t.Fatal(err)
	}
	a.conv = append(a.conv, message{Role: "assistant", Content: next.text, ToolCalls: next.calls})
	return next
}

// calls wants the next turn to be these calls, each "tool arguments".
func (a *actor) calls(t *testing.T, want ...string) turn {
	t.Helper()
	next := a.turn(t)
	var got []string
	for _, c := range next.calls {
		got = append(got, c.Function.Name+" "+c.Function.Arguments)
	}
	if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
		t.Fatalf("turn of %s (text %q) calls\n%s\nwant\n%s", a.who.name, next.text, g, w)
	}
	return next
}

// says wants the next turn to be this text and no calls.
func (a *actor) says(t *testing.T, want string) {
	t.Helper()
	if next := a.turn(t); next.text != want || len(next.calls) > 0 {
		t.Fatalf("turn of %s = %q with %d calls, want %q", a.who.name, next.text, len(next.calls), want)
	}
}
