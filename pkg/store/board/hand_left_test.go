package board_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"agentteam/pkg/store/board"
	"agentteam/pkg/team"
)

// A task that others end is neither adopted nor put back, and until it is over the hand takes no other. Whether they do may not be known.
func TestHandLeavesWhatOthersEnd(t *testing.T) {
	b, _ := open(t)
	ctx := t.Context()
	first, second := add(t, b), add(t, b)
	held, err := board.NewClaimSlot(ctx, b, ann).Claim(ctx, first.ID)
	if err != nil {
		t.Fatal(err)
	}
	next := ann
	next.Incarnation = 2
	hand := board.NewClaimSlot(ctx, b, next)
	unknown := errors.New("no answer")
	hand.OthersEnd(func(context.Context, team.Task) (bool, error) { return false, unknown })
	if _, _, err := hand.Adopt(ctx, ""); !errors.Is(err, unknown) {
		t.Errorf("Adopt: %v", err)
	}
	hand.OthersEnd(func(_ context.Context, left team.Task) (bool, error) { return left.ID == first.ID, nil })
	if err := hand.PutBack(ctx, "its journal cannot be read"); err != nil {
		t.Error(err)
	}
	if adopted, ok, err := hand.Adopt(ctx, first.ID); ok || err != nil {
		t.Errorf("Adopt = %+v, %v, %v", adopted, ok, err)
	}
	if now := get(t, b, first.ID); now.Epoch != held.Epoch || now.Attempts != 0 || !now.HeldBy(ann) {
		t.Errorf("it is %+v", now)
	}
	_, _, err = hand.Assign(ctx, byLeader(second))
	wantCode(t, "assignment beside it", err, team.Busy)
	if !strings.Contains(err.Error(), string(first.ID)) {
		t.Errorf("%q does not name it", err)
	}
	if _, err := b.Complete(ctx, first.ID, ann, held.Epoch, team.Done{Summary: "done"}); err != nil {
		t.Fatal(err)
	}
	if _, taken, err := hand.Assign(ctx, byLeader(second)); !taken || err != nil {
		t.Errorf("assigned once it is over: %v, %v", taken, err)
	}
}

// Work that the queue returns to its holder raises the epoch. The hand continues under that, whatever it does next, and stores the

// A hand whose task came back to it in conflict goes on under the new epoch, and stores the unfinished work under it.
func TestHandFollowsReturnedWork(t *testing.T) {
	b, _ := open(t)
	h := board.NewClaimSlot(t.Context(), b, ann)
	h.OnLoss(func(lost team.Task, why error) { t.Errorf("%s is lost: %v", lost.ID, why) })
	var stored []uint64
	h.Unfinished(func(_ context.Context, task team.Task) *team.Try {
		stored = append(stored, task.Epoch)
		return &team.Try{By: "ann", Epoch: task.Epoch, Unfinished: true, Host: "alpha"}
	})
	id := add(t, b).ID
	if _, err := h.Claim(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	returned := func(epoch uint64) {
		t.Helper()
		if _, err := b.GiveBack(t.Context(), id, ann, epoch, team.GiveBack{Merge: true, Stays: true}); err != nil {
			t.Fatal(err)
		}
	}
	returned(1)
	if task, err := h.Confirm(t.Context(), id); err != nil || task.Epoch != 2 {
		t.Errorf("it is confirmed under epoch %d, %v", task.Epoch, err)
	}
	returned(2)
	task, err := h.Release(t.Context(), id, team.Freed{Reason: "stopped", Keep: true})
	if err != nil || task.Status != team.Pending || task.ReservedFor != ann.Agent || len(task.Returned) != 1 || task.Returned[0].Epoch != 3 || !slices.Equal(stored, []uint64{2, 3}) {
		t.Errorf("it is %s for %q with %+v, %v; stored under %v", task.Status, task.ReservedFor, task.Returned, err, stored)
	}
	if held, ok := h.Task(); ok {
		t.Errorf("it still holds %s", held.ID)
	}
}

// Before the hand cancels a task that it holds, what was begun for it ends and its work is stored; if it may not cancel, nothing ends.
func TestHandCancels(t *testing.T) {
	b, _ := open(t)
	ctx := t.Context()
	hand := board.NewClaimSlot(ctx, b, ann)
	did := ""
	hand.BeforeRelease(func(_ context.Context, id team.TaskID) { did += "end " + string(id) + "; " })
	hand.Unfinished(func(_ context.Context, task team.Task) *team.Try { did += "store"; return task.LeftOn("alpha") })
	held, other := add(t, b).ID, add(t, b).ID
	if _, err := hand.Claim(ctx, held); err != nil {
		t.Fatal(err)
	}
	_, err := hand.Cancel(ctx, held, team.Actor{Holder: ann}, "no use")
	wantCode(t, "cancelled without the right to", err, team.PermissionDenied)
	leads := team.Actor{Holder: ann, Leads: true}
	if task, err := hand.Cancel(ctx, other, leads, "no use"); err != nil || task.Status != team.Cancelled || did != "" {
		t.Errorf("of another task: %+v, %v; it did %q", task, err, did)
	}
	if now, holds := hand.Task(); !holds {
		t.Errorf("it holds %+v", now)
	}
	task, err := hand.Cancel(ctx, held, leads, "no use")
	if err != nil || task.Status != team.Cancelled || task.Reason != "no use" || len(task.Returned) != 1 || task.Returned[0].Host != "alpha" || did != "end T-001; store" {
		t.Errorf("of its own: %+v, %v; it did %q", task, err, did)
	}
	if now, holds := hand.Task(); holds {
		t.Errorf("it still holds %s", now.ID)
	}
}
