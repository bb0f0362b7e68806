package model_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"agentteam/pkg/agent/engine"
	"agentteam/pkg/model"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/tool"
)

// readsOn is an agent that reads 60 files over the Messages wire: its journal, its tools, and what carries its requests.
type readsOn struct {
	*model.Client
	plain     bool // results stay until they are summed up
	compacted int
	summary   atomic.Bool // the request under way asks for a summary
	back      []int       // thoughts that went back with each request
	count     func() model.AnthropicCount
}

func (r *readsOn) RoundTrip(q *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(q.Body)
	if err != nil {
		return nil, err
	}
	q.Body = io.NopCloser(bytes.NewReader(body))
	r.summary.Store(bytes.Contains(body, []byte("Write a handover so that you can continue from it alone")))
	resp, err := http.DefaultTransport.RoundTrip(q)
	r.back = append(r.back, r.count().Thoughts)
	return resp, err
}

func (r *readsOn) Append(_ context.Context, rec journal.Record) (journal.Record, error) {
	if rec.Kind == journal.Compact {
		r.compacted++
	}
	return rec, nil
}

func (r *readsOn) Enqueue(ctx context.Context, rec journal.Record) journal.Record {
	rec, _ = r.Append(ctx, rec)
	return rec
}

func (r *readsOn) Flush() error                         { return nil }
func (r *readsOn) Limits(string) model.Limits           { return r.Client.Limits() }
func (r *readsOn) Meant(name string) (alias, of string) { return name, "m" }
func (r *readsOn) Specs() []tool.Spec                   { return []tool.Spec{{Name: "read"}} }
func (r *readsOn) Traits(string) tool.Traits {
	return tool.Traits{ReadOnly: true, Yields: true, Bulky: !r.plain, Reads: []string{"path"}}
}
func (r *readsOn) TraitsOf(tool.Call) tool.Traits { return r.Traits("") }
func (r *readsOn) Run(context.Context, tool.Call) tool.Result {
	return tool.Result{Content: strings.Repeat("a line of what was read\n", 500)}
}

// Compactions change what stands before later thoughts, which newer models refuse. Over 60 turns with markers and a
// summary nothing is refused, thoughts go back again from the next turn on, and nine tenths are read from the cache.
func TestMessagesAcrossCompactions(t *testing.T) {
	for name, want := range map[string]bool{"markers": false, "summaries": true} {
		t.Run(name, func(t *testing.T) {
			r := &readsOn{plain: want}
			turns, summaries := 0, 0
			fake := model.NewAnthropic(t, func(n int) []map[string]any {
				thought := map[string]any{"type": "thinking", "thinking": fmt.Sprintf("thought %d", n)}
				if r.summary.Load() {
					summaries++
					return []map[string]any{thought, {"type": "text", "text": "I read on. " + strings.Repeat("It is known. ", 50)}}
				}
				if turns++; turns > 60 {
					return []map[string]any{thought, {"type": "text", "text": "done"}}
				}
				return []map[string]any{thought, {"type": "tool_use", "id": fmt.Sprint("toolu_", n), "name": "read", "input": map[string]any{"path": fmt.Sprintf("%d.go", n)}}}
			})
			r.count = fake.Count
			r.Client = client(t, model.Options{BaseURL: fake.URL, Profile: "anthropic", Model: "claude-opus-5-5", APIKey: "k", Attempts: 1, Window: 120_000, Transport: r})
			e := engine.New(engine.Options{Name: "a", System: strings.Repeat("You are a. ", 900), Model: r, Tools: r, Journal: r})
			if text, err := e.Run(t.Context(), "read all there is"); text != "done" || err != nil {
				t.Fatalf("%q, %v", text, err)
			}
			c := fake.Count()
			t.Logf("%d requests, %d compactions, %d summaries, %d of %d tokens read from the cache, %d rewrites, thoughts %v", c.Asked, r.compacted, summaries, c.Read, c.All, c.Rewrites, r.back)
			if len(c.Refused) > 0 || r.compacted == 0 || (summaries > 0) != want {
				t.Errorf("refused %q; %d compactions, %d summaries", c.Refused, r.compacted, summaries)
			}
			if last := r.back[len(r.back)-1]; last < 2 || slices.Max(r.back[:20]) < 10 {
				t.Errorf("thoughts went back with the requests as %v", r.back)
			}
			if c.Read*100 < c.All*90 {
				t.Errorf("%d of %d tokens read from the cache", c.Read, c.All)
			}
		})
	}
}
