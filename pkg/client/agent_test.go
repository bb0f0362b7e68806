package client_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"agentteam/pkg/agent/control"
	"agentteam/pkg/client"
	"agentteam/pkg/model"
	"agentteam/pkg/store/board"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/store/roster"
	"agentteam/pkg/team"
)

// join makes the record of a member with a process.
func (r *rig) join(t *testing.T) team.Member {
	t.Helper()
	m, err := r.roster.Create(t.Context(), team.Member{Role: "coder", Backend: team.Pool}, roster.Limit{Team: 10})
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
	_, err := r.Board().Claim(t.Context(), "T-001", m.AgentID)
	wantCode(t, "claim for a process that does not answer", err, team.Unavailable)
	if v, err := r.Board().Task(t.Context(), "T-001"); err != nil || v.Status != team.Pending {
		t.Errorf("then the task is %+v, %v", v, err)
	}

	answers := map[team.TaskID]error{"T-001": nil, "T-002": team.Errorf(team.Busy, "at work")}
	stop, err := control.Serve(t.Context(), r.bt.Conn, control.Membership{Team: "t", AgentID: m.AgentID}, control.Handlers{
		Assign: func(_ context.Context, a team.Assignment) (team.Task, error) {
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
	if task, err := r.Board().Claim(t.Context(), "T-001", m.AgentID); err != nil || task.ID != "T-001" || task.Assignee != m.AgentID {
		t.Errorf("the process answered %+v, %v", task, err)
	}
	_, err = r.Board().Claim(t.Context(), "T-002", m.AgentID)
	wantCode(t, "claim for an agent at work", err, team.Busy)
}

// Nobody acts in the name of an agent that has a process, not even on the task
// that it holds.
func TestAgentActsForItself(t *testing.T) {
	r := newRig(t)
	r.add(t, 1)
	m := r.join(t)
	if _, err := board.New(r.bt.Bucket, board.Options{}).Claim(t.Context(), "T-001", m.Holder()); err != nil {
		t.Fatal(err)
	}
	for what, act := range map[string]func() (team.Task, error){
		"release":  func() (team.Task, error) { return r.Board().Release(t.Context(), "T-001", m.AgentID, "") },
		"complete": func() (team.Task, error) { return r.Board().Complete(t.Context(), "T-001", m.AgentID, "done") },
		"fail":     func() (team.Task, error) { return r.Board().Fail(t.Context(), "T-001", m.AgentID, "") },
		"cancel":   func() (team.Task, error) { return r.Board().Cancel(t.Context(), "T-001", m.AgentID, "") },
	} {
		_, err := act()
		wantCode(t, what+" as an agent", err, team.PermissionDenied)
	}
	if v, err := r.Board().Task(t.Context(), "T-001"); err != nil || v.Status != team.InProgress || v.Assignee != m.AgentID {
		t.Errorf("then the task is %+v, %v", v, err)
	}
}

// A member is shown as its process tells; of one that is gone, its journal tells.
func TestAgentsTellWhatTheyAreAt(t *testing.T) {
	r := newRig(t)
	r.add(t, 1)
	m, gone := r.join(t), r.join(t)
	began := time.Now().UTC()
	stop, err := control.Serve(t.Context(), r.bt.Conn, control.Membership{Team: "t", AgentID: m.AgentID}, control.Handlers{
		Ping: func() team.Heartbeat {
			return team.Heartbeat{AgentID: m.AgentID, Incarnation: 1, State: team.Running, Task: "T-001", Tool: "bash", ToolAt: &began, ProgressAt: began,
				Alias: "strong", Model: "big-1", Tokens: 7, Storage: "nothing is stored", Still: int(team.DefaultStall / time.Second)}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	log, _, err := journal.Open(t.Context(), r.bt, gone.AgentID, 1, journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	reply, _ := json.Marshal(model.Reply{Alias: "cheap", Model: "small-1", Usage: model.Usage{PromptTokens: 9}})
	if _, err := log.Append(t.Context(), journal.Record{Kind: journal.Turn, Turn: reply}); err != nil {
		t.Fatal(err)
	}
	if err := r.roster.Leave(t.Context(), gone.AgentID, 1, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Board().Seating("alice").Claim(t.Context(), "T-001", "alice"); err != nil {
		t.Fatal(err)
	}
	agents, err := r.Members().List(t.Context(), true)
	if err != nil || len(agents) != 3 {
		t.Fatalf("%d members, %v", len(agents), err)
	}
	if s, err := r.client.Status(t.Context()); s.Storage != "nothing is stored" {
		t.Errorf("the status says of the storage %q, %v", s.Storage, err)
	}
	if a := agents[0]; a.State != team.Stalled || a.Tool != "bash" || !a.Since.Equal(began) || a.Alias != "strong" || a.Model != "big-1" || a.Tokens != 7 {
		t.Errorf("at work: %+v", a)
	}
	if a := agents[1]; a.State != team.Stopped || a.Turn != 1 || a.Tokens != 9 || a.Alias != "cheap" || a.Model != "small-1" {
		t.Errorf("gone: %+v", a)
	}
	if a := agents[2]; a.Task != "T-001" || a.Since == nil || !client.WorkOf(a).Person {
		t.Errorf("a person: %+v", a)
	}
}
