package state

import (
	"fmt"
	"testing"

	"agentteam/pkg/store/feed"
	"agentteam/pkg/team"
)

// A reader that follows a team for weeks keeps neither each run nor each call without a result;
// what comes late of a run that has just ended is still known as late.
func TestOldRunsAreForgotten(t *testing.T) {
	s := New()
	tell := func(run string, b team.EventBody) []Change {
		return s.Apply(feed.Entry{Event: team.Event{AgentID: "a", RunID: run, Event: b}})
	}
	const runs = 5 * mostOver
	for i := range runs {
		run := fmt.Sprint("r", i)
		tell(run, team.EventBody{Type: team.RunStarted})
		tell(run, team.EventBody{Type: team.ToolCallChunk, ToolCallID: fmt.Sprint("c", i), ToolCallName: "bash"})
		tell(run, team.EventBody{Type: team.RunError})
	}
	if len(s.runs) > mostOver || len(s.over) > mostOver || len(s.calls["a"]) > 1 {
		t.Errorf("%d runs and %d calls are kept", len(s.runs), len(s.calls["a"]))
	}
	changes := tell("", team.EventBody{Type: team.ToolCallResult, ToolCallID: fmt.Sprint("c", runs-1), Content: "late"})
	if len(changes) == 0 {
		t.Fatal("a late result changes nothing")
	}
	if c, ok := changes[0].(CallEnded); !ok || !c.Late || c.Call == nil || c.RunID != fmt.Sprint("r", runs-1) {
		t.Errorf("a late result is %+v", changes[0])
	}
}
