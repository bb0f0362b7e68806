package board_test

import (
	"testing"

	"agentteam/pkg/team"
)

// A write that belongs to an earlier hold is refused also while the same incarnation
// holds the task again: it speaks of work that was taken away.
func TestEarlierHold(t *testing.T) {
	b, _ := open(t)
	ctx := t.Context()
	id := add(t, b).ID
	first, err := b.Claim(ctx, id, ann)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Reap(ctx, id, first.Epoch, team.Freed{Reason: "silent"}); err != nil {
		t.Fatal(err)
	}
	second, err := b.Claim(ctx, id, ann)
	if err != nil {
		t.Fatal(err)
	}
	_, err = b.Complete(ctx, id, ann, first.Epoch, team.Done{Summary: "of the first hold"})
	wantCode(t, "complete under the first hold's epoch", err, team.Conflict)
	_, err = b.Release(ctx, id, team.Actor{Holder: ann}, first.Epoch, team.Freed{})
	wantCode(t, "release under the first hold's epoch", err, team.Conflict)
	if now := get(t, b, id); now.Revision != second.Revision {
		t.Errorf("it was changed to %+v", now)
	}
	if _, err := b.Complete(ctx, id, ann, second.Epoch, team.Done{Summary: "of the second"}); err != nil {
		t.Error(err)
	}
}
