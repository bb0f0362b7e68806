package client_test

import (
	"errors"
	"sync"
	"testing"

	"agentteam/pkg/team"
)

// add puts n tasks on the board.
func (r *rig) add(t *testing.T, n int) []team.Task {
	t.Helper()
	tasks := make([]team.NewTask, n)
	for i := range tasks {
		tasks[i].Title = "做 🎯"
	}
	created, err := r.AddTasks(t.Context(), "", tasks...)
	if err != nil {
		t.Fatal(err)
	}
	return created
}

// claim claims a task for a seat.
func (r *rig) claim(t *testing.T, id team.TaskID, as team.AgentID) team.Task {
	t.Helper()
	task, err := r.Claim(t.Context(), id, as)
	if err != nil {
		t.Fatal(err)
	}
	return task
}

// However many terminals claim for a person at once, the seat holds one task.
func TestSeatHoldsOne(t *testing.T) {
	r := newRig(t)
	tasks := r.add(t, 16)
	var wg sync.WaitGroup
	won := make(chan team.TaskID, len(tasks))
	for _, task := range tasks {
		wg.Go(func() {
			_, err := r.Claim(t.Context(), task.ID, "alice")
			switch {
			case err == nil:
				won <- task.ID
			case !errors.Is(err, team.Busy):
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if close(won); len(won) != 1 {
		t.Fatalf("%d claims won, want 1", len(won))
	}
	views, err := r.Tasks(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	held := 0
	for _, v := range views {
		if v.Status == team.InProgress {
			held++
		}
	}
	if held != 1 {
		t.Errorf("the seat holds %d tasks, want 1", held)
	}
	_, err = r.Complete(t.Context(), <-won, "alice", "done")
	wantCode(t, "the seat completes its task", err, "")
}

func TestSeatRights(t *testing.T) {
	r := newRig(t)
	ctx := t.Context()
	first := r.add(t, 1)[0].ID
	created, err := r.AddTasks(ctx, "", team.NewTask{Title: "second", Dependencies: []team.TaskID{first}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.Claim(ctx, created[0].ID, "alice")
	wantCode(t, "a blocked task", err, team.Blocked)
	_, err = r.Claim(ctx, "T-099", "alice")
	wantCode(t, "an unknown task", err, team.NotFound)
	_, err = r.Claim(ctx, first, team.Leader)
	wantCode(t, "in the leader's place", err, team.Unavailable)
	if agents, err := r.Agents(ctx, true); err != nil || len(agents) != 0 {
		t.Errorf("refused claims left seats: %+v, %v", agents, err)
	}
	_, err = r.Claim(ctx, first, "alice")
	wantCode(t, "a free task", err, "")
	_, err = r.Claim(ctx, first, "bob")
	wantCode(t, "a task that another holds", err, team.Conflict)
	_, err = r.Complete(ctx, first, "", "by nobody")
	wantCode(t, "completing without a seat", err, team.PermissionDenied)
	_, err = r.Release(ctx, first, "", "taken back")
	wantCode(t, "a person takes a task back", err, "")
	_, err = r.Complete(ctx, first, "alice", "late")
	wantCode(t, "completing a task that was taken back", err, team.Conflict)
}
