package seat_test

import (
	"errors"
	"sync"
	"testing"

	"agentteam/pkg/team"
)

// However many terminals claim for a seat at once, one claim goes in and the
// others are told that the seat is busy, whether it was there before or not.
func TestSeatRace(t *testing.T) {
	for name, prepare := range map[string]func(*testing.T, *rig){
		"new seat": func(*testing.T, *rig) {},
		"seat that is there": func(t *testing.T, r *rig) {
			id := r.add(t, 1)[0].ID
			r.claim(t, id, "alice")
			wantCode(t, "completing it", r.complete(t, id, "alice"), "")
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			prepare(t, r)
			tasks := r.add(t, 16)
			won := make(chan team.TaskID, len(tasks))
			var wg sync.WaitGroup
			for _, task := range tasks {
				wg.Go(func() {
					if _, err := r.take(t, task.ID, "alice"); err == nil {
						won <- task.ID
					} else {
						wantCode(t, "claim of "+string(task.ID), err, team.Busy)
					}
				})
			}
			wg.Wait()
			held := r.held(t, "alice")
			if len(held) != 1 || len(won) != 1 {
				t.Fatalf("%v are in progress, %d claims went in; want one of each", held, len(won))
			}
			id := <-won
			if id != held[0] {
				t.Errorf("the claim of %s went in, %s is in progress", id, held[0])
			}
			wantCode(t, "the seat completes its task", r.complete(t, id, "alice"), "")
		})
	}
}

// Terminals of one seat that claim the same task do not stand in each other's way.
func TestSeatClaimsTogether(t *testing.T) {
	r := newRig(t)
	id := r.add(t, 1)[0].ID
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			task, err := r.take(t, id, "alice")
			wantCode(t, "claim", err, "")
			if err == nil && (task.Assignee != "alice" || task.Epoch != 1) {
				t.Errorf("claimed %+v", task)
			}
		})
	}
	wg.Wait()
	r.held(t, "alice")
}

// What somebody died over, between the seat's record and the task, the next claim
// of the seat finishes.
func TestSeatFinishesOpenClaim(t *testing.T) {
	r := newRig(t)
	tasks := r.add(t, 2)
	_, err := r.roster.Put(t.Context(), team.Member{
		AgentID: "alice", Role: "person", Backend: team.Person, State: team.Joined, Incarnation: 1,
		Claim: &team.SeatClaim{Task: tasks[0].ID, Revision: tasks[0].Revision, Op: "op"},
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.take(t, tasks[1].ID, "alice")
	wantCode(t, "claim of another task", err, team.Busy)
	if held := r.held(t, "alice"); len(held) != 1 || held[0] != tasks[0].ID {
		t.Errorf("in progress are %v, want %s", held, tasks[0].ID)
	}
}

// A seat that is stopped while a terminal claims for it ends with no task, or was taken
// anew afterwards: nothing stays with a seat that has left.
func TestSeatStoppedWhileItClaims(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	tasks := r.add(t, 40)
	for i := 0; i < len(tasks); i += 2 {
		r.claim(t, tasks[i].ID, "alice")
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := r.board.Release(t.Context(), tasks[i].ID, person, 0, team.Freed{Reason: "to race"})
			if err == nil {
				_, err = r.take(t, tasks[i+1].ID, "alice")
			}
			if err != nil && !errors.Is(err, team.InvalidState) && !errors.Is(err, team.Conflict) {
				t.Error(err)
			}
		})
		wg.Go(func() { wantCode(t, "the stop", r.Stop(t.Context(), "alice", person), "") })
		wg.Wait()
		seat, err := r.roster.Get(t.Context(), "alice")
		if err != nil {
			t.Fatal(err)
		}
		held := r.held(t, "alice")
		if seat.State == team.Stopped && len(held) > 0 || len(held) > 1 {
			t.Fatalf("the seat is %s, and in progress are %v", seat.State, held)
		}
		wantCode(t, "the stop at the end", r.Stop(t.Context(), "alice", person), "")
		if held := r.held(t, "alice"); len(held) > 0 {
			t.Fatalf("the seat was stopped, and in progress are %v", held)
		}
	}
}
