package client_test

import (
	"strings"
	"testing"

	"agentteam/pkg/event"
	"agentteam/pkg/team"
)

// The timeline of a goal is read from what is stored, also once a next goal is worked on.
func TestTimeline(t *testing.T) {
	r := newRig(t)
	_, err := r.Goals().Timeline(t.Context(), 0)
	wantCode(t, "the timeline of a team that never had a goal", err, team.NotFound)
	if !strings.Contains(err.Error(), "no goal yet") {
		t.Errorf("the timeline of a team that never had a goal: %v", err)
	}
	r.start(t, "migrate")
	m := r.join(t)
	r.add(t, 2)
	log := event.New(r.bt, nil)
	log.Emit(t.Context(), team.Event{AgentID: m.AgentID, RunID: "r1", Event: team.EventBody{Type: team.RunStarted}})
	task, err := r.board.Claim(t.Context(), "T-001", m.Holder())
	if err == nil {
		_, err = r.board.Complete(t.Context(), "T-001", m.Holder(), task.Epoch, team.Done{Summary: "done"})
	}
	if err != nil {
		t.Fatal(err)
	}
	log.Emit(t.Context(), team.Event{AgentID: m.AgentID, RunID: "r1", Event: team.EventBody{Type: team.RunFinished}})
	if _, err := r.Board().Cancel(t.Context(), "T-002", "", ""); err != nil {
		t.Fatal(err)
	}
	got, err := r.Goals().Timeline(t.Context(), 0)
	if err != nil || got.Goal != 1 || !got.Whole || len(got.Lanes) != 1 || len(got.Tasks) != 1 || len(got.Critical) != 1 {
		t.Fatalf("%+v, %v", got, err)
	}
	if l := got.Lanes[0]; l.AgentID != m.AgentID || len(l.Spans) == 0 {
		t.Errorf("the lane is %+v", l)
	}
	if b := got.Tasks[0]; b.Task != "T-001" || b.AgentID != m.AgentID || b.Status != team.Completed || b.To.Before(b.From) {
		t.Errorf("the bar is %+v", b)
	}
	if c := got.Counts[len(got.Counts)-1]; c.Done != 1 || c.Failed != 1 {
		t.Errorf("the last count is %+v", c)
	}

	r.end(t, "migrated")
	r.start(t, "document")
	past, err := r.Goals().Timeline(t.Context(), 1)
	if err != nil || len(past.Tasks) != 1 || !past.To.Equal(*record(t, r.Team).PastGoals[0].EndedAt) {
		t.Errorf("once it has ended: %+v, %v", past, err)
	}
	if next, err := r.Goals().Timeline(t.Context(), 2); err != nil || len(next.Tasks) != 0 || next.Counts[len(next.Counts)-1].Done != 0 {
		t.Errorf("of the next goal: %+v, %v", next, err)
	}
	_, err = r.Goals().Timeline(t.Context(), 7)
	wantCode(t, "the timeline of a goal that never was", err, team.NotFound)
	goals, err := r.Goals().Ended(t.Context())
	if err != nil || len(goals) != 1 || goals[0].Summary != "migrated" || goals[0].Tasks == "" {
		t.Errorf("the goals that have ended: %+v, %v", goals, err)
	}
}
