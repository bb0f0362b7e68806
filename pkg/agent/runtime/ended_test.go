package runtime

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"agentteam/pkg/store/audit"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/store/roster"
	"agentteam/pkg/team"
	"agentteam/pkg/tool/job"
)

// The journals of subagents that have ended are removed after their time: by their owner and, of members
// that have left, by the leader. The audit still has what they did.
func TestJournalsOfSubagentsAreRemoved(t *testing.T) {
	t.Parallel()
	bt := brokertest.Team(t, "t")
	r := roster.New(bt)
	jobs := job.New(job.Options{})
	defer jobs.Close()
	works, err := jobs.Begin(team.Job{Kind: team.JobSubagent}, func(ctx context.Context, _ *job.Job) string { <-ctx.Done(); return "ended" })
	if err != nil {
		t.Fatal(err)
	}
	for a, state := range map[team.AgentID]team.MemberState{"coder-1": team.Joined, "coder-2": team.Stopped, "coder-3": team.Lost} {
		if _, err := r.Put(t.Context(), team.Member{AgentID: a, Role: "coder", State: state, Incarnation: 1}); err != nil {
			t.Fatal(err)
		}
	}
	write := func(a team.AgentID) {
		j, _, err := journal.Open(t.Context(), bt, a, 1, journal.Options{})
		if err != nil {
			t.Fatal(err)
		}
		turn := []byte(`{"message":{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"grep","arguments":"{}"}}]}}`)
		for _, rec := range []journal.Record{{Kind: journal.Turn, Turn: turn}, {Kind: journal.Result, Result: &journal.ToolResult{CallID: "c1", Name: "grep", Content: "none"}}} {
			if _, err := j.Append(t.Context(), rec); err != nil {
				t.Fatal(err)
			}
		}
	}
	there := func() (all []string) {
		err := journal.Each(t.Context(), bt, 1, func(r journal.Record) error { all = append(all, string(r.Agent)); return nil })
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(all)
		return slices.Compact(all)
	}
	audited := func() string {
		entries, err := audit.Read(t.Context(), bt, audit.Query{Tool: "grep"})
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(len(entries))
	}
	for _, a := range []team.AgentID{"coder-1", "coder-1.a000001", team.Subagent("coder-1", works.ID), "coder-2", "coder-2.a000002", "coder-3.a000003"} {
		write(a)
	}
	before := audited()
	for _, tt := range []struct {
		by   team.AgentID
		keep time.Duration
		want []string
	}{
		{"coder-1", time.Hour, []string{"coder-1", "coder-1.a000001", "coder-1." + works.ID, "coder-2", "coder-2.a000002", "coder-3.a000003"}},
		{"coder-1", time.Nanosecond, []string{"coder-1", "coder-1." + works.ID, "coder-2", "coder-2.a000002", "coder-3.a000003"}},
		{team.Leader, time.Nanosecond, []string{"coder-1", "coder-1." + works.ID, "coder-2", "coder-3.a000003"}},
	} {
		m := &member{Options: Options{Team: bt, Member: team.Member{AgentID: tt.by}, KeepTranscripts: tt.keep, Logger: slog.New(slog.DiscardHandler)}, roster: r, jobs: jobs}
		m.removeEnded(t.Context())
		slices.Sort(tt.want)
		if got := there(); !slices.Equal(got, tt.want) {
			t.Errorf("%s, after %v: %q, want %q", tt.by, tt.keep, got, tt.want)
		}
		if after := audited(); after != before || after != "6" {
			t.Errorf("%s, after %v: the audit has %s calls, and had %s", tt.by, tt.keep, after, before)
		}
	}
}
