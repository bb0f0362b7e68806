package engine

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"agentteam/pkg/model"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/tool"
)

// reader is a model that reads on and on. It states each tenth finding in a sentence of its own, and a summary of its has
// all the findings that it is asked with.
type reader struct {
	*rig
	turns, summaries int
	cached, sent     int // tokens
	last             []*model.Message
}

var finding = regexp.MustCompile(`finding \d+ is \d+`)

func findings(messages []*model.Message) map[string]bool {
	found := map[string]bool{}
	for _, m := range messages {
		for _, f := range finding.FindAllString(m.Content, -1) {
			found[f] = true
		}
	}
	return found
}

func (r *reader) Complete(_ context.Context, req model.Request, _ func(string)) (model.Reply, error) {
	equal := true
	for i, m := range req.Messages {
		n := Size(m)
		equal = equal && i < len(r.last) && fmt.Sprint(*r.last[i]) == fmt.Sprint(*m)
		if r.sent += n; equal {
			r.cached += n
		}
	}
	r.last = req.Messages
	reply := model.Reply{Message: model.Message{Role: "assistant"}}
	switch {
	case req.Messages[len(req.Messages)-1].Content == summaryPrompt:
		r.summaries++
		reply.Message.Content = strings.Join(slices.Sorted(maps.Keys(findings(req.Messages))), "\n")
	case r.turns == 300:
		reply.Message.Content = "done"
	default:
		if r.turns++; r.turns%10 == 0 {
			reply.Message.Content = fmt.Sprintf("finding %d is %d", r.turns, r.turns*r.turns)
		}
		reply.Message.ToolCalls = []model.ToolCall{{ID: fmt.Sprint("c", r.turns), Name: "read", Arguments: fmt.Sprintf(`{"path":"pkg/some/folder/file-%d.go"}`, r.turns)}}
	}
	return reply, nil
}

// In a small window old results become markers, and a summary takes the markers out: it is not carried on with them, and
// asked for after each turn.
func TestSummariesAreRare(t *testing.T) {
	for _, window := range []int{12_000, 16_000, 32_000} {
		r := &reader{rig: &rig{t: t, window: window}}
		r.tool = func(context.Context, string) tool.Result {
			return tool.Result{Content: strings.Repeat(fmt.Sprintf("line of part %d of what was read\n", r.turns), 340)}
		}
		r.engine = New(Options{Name: "a", System: "You are a." + strings.Repeat(" Work well.", 900), Model: r, Tools: tools{r.rig}, Journal: r.rig, Owner: r.rig, Store: shelf{},
			Changes: func(context.Context) string { return fmt.Sprintf(" a.go | %d +", r.summaries) }})
		if _, err := r.engine.Run(t.Context(), "read all there is, and never write"); err != nil {
			t.Fatal(err)
		}
		compactions := 0
		for _, rec := range r.records {
			if rec.Kind == journal.Compact {
				compactions++
			}
		}
		t.Logf("window %d: %d summaries, %d compactions, %d tokens, %d %% cached", window, r.summaries, compactions, r.sent, r.cached*100/r.sent)
		if r.summaries > r.turns/15 {
			t.Errorf("window %d: %d summaries in %d turns", window, r.summaries, r.turns)
		}
		if want := fmt.Sprintf("differ from the last commit now:\n a.go | %d +", r.summaries); !strings.Contains(r.last[1].Content, want) {
			t.Errorf("window %d: the changed files are missing in %q", window, Head(r.last[1].Content, 4000))
		}
		if n := len(findings(r.last)); n != 30 || !strings.Contains(r.last[1].Content, "never write") {
			t.Errorf("window %d: %d of 30 findings are known at the end, after %q", window, n, Head(r.last[1].Content, 200))
		}
	}
}

// shelf stores nothing that is read again.
type shelf struct{}

func (shelf) Put(context.Context, string) (string, error) { return "stored:0123", nil }
func (shelf) Get(context.Context, string) (string, error) { return "", nil }

// What was written to a file at length is left out after three turns, however large the window is; what a
// successor makes of the journal becomes the same.
func TestLongArgumentsAreLeftOut(t *testing.T) {
	r := newRig(t)
	r.window = 1_000_000
	long := `{"content":"` + strings.Repeat("some text, ", 2000) + `","path":"a.go"}`
	r.answers = []any{"!write", "!write", "!look1", "!look2", "!look3", "!look4", "done"}
	r.engine = New(Options{Name: "a", System: "You are a.", Model: writer{r, long}, Tools: tools{r}, Journal: r, Owner: r})
	if _, err := r.engine.Run(t.Context(), "go"); err != nil {
		t.Fatal(err)
	}
	for i, req := range r.asked {
		var whole []int
		for k, m := range req.Messages {
			if len(m.ToolCalls) > 0 && m.ToolCalls[0].Arguments == long {
				whole = append(whole, k)
			}
		}
		if want := []int{0, 1, 2, 2, 0, 0, 0}[i]; len(whole) != want {
			t.Errorf("request %d has the whole of messages %v, want %d of them", i+1, whole, want)
		}
	}
	last := r.asked[len(r.asked)-1].Messages
	if got := last[2].ToolCalls[0].Arguments; !strings.Contains(got, "bytes were left out of this conversation") || !strings.Contains(got, `"path":"a.go"`) {
		t.Errorf("the arguments became %s", Head(got, 200))
	}
	folded := NewConversation()
	for _, rec := range r.records {
		if err := folded.Add(rec); err != nil {
			t.Fatal(err)
		}
	}
	folded.leaveWritten(tools{r})
	if got, want := string(JSON(folded.Messages[:len(last)-1])), string(JSON(last[1:])); got != want {
		t.Errorf("a successor's messages are\n%.3000s\nwant\n%.3000s", got, want)
	}
}

// writer is a model whose calls that write have these arguments.
type writer struct {
	*rig
	long string
}

func (w writer) Complete(ctx context.Context, req model.Request, on func(string)) (model.Reply, error) {
	reply, err := w.rig.Complete(ctx, req, on)
	for i, c := range reply.Message.ToolCalls {
		if c.Name == "write" {
			reply.Message.ToolCalls[i].Arguments = w.long
		}
	}
	return reply, err
}
