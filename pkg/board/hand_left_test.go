package board_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"agentteam/pkg/board"
	"agentteam/pkg/team"
)

// A task that others end is neither adopted nor put back, and until it is over the hand takes no other. Whether they do may not be known.
func TestHandLeavesWhatOthersEnd(t *testing.T) {
	b, _ := open(t)
	ctx := t.Context()
	first, second := add(t, b), add(t, b)
	held, err := board.NewHand(ctx, b, ann).Claim(ctx, first.ID)
	if err != nil {
		t.Fatal(err)
	}
	next := ann
	next.Incarnation = 2
	hand := board.NewHand(ctx, b, next)
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
