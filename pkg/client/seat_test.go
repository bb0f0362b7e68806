package client_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"agentteam/pkg/agent/control"
	"agentteam/pkg/store/board"
	"agentteam/pkg/team"
)

// add puts n tasks on the board.
func (r *rig) add(t *testing.T, n int) []team.Task {
	t.Helper()
	tasks := make([]team.NewTask, n)
	for i := range tasks {
		tasks[i].Title = "做 🎯"
	}
	created, _, err := r.Board().Add(t.Context(), "", tasks...)
	if err != nil {
		t.Fatal(err)
	}
	return created
}

// claim claims a task for a seat.
func (r *rig) claim(t *testing.T, id team.TaskID, as team.AgentID) team.Task {
	t.Helper()
	task, err := r.Board().Seating(as).Claim(t.Context(), id, as)
	if err != nil {
		t.Fatal(err)
	}
	return task
}

func TestSeatRights(t *testing.T) {
	r := newRig(t)
	ctx := t.Context()
	first := r.add(t, 1)[0].ID
	created, _, err := r.Board().Add(ctx, "", team.NewTask{Title: "second", Dependencies: []team.TaskID{first}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.Board().Seating("alice").Claim(ctx, created[0].ID, "alice")
	wantCode(t, "a blocked task", err, team.Blocked)
	_, err = r.Board().Seating("alice").Claim(ctx, "T-099", "alice")
	wantCode(t, "an unknown task", err, team.NotFound)
	_, err = r.Board().Claim(ctx, first, team.Leader)
	wantCode(t, "in the leader's place", err, team.Unavailable)
	if agents, err := r.Members().List(ctx, true); err != nil || len(agents) != 0 {
		t.Errorf("refused claims left seats: %+v, %v", agents, err)
	}
	_, err = r.Board().Seating("alice").Claim(ctx, first, "alice")
	wantCode(t, "a free task", err, "")
	_, err = r.Board().Seating("bob").Claim(ctx, first, "bob")
	wantCode(t, "a task that another holds", err, team.Conflict)
	_, err = r.Board().Complete(ctx, first, "", "by nobody")
	wantCode(t, "completing without a seat", err, team.PermissionDenied)
	_, err = r.Board().Release(ctx, first, "", "taken back")
	wantCode(t, "a person takes a task back", err, "")
	_, err = r.Board().Complete(ctx, first, "alice", "late")
	wantCode(t, "completing a task that was taken back", err, team.Conflict)
	_, err = r.Board().Seating("bob").Claim(ctx, first, "bob")
	wantCode(t, "what was put back", err, "")
	for what, do := range map[string]func() error{
		"completing": func() error { _, err := r.Board().Complete(ctx, first, "alice", "late"); return err },
		"releasing":  func() error { _, err := r.Board().Release(ctx, first, "alice", ""); return err },
		"failing":    func() error { _, err := r.Board().Fail(ctx, first, "alice", ""); return err },
	} {
		err := do()
		wantCode(t, what+" a task that another has taken since", err, team.Conflict)
		if err == nil || !strings.Contains(err.Error(), "it is held by bob") {
			t.Errorf("%s a task that another has taken since: %v", what, err)
		}
	}
	created, _, err = r.Board().Add(ctx, "", team.NewTask{Title: "third"})
	if err != nil {
		t.Fatal(err)
	}
	r.claim(t, created[0].ID, "carol")
	_, err = r.Board().Complete(ctx, first, "carol", "by a stranger")
	wantCode(t, "completing a task that one never held", err, team.PermissionDenied)
}

// made says whether there is a member of this name, in whatever state.
func (r *rig) made(t *testing.T, name team.AgentID) bool {
	t.Helper()
	_, err := r.roster.Get(t.Context(), name)
	if err != nil && !errors.Is(err, team.NotFound) {
		t.Fatal(err)
	}
	return err == nil
}

// A free task waits for a member that is busy; one that is held does not, nor does a claim.
// Of a member that is busy it is not said so if there is no such task, and what is said is meant
// for the person who asked.
// A blocked task is reserved for a person whose seat is not there yet, as for any member; no other gets it, and
// the person takes it once it can be begun.
func TestAssignBlockedToPerson(t *testing.T) {
	r := newRig(t)
	ctx := t.Context()
	first := r.add(t, 1)[0].ID
	created, _, err := r.Board().Add(ctx, "", team.NewTask{Title: "Sign off", Dependencies: []team.TaskID{first}})
	if err != nil {
		t.Fatal(err)
	}
	id := created[0].ID
	for i, seated := range []bool{true, false} { // the second time the seat is there
		task, made, err := r.Board().Seating("alice").Assign(ctx, id, "alice")
		if err != nil || task.ReservedFor != "alice" || task.Status != team.Pending || made != seated {
			t.Fatalf("assignment %d: %+v, seated %v, %v", i, task, made, err)
		}
	}
	_, _, err = r.Board().Assign(ctx, id, "bob")
	wantCode(t, "without a seat", err, team.NotFound)
	r.claim(t, first, "carol")
	if _, err := r.Board().Complete(ctx, first, "carol", "done"); err != nil {
		t.Fatal(err)
	}
	_, err = r.Board().Seating("bob").Claim(ctx, id, "bob")
	wantCode(t, "by another", err, team.Conflict)
	if task := r.claim(t, id, "alice"); task.Assignee != "alice" {
		t.Errorf("claimed: %+v", task)
	}
}

func TestAssignToBusyAgent(t *testing.T) {
	r := newRig(t)
	id := r.add(t, 1)[0].ID
	m := r.join(t)
	stop, err := control.Serve(t.Context(), r.bt.Conn, control.Membership{Team: "t", AgentID: m.AgentID}, control.Handlers{
		Assign: func(context.Context, team.Assignment) (team.Task, error) {
			return team.Task{}, team.Errorf(team.Busy, "%s already holds T-005 (x)", m.AgentID).WithHint("complete or release it first")
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	if err := r.bt.Conn.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	task, _, err := r.Board().Assign(t.Context(), id, m.AgentID)
	if err != nil || task.Status != team.Pending || task.ReservedFor != m.AgentID {
		t.Errorf("a free task: %+v, %v", task, err)
	}
	if task, _, err = r.Board().Seating("bob").Assign(t.Context(), id, "bob"); err != nil || task.Assignee != "bob" { // who has decided anew
		t.Errorf("the same to a person: %+v, %v", task, err)
	}
	_, err = r.Board().Claim(t.Context(), id, m.AgentID)
	wantCode(t, "a claim in its name", err, team.Busy)
	_, _, err = r.Board().Assign(t.Context(), id, m.AgentID)
	wantCode(t, "a task that is held", err, team.Busy)
	if hint := team.HintOf(err); !strings.Contains(hint, "choose another member") || err.Error() != "coder-1 already holds T-005 (x)" {
		t.Errorf("a task: %v, hint %q", err, hint)
	}
	_, _, err = r.Board().Assign(t.Context(), "T-099", m.AgentID)
	wantCode(t, "no task", err, team.NotFound)
}

// What an assignment returns is the task as it is afterwards.
func TestAssignedTask(t *testing.T) {
	r := newRig(t)
	id := r.add(t, 1)[0].ID
	r.claim(t, id, "bob")
	if _, err := r.Board().Release(t.Context(), id, "", "an old reason"); err != nil {
		t.Fatal(err)
	}
	m := r.join(t)
	hand := board.NewClaimSlot(t.Context(), r.board, m.Holder())
	stop, err := control.Serve(t.Context(), r.bt.Conn, control.Membership{Team: "t", AgentID: m.AgentID}, control.Handlers{
		Assign: func(ctx context.Context, a team.Assignment) (team.Task, error) {
			task, _, err := hand.Assign(ctx, a)
			return task, err
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	if err := r.bt.Conn.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	task, _, err := r.Board().Assign(t.Context(), id, m.AgentID)
	now, gerr := r.board.Get(t.Context(), id)
	if err != nil || gerr != nil || task.Reason != "" || task.Revision != now.Revision || !task.HeldBy(m.Holder()) {
		t.Errorf("assigned %+v, %v; want %+v, %v", task, err, now, gerr)
	}
}
