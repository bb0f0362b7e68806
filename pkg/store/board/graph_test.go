package board_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"agentteam/pkg/store/board"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

func depend(b *board.Board, t *testing.T, id team.TaskID, on ...team.TaskID) (team.Task, error) {
	got, _, err := b.Edit(t.Context(), id, leader, team.Edit{AddDependencies: on})
	return got, err
}

func TestDependencies(t *testing.T) {
	b, _ := open(t)
	one, two, three := add(t, b).ID, add(t, b).ID, add(t, b).ID
	for _, edge := range [][2]team.TaskID{{two, one}, {three, two}} {
		got, err := depend(b, t, edge[0], edge[1])
		if err != nil || !slices.Equal(got.Dependencies, []team.TaskID{edge[1]}) || got.Revision != get(t, b, edge[0]).Revision {
			t.Fatalf("%s on %s: %+v, %v", edge[0], edge[1], got, err)
		}
	}
	_, err := depend(b, t, one, three)
	wantCode(t, "a cycle", err, team.InvalidArgument)
	if s := fmt.Sprint(err); !strings.Contains(s, "T-001 -> T-003 -> T-002 -> T-001") {
		t.Errorf("the error %q must show the cycle", s)
	}
	_, err = depend(b, t, one, one)
	wantCode(t, "on itself", err, team.InvalidArgument)
	_, err = depend(b, t, one, "T-404")
	wantCode(t, "on an unknown task", err, team.NotFound)
	_, err = depend(b, t, "T-404", one)
	wantCode(t, "of an unknown task", err, team.NotFound)
	_, _, err = b.Edit(t.Context(), one, team.Actor{Holder: ann}, team.Edit{AddDependencies: []team.TaskID{two}})
	wantCode(t, "by a teammate", err, team.PermissionDenied)

	got, _, err := b.Edit(t.Context(), three, leader, team.Edit{Title: new("新"), RemoveDependencies: []team.TaskID{two}})
	if err != nil || len(got.Dependencies) != 0 || got.Title != "新" {
		t.Errorf("removing a dependency: %+v, %v", got, err)
	}
	if _, err := depend(b, t, one, three); err != nil {
		t.Errorf("without that dependency it is no cycle: %v", err)
	}
}

func TestEditLosesAgainstClaim(t *testing.T) {
	b, _ := open(t)
	one, two := add(t, b).ID, add(t, b).ID
	held, err := b.Claim(t.Context(), one, ann)
	if err != nil {
		t.Fatal(err)
	}
	_, err = depend(b, t, one, two)
	wantCode(t, "edit of a claimed task", err, team.Conflict)
	if got := get(t, b, one); got.Revision != held.Revision {
		t.Errorf("the refused edit wrote %+v", got)
	}
}

// An editor that died after its intent: whoever edits next makes that edit first
// and judges its own by it.
func TestUnfinishedEdit(t *testing.T) {
	b, bt := open(t)
	one, two := add(t, b), add(t, b)
	intended := two
	intended.Dependencies, intended.Op = []team.TaskID{one.ID}, "of the dead editor"
	data, err := json.Marshal(map[string]any{"v": team.Protocol, "op": "x", "intent": map[string]any{"task": two.ID, "record": intended, "revision": two.Revision}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bt.Bucket.Put(t.Context(), subject.KeyGraph, data, 0); err != nil {
		t.Fatal(err)
	}
	_, err = depend(b, t, one.ID, two.ID)
	wantCode(t, "an edit that closes a cycle with the unfinished one", err, team.InvalidArgument)
	if got := get(t, b, two.ID); !slices.Equal(got.Dependencies, []team.TaskID{one.ID}) {
		t.Errorf("the unfinished edit was not made: %v", got.Dependencies)
	}
}

// The same, but the task was claimed before the edit reached it: the edit is void
// and blocks nobody.
func TestUnfinishedEditLost(t *testing.T) {
	b, bt := open(t)
	one, two := add(t, b), add(t, b)
	intended := two
	intended.Dependencies, intended.Op = []team.TaskID{one.ID}, "of the dead editor"
	data, err := json.Marshal(map[string]any{"v": team.Protocol, "op": "x", "intent": map[string]any{"task": two.ID, "record": intended, "revision": two.Revision}})
	if err != nil {
		t.Fatal(err)
	}
	held, err := b.Claim(t.Context(), two.ID, ann)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bt.Bucket.Put(t.Context(), subject.KeyGraph, data, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := depend(b, t, one.ID, two.ID); err != nil {
		t.Errorf("an edit after a void one: %v", err)
	}
	if got := get(t, b, two.ID); got.Revision != held.Revision {
		t.Errorf("the void edit was made: %+v", got)
	}
}

// An edit that somebody else made in its editor's stead, who then found the task
// claimed, is made all the same: the editor is told so.
func TestEditMadeByAnother(t *testing.T) {
	b, bt := open(t)
	one, two, three := add(t, b).ID, add(t, b).ID, add(t, b).ID
	others := brokertest.Connect(t, bt.Conn.Server())
	ot, err := others.Open(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}
	other := board.New(ot.Bucket, board.Options{})
	brokertest.Intercept(t, others, "t", subject.KeyGraph, func(_ int, w brokertest.Write) ([]byte, bool) {
		answer := w.Store(t, others) // the intent, which is found open
		if _, err := depend(other, t, three, one); err != nil {
			t.Error(err)
		}
		if _, err := other.Claim(t.Context(), one, ann); err != nil {
			t.Error(err)
		}
		if _, err := other.Complete(t.Context(), one, ann, 1, team.Done{Summary: "done"}); err != nil {
			t.Error(err)
		}
		if _, err := other.Claim(t.Context(), two, bob); err != nil {
			t.Error(err)
		}
		return answer, false
	})
	edited, err := depend(b, t, two, one)
	if err != nil || !slices.Equal(edited.Dependencies, []team.TaskID{one}) || edited.Status != team.Pending {
		t.Errorf("the edit ended with %+v, %v", edited, err)
	}
	if now := get(t, b, two); !slices.Equal(now.Dependencies, []team.TaskID{one}) || !now.HeldBy(bob) || now.Revision <= edited.Revision {
		t.Errorf("the task is now %+v", now)
	}
}

// An open intent whose task has been written too often since to tell whether the edit
// was made keeps nobody from editing.
func TestEditOvertaken(t *testing.T) {
	b, bt := open(t)
	one, two := add(t, b), add(t, b)
	intended := two
	intended.Dependencies, intended.Op = []team.TaskID{one.ID}, "of the dead editor"
	for n := range 70 {
		if _, _, err := b.Edit(t.Context(), two.ID, leader, team.Edit{Title: new(fmt.Sprint("title ", n))}); err != nil {
			t.Fatal(err)
		}
	}
	put(t, bt, subject.KeyGraph, map[string]any{"v": team.Protocol, "op": "x", "intent": map[string]any{"task": two.ID, "record": intended, "revision": two.Revision}})
	if _, err := depend(b, t, one.ID, two.ID); err != nil {
		t.Error(err)
	}
}

// Edits that are harmless alone and close a cycle together: one is refused,
// however they race.
func TestRacingEdits(t *testing.T) {
	b, bt := open(t)
	for round := range 8 {
		const ring = 4
		var tasks []team.TaskID
		for range ring {
			tasks = append(tasks, add(t, b).ID)
		}
		codes := atOnce(ring, func(i int) error {
			_, err := depend(board.New(bt.Bucket, board.Options{}), t, tasks[i], tasks[(i+1)%ring])
			return err
		})
		if codes[""] != ring-1 || codes[team.InvalidArgument] != 1 {
			t.Fatalf("round %d: %v, want all edges of the ring but one", round, codes)
		}
	}
}

// A claim and an edit that makes the task blocked race: never both.
func TestClaimAgainstEdit(t *testing.T) {
	b, bt := open(t)
	dep := add(t, b).ID
	for round := range 20 {
		id := add(t, b).ID
		var claim, edit error
		atOnce(2, func(i int) error {
			if i == 0 {
				_, claim = board.New(bt.Bucket, board.Options{}).Claim(t.Context(), id, ann)
				return claim
			}
			_, edit = depend(b, t, id, dep)
			return edit
		})
		got := get(t, b, id)
		if (claim == nil) == (edit == nil) || got.HeldBy(ann) != (claim == nil) || (len(got.Dependencies) == 1) != (edit == nil) {
			t.Fatalf("round %d: claim %v, edit %v, task %+v", round, claim, edit, got)
		}
	}
}
