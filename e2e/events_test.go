package e2e

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
)

// What a program has read of a team's events, another goes on with by its cursor, at
// whatever place; and everything comes in the order of cause.
func TestEventsGoOn(t *testing.T) {
	t.Parallel()
	c := up(t, loneScript, 0)
	c.ok("run", "go")
	read := func(args ...string) (all []client.Entry) {
		t.Helper()
		for line := range strings.Lines(c.ok(append([]string{"events", "-o", "jsonl"}, args...)...)) {
			var e client.Entry
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			all = append(all, e)
		}
		return all
	}
	whole := read()
	cursors := func(all []client.Entry) (out []client.Cursor) {
		for _, e := range all {
			out = append(out, e.Cursor)
		}
		return out
	}
	for i := 0; i < len(whole); i += 3 {
		rest, want := read("--after", string(whole[i].Cursor)), whole[i+1:] // and what the leader's process has told since
		if len(rest) < len(want) || !slices.Equal(cursors(rest[:len(want)]), cursors(want)) {
			t.Errorf("after entry %d of %d come %d", i, len(whole), len(rest))
		}
	}
	var order []team.EventType
	for _, e := range whole {
		typ := e.Event.Event.Type
		if e.AgentID != team.Watchdog && !strings.HasPrefix(string(typ), "RUN_") && !strings.HasPrefix(string(typ), "MEMBER_") { // of the process; what the watchdog tells may come in between
			order = append(order, typ)
		}
	}
	want := []team.EventType{
		team.MailSent,
		team.ToolCallChunk, team.TaskCreated, team.ToolCallResult,
		team.ToolCallChunk, team.TaskCancelled, team.ToolCallResult,
		team.ToolCallChunk, team.ToolCallResult,
	}
	if !slices.Equal(order, want) {
		t.Errorf("the events are %v, want %v", order, want)
	}
	if calls := read("--type", "tool_call_chunk", "--agent", "leader"); len(calls) != 3 {
		t.Errorf("%d calls of the leader, want 3", len(calls))
	}
}
