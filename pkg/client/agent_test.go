package client_test

import (
	"context"
	"encoding/json"
	"testing"

	"agentteam/pkg/board"
	"agentteam/pkg/control"
	"agentteam/pkg/subject"
	"agentteam/pkg/team"
)

// join makes the record of a member with a process.
func (r *rig) join(t *testing.T) team.Member {
	t.Helper()
	m, err := r.roster.Create(t.Context(), team.Member{Role: "coder", Backend: team.Pool}, 10)
	if err != nil {
		t.Fatal(err)
	}
	m.State = team.Joined
	if m, err = r.roster.Put(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	return m
}

// An agent with a process is asked for a claim, and its answer is the outcome.
func TestClaimForAgent(t *testing.T) {
	r := newRig(t)
	r.add(t, 2)
	m := r.join(t)
	_, err := r.Claim(t.Context(), "T-001", m.AgentID)
	wantCode(t, "claim for a process that does not answer", err, team.Unavailable)
	if v, err := r.Task(t.Context(), "T-001"); err != nil || v.Status != team.Pending {
		t.Errorf("then the task is %+v, %v", v, err)
	}

	answers := map[team.TaskID]error{"T-001": nil, "T-002": team.Errorf(team.Busy, "at work")}
	stop, err := control.Serve(t.Context(), r.bt.Conn, control.Membership{Team: "t", AgentID: m.AgentID}, map[subject.Verb]control.Handler{
		subject.Assign: func(_ context.Context, data []byte) (any, error) {
			var a team.Assignment
			if err := json.Unmarshal(data, &a); err != nil {
				return nil, err
			}
			return team.Task{ID: a.Task, Assignee: m.AgentID}, answers[a.Task]
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if err := r.bt.Conn.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if task, err := r.Claim(t.Context(), "T-001", m.AgentID); err != nil || task.ID != "T-001" || task.Assignee != m.AgentID {
		t.Errorf("the process answered %+v, %v", task, err)
	}
	_, err = r.Claim(t.Context(), "T-002", m.AgentID)
	wantCode(t, "claim for an agent at work", err, team.Busy)
}

// Nobody acts in the name of an agent that has a process, not even on the task
// that it holds.
func TestAgentActsForItself(t *testing.T) {
	r := newRig(t)
	r.add(t, 1)
	m := r.join(t)
	if _, err := board.New(r.bt, board.Options{}).Claim(t.Context(), "T-001", m.Holder()); err != nil {
		t.Fatal(err)
	}
	for what, act := range map[string]func() (team.Task, error){
		"release":  func() (team.Task, error) { return r.Release(t.Context(), "T-001", m.AgentID, "") },
		"complete": func() (team.Task, error) { return r.Complete(t.Context(), "T-001", m.AgentID, "done") },
		"fail":     func() (team.Task, error) { return r.Fail(t.Context(), "T-001", m.AgentID, "") },
		"cancel":   func() (team.Task, error) { return r.Cancel(t.Context(), "T-001", m.AgentID, "") },
	} {
		_, err := act()
		wantCode(t, what+" as an agent", err, team.PermissionDenied)
	}
	if v, err := r.Task(t.Context(), "T-001"); err != nil || v.Status != team.InProgress || v.Assignee != m.AgentID {
		t.Errorf("then the task is %+v, %v", v, err)
	}
}
