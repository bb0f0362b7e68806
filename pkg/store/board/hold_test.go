package board

import (
	"testing"
	"time"

	"agentteam/pkg/team"
)

// News of a hold that is over and was followed by another, of the same task, does not
// end the other: a reading may be answered late.
func TestHandLateNews(t *testing.T) {
	ann := team.Holder{Agent: "coder-1", Incarnation: 1}
	hand := NewClaimSlot(t.Context(), nil, ann)
	held := team.Task{ID: "T-001", Status: team.InProgress, Assignee: ann.Agent, Incarnation: 1, Epoch: 3, Revision: 30}
	began := time.Now()
	hand.set(held, began)
	freed := team.Task{ID: held.ID, Status: team.Pending, Epoch: 2, Revision: 20}
	if err := hand.after(call{task: held, epoch: 1}, freed, freed.MayComplete(ann, 1)); team.CodeOf(err) != team.Conflict {
		t.Errorf("the news is %v", err)
	}
	if now, seq := hand.Now(); now.ID != held.ID || seq != 30 || hand.Confirmed() != began {
		t.Errorf("after late news it holds %q as of revision %d, known %v", now.ID, seq, hand.Confirmed())
	}
	freed.Epoch, freed.Revision = 4, 40
	_ = hand.after(hand.begin(held.ID), freed, freed.MayComplete(ann, 3))
	if now, seq := hand.Now(); now.ID != "" || seq != 40 || !hand.Confirmed().IsZero() {
		t.Errorf("after news of the present hold it holds %q as of revision %d", now.ID, seq)
	}
}
