package board_test

import (
	"errors"
	"strings"
	"testing"

	"agentteam/pkg/store/board"
	"agentteam/pkg/store/board/boardtest"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/team"
)

// A task that is reserved, from its creation on or later, is refused to everybody else by
// name, however they ask for it, and given to that member, whatever its role.
func TestReserved(t *testing.T) {
	b, bt := open(t)
	ctx := t.Context()
	recorder := boardtest.Record(t, bt.Bucket)
	created, err := b.Create(ctx, team.Leader, team.NewTask{Title: "x", Role: "nobody", ReservedFor: ann.Agent})
	if err != nil {
		t.Fatal(err)
	}
	task := created[0]
	if task.ReservedFor != ann.Agent {
		t.Fatalf("created %+v", task)
	}
	other := board.NewClaimSlot(ctx, b, team.Holder{Agent: "coder-2", Incarnation: 1, Role: "nobody"})
	for what, take := range map[string]func() error{
		"by its id": func() error { _, err := other.Claim(ctx, task.ID); return err },
		"offered":   func() error { _, err := other.Take(ctx, task); return err },
		"assigned":  func() error { _, _, err := other.Assign(ctx, byLeader(task)); return err },
		"a seat":    func() error { _, err := b.Claim(ctx, task.ID, team.Holder{Agent: "erin"}); return err },
	} {
		if err := take(); !errors.Is(err, team.Conflict) || !strings.Contains(err.Error(), "reserved for "+string(ann.Agent)) {
			t.Errorf("%s: %v", what, err)
		}
	}
	again, err := b.Reserve(ctx, task.ID, ann.Agent, leader)
	if err != nil || again.Revision != task.Revision {
		t.Errorf("reserved for the same once more: %+v, %v", again, err)
	}
	if err := b.Unreserve(ctx, task, leader); err != nil {
		t.Fatal(err)
	}
	task, err = b.Reserve(ctx, task.ID, "coder-2", leader)
	if err != nil || task.ReservedFor != "coder-2" {
		t.Fatalf("reserved for another: %+v, %v", task, err)
	}
	if err := b.Unreserve(ctx, created[0], leader); err != nil { // as it was read long ago
		t.Error(err)
	}
	if _, err := other.Take(ctx, task); err != nil {
		t.Errorf("taken by the member that it is for: %v", err)
	}
	_, err = b.Reserve(ctx, task.ID, ann.Agent, leader)
	wantCode(t, "reserving what is held", err, team.Conflict)
	_, err = b.Reserve(ctx, "T-099", ann.Agent, leader)
	wantCode(t, "reserving no task", err, team.NotFound)
	recorder.Judge(t)
}

// An assignment waits for the claim under way, since that may be of the same task: offered
// and assigned at once, it is taken once, and whoever assigned it is told so.
func TestAssignedWhileOffered(t *testing.T) {
	b, _ := open(t)
	for range 20 {
		task := add(t, b)
		hand := board.NewClaimSlot(t.Context(), b, ann)
		taken := make(chan error, 1)
		go func() {
			_, err := hand.Take(t.Context(), task)
			taken <- err
		}()
		got, _, err := hand.Assign(t.Context(), byLeader(task))
		if err != nil || !got.HeldBy(ann) || got.Epoch != 1 {
			t.Errorf("assigned %+v, %v", got, err)
		}
		if err := brokertest.Receive(t, "the offer is taken or refused", taken); err != nil && !errors.Is(err, team.Busy) && !errors.Is(err, team.Conflict) {
			t.Error(err)
		}
		if _, err := hand.Complete(t.Context(), task.ID, team.Done{Summary: "done"}); err != nil {
			t.Fatal(err)
		}
	}
}
