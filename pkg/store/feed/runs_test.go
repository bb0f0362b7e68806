package feed

import (
	"fmt"
	"slices"
	"testing"

	"agentteam/pkg/team"
)

// ran stores that a run of an agent has begun, or has ended.
func (r *rig) ran(a team.AgentID, run string, typ team.EventType) {
	r.t.Helper()
	r.log.Emit(r.t.Context(), team.Event{AgentID: a, RoleName: "coder", RunID: run, Event: team.EventBody{Type: typ}})
}

// Every run ends once, also that of a member which was stopped, was lost or whose process was
// replaced at work; and whoever goes on at any place is told the same.
func TestEveryRunEnds(t *testing.T) {
	r := newRig(t)
	r.member("coder-1", team.Joined, "")
	r.ran("coder-1", "a", team.RunStarted)
	r.member("coder-1", team.Lost, "")
	r.member("coder-1", team.Stopped, "") // no second end
	r.member("coder-1", team.Joined, "")
	r.ran("coder-1", "b", team.RunStarted)
	r.ran("coder-1", "c", team.RunStarted) // of another process
	r.ran("coder-1", "c", team.RunFinished)
	r.ran("leader", "d", team.RunStarted)
	r.ran("coder-1", "e", team.RunStarted)
	r.member("coder-1", team.Stopped, "")
	r.ran("leader", "d", team.RunError)
	r.member("coder-1", team.Joined, "")
	r.member("coder-1", team.Stopped, "")
	brief := func(all []Entry) (out []string) {
		for _, e := range all {
			s := string(e.AgentID) + " " + string(e.Event.Event.Type) + " " + e.RunID
			if e.Event.Event.Code != "" {
				s += " " + e.Event.Event.Code
			}
			out = append(out, s)
		}
		return out
	}
	want := []string{
		"coder-1 MEMBER_JOINED ", "coder-1 RUN_STARTED a", "coder-1 RUN_ERROR a stopped", "coder-1 MEMBER_LOST ", "coder-1 MEMBER_STOPPED ",
		"coder-1 MEMBER_JOINED ", "coder-1 RUN_STARTED b", "coder-1 RUN_ERROR b stopped", "coder-1 RUN_STARTED c", "coder-1 RUN_FINISHED c",
		"leader RUN_STARTED d", "coder-1 RUN_STARTED e", "coder-1 RUN_ERROR e stopped", "coder-1 MEMBER_STOPPED ", "leader RUN_ERROR d",
		"coder-1 MEMBER_JOINED ", "coder-1 MEMBER_STOPPED ",
	}
	all := r.past(Options{})
	if got := brief(all); !slices.Equal(got, want) {
		t.Fatalf("told is\n%q, want\n%q", got, want)
	}
	for i, e := range all {
		if got := brief(r.past(Options{After: e.Cursor})); !slices.Equal(got, want[i+1:]) {
			t.Errorf("behind %s: %q, want %q", want[i], got, want[i+1:])
		}
	}
}

// However many subagents have run, a reader knows of those only that have not ended. What is left open ends
// with its owner.
func TestRunsOfSubagentsAreForgotten(t *testing.T) {
	v := &view{runs: runs{open: map[team.AgentID]string{}, whole: true}}
	see := func(a team.AgentID, run string, typ team.EventType) []team.Event {
		told, err := v.ran(t.Context(), team.Event{AgentID: a, RunID: run, Event: team.EventBody{Type: typ}}, 1)
		if err != nil {
			t.Fatal(err)
		}
		return told
	}
	see("coder-1", "r1", team.RunStarted)
	for i, end := range []team.EventType{team.RunFinished, team.RunError} {
		sub := team.Subagent("coder-1", fmt.Sprintf("a00000%d", i))
		see(sub, "s", team.RunStarted)
		see(sub, "s", end)
	}
	see("coder-1.a00000f", "s9", team.RunStarted)
	if len(v.runs.open) != 2 {
		t.Errorf("it knows of %v", v.runs.open)
	}
	told := see("coder-1", "r2", team.RunStarted)
	if len(told) != 3 || told[0].AgentID != "coder-1.a00000f" || told[0].RunID != "s9" || told[1].RunID != "r1" || len(v.runs.open) != 1 {
		t.Errorf("the owner's next run shows %+v; it knows of %v", told, v.runs.open)
	}
}
