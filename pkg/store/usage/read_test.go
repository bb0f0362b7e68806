package usage_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"agentteam/pkg/model"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/store/roster"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/store/usage"
	"agentteam/pkg/team"
)

func encoded(t testing.TB, v any) json.RawMessage {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// write opens an agent's journal, appends records to it, and returns the sequence of
// the last.
func write(t testing.TB, bt *broker.Storage, a team.AgentID, records ...journal.Record) (last uint64) {
	t.Helper()
	j, _, err := journal.Open(t.Context(), bt, a, 1, journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		r, err := j.Append(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		last = r.Seq
	}
	return last
}

func turn(t testing.TB, task team.TaskID, prompt int) journal.Record {
	return journal.Record{Kind: journal.Turn, TaskID: task,
		Turn: encoded(t, model.Reply{Alias: "strong", Usage: model.Usage{PromptTokens: prompt, Cost: float64(prompt) / 1000}})}
}

func show(table usage.Table) string {
	var s []string
	for _, row := range table.Rows {
		s = append(s, fmt.Sprintf("%s: %d calls, %d tokens, %d wasted", row.Name, row.Calls, row.Tokens(), row.Wasted()))
	}
	return strings.Join(s, "; ")
}

func TestRead(t *testing.T) {
	bt := brokertest.Team(t, "t")
	members := roster.New(bt)
	for _, m := range []team.Member{{AgentID: "leader", Role: "leader"}, {AgentID: "coder-1", Role: "coder"}} {
		m.State, m.Incarnation = team.Joined, 1
		if _, err := members.Put(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	last := write(t, bt, "leader", turn(t, "", 10))
	write(t, bt, "coder-1", turn(t, "T-001", 100), journal.Record{Kind: journal.Note, Text: "no call"}, turn(t, "T-002", 200),
		journal.Record{Kind: journal.Refused, TaskID: "T-002", Refusal: &journal.Refusal{Usage: encoded(t, model.Usage{WastedPrompt: 50})}})
	write(t, bt, "gone-1", turn(t, "T-001", 1))
	if _, err := bt.Logs.Append(t.Context(), subject.Log("t", "bad-1"), []byte("nonsense"), 0); err != nil {
		t.Fatal(err)
	}
	for by, want := range map[usage.By]string{
		usage.ByAgent: "coder-1: 3 calls, 300 tokens, 50 wasted; leader: 1 calls, 10 tokens, 0 wasted; gone-1: 1 calls, 1 tokens, 0 wasted",
		usage.ByRole:  "coder: 3 calls, 300 tokens, 50 wasted; leader: 1 calls, 10 tokens, 0 wasted; : 1 calls, 1 tokens, 0 wasted",
		usage.ByAlias: "strong: 4 calls, 311 tokens, 0 wasted; : 1 calls, 0 tokens, 50 wasted",
		usage.ByTask:  "T-002: 2 calls, 200 tokens, 50 wasted; T-001: 2 calls, 101 tokens, 0 wasted; : 1 calls, 10 tokens, 0 wasted",
	} {
		table, err := usage.Read(t.Context(), bt, 1, 0, by)
		if got := show(table); err != nil || got != want {
			t.Errorf("by %s: %s, %v; want\n%s", by, got, err, want)
		}
	}
	if table, err := usage.Read(t.Context(), bt, last+1, 0, usage.ByAgent); err != nil || table.Total.Tokens() != 301 {
		t.Errorf("after the leader's call %d tokens were used, %v; want 301", table.Total.Tokens(), err)
	}
	if table, err := usage.Read(t.Context(), bt, 1, last+1, usage.ByAgent); err != nil || table.Total.Tokens() != 10 {
		t.Errorf("up to the leader's call %d tokens were used, %v; want 10", table.Total.Tokens(), err)
	}
}

// A team that has worked for days: 100,000 records, as a long run leaves them.
func BenchmarkRead(b *testing.B) {
	const agents, each = 10, 10_000
	bt := brokertest.Team(b, "t")
	var wg sync.WaitGroup
	text := strings.Repeat("a line of output, as tools print it\n", 50)
	for i := range agents {
		wg.Go(func() {
			a := team.AgentID(fmt.Sprintf("coder-%d", i+1))
			records := make([]journal.Record, each-1) // and its start
			for n := range records {
				records[n] = journal.Record{Kind: journal.Result, Result: &journal.ToolResult{Name: "bash", Content: text}}
				if n%2 == 0 {
					records[n] = turn(b, "T-001", 1000)
				}
			}
			write(b, bt, a, records...)
		})
	}
	wg.Wait()
	for b.Loop() {
		table, err := usage.Read(b.Context(), bt, 1, 0, usage.ByAgent)
		if err != nil || table.Total.Calls != agents*each/2 {
			b.Fatalf("%d calls, %v", table.Total.Calls, err)
		}
	}
	b.ReportMetric(float64(b.N)*agents*each/b.Elapsed().Seconds(), "records/s")
}

// What members did is told also of those who are gone: their turns, tokens and last model.
func TestMembers(t *testing.T) {
	bt := brokertest.Team(t, "t")
	last := journal.Record{Kind: journal.Turn, Turn: encoded(t, model.Reply{Alias: "cheap", Model: "small-1", Usage: model.Usage{PromptTokens: 5, CompletionTokens: 2}})}
	refused := journal.Record{Kind: journal.Refused, Refusal: &journal.Refusal{Alias: "strong", Cause: "wrong key"}}
	write(t, bt, "coder-1", turn(t, "T-001", 100), last, refused)
	write(t, bt, "coder-2", refused)
	pasts, err := usage.Members(t.Context(), bt)
	if err != nil {
		t.Fatal(err)
	}
	if p := pasts["coder-1"]; p.Turns != 2 || p.Tokens() != 107 || p.Calls != 3 || p.Alias != "cheap" || p.Model != "small-1" {
		t.Errorf("coder-1: %+v", p)
	}
	if p := pasts["coder-2"]; p.Turns != 0 || p.Calls != 1 {
		t.Errorf("coder-2: %+v", p)
	}
	if one, err := usage.Members(t.Context(), bt, "coder-1"); err != nil || len(one) != 1 || one["coder-1"].Turns != 2 {
		t.Errorf("of coder-1 alone: %+v, %v", one, err)
	}
}
