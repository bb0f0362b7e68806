package board_test

import (
	"strings"
	"testing"

	"agentteam/pkg/store/board"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

// An edit of a task that says all that already writes nothing, neither the task nor
// the graph's key, and says so; nor does one that is refused.
func TestEditChangesNothing(t *testing.T) {
	b, bt := open(t)
	one := add(t, b).ID
	two := add(t, b, one)
	before, err := bt.Bucket.LastSeq(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name, e := range map[string]team.Edit{
		"title":      {Title: new(two.Title)},
		"dependency": {AddDependencies: []team.TaskID{one}},
		"not there":  {RemoveDependencies: []team.TaskID{two.ID}},
		"both":       {Title: new(two.Title), AddDependencies: []team.TaskID{one}},
	} {
		got, changed, err := b.Edit(t.Context(), two.ID, leader, e)
		if err != nil || changed || got.Revision != two.Revision || got.Op != two.Op {
			t.Errorf("%s: %+v, changed %v, %v; want the task as it was", name, got, changed, err)
		}
	}
	_, _, err = b.Edit(t.Context(), two.ID, leader, team.Edit{AddDependencies: []team.TaskID{one}, RemoveDependencies: []team.TaskID{one}})
	wantCode(t, "adding and removing the same", err, team.InvalidArgument)
	if after, err := bt.Bucket.LastSeq(t.Context()); err != nil || after != before {
		t.Errorf("the bucket went from %d to %d, %v", before, after, err)
	}
	if got, changed, err := b.Edit(t.Context(), two.ID, leader, team.Edit{RemoveDependencies: []team.TaskID{one}}); err != nil || !changed || len(got.Dependencies) != 0 {
		t.Errorf("removing what is there: %+v, changed %v, %v", got, changed, err)
	}
}

// An edit whose answer was lost, and that was made, by itself or by somebody else who
// found its intent, is not taken for one that has nothing to do or that removes what is
// not there.
func TestEditAnswerLost(t *testing.T) {
	for name, tt := range map[string]struct {
		ofTask    bool // the answer to the write of the task, not of its intent
		byAnother bool // finishes it meanwhile
	}{
		"of the intent": {}, "of the intent, finished by another": {byAnother: true},
		"of the task": {ofTask: true}, "of the task, finished by another": {ofTask: true, byAnother: true},
	} {
		t.Run(name, func(t *testing.T) {
			b, bt := open(t)
			one := add(t, b).ID
			two, three := add(t, b, one).ID, add(t, b).ID
			others := brokertest.Connect(t, bt.Conn.Server())
			ot, err := others.Open(t.Context(), "t")
			if err != nil {
				t.Fatal(err)
			}
			lose := func(_ int, w brokertest.Write) ([]byte, bool) {
				w.Store(t, others)
				if tt.byAnother {
					if _, err := depend(board.New(ot.Bucket, board.Options{}), t, three, one); err != nil {
						t.Error(err)
					}
				}
				return nil, false
			}
			brokertest.Intercept(t, others, "t", subject.KeyGraph, func(n int, w brokertest.Write) ([]byte, bool) {
				if !tt.ofTask {
					return lose(n, w)
				}
				answer := w.Store(t, others)
				brokertest.Intercept(t, others, "t", subject.KeyTask(two), lose)
				return answer, false
			})
			got, changed, err := b.Edit(t.Context(), two, leader, team.Edit{Title: new("new"), RemoveDependencies: []team.TaskID{one}})
			if err != nil || !changed || got.Title != "new" || len(got.Dependencies) != 0 {
				t.Errorf("edited %+v, changed %v, %v", got, changed, err)
			}
			if now := get(t, b, two); now.Op != got.Op {
				t.Errorf("the task is now %+v, and %+v was told", now, got)
			}
		})
	}
}

// One who held a task before others did, and does not know its epoch, is told that it
// was lost, and to whom; one who never held it, that it is not theirs.
func TestFormerHolder(t *testing.T) {
	b, _ := open(t)
	id := add(t, b).ID
	first := claim(t, b, id, ann)
	if _, err := b.Release(t.Context(), id, team.Actor{Holder: ann}, first.Epoch, team.Freed{}); err != nil {
		t.Fatal(err)
	}
	held := claim(t, b, id, bob)
	carol := team.Holder{Agent: "carol"}
	hand := board.NewClaimSlot(t.Context(), b, ann)
	for name, write := range map[string]func(h team.Holder) error{
		"complete": func(h team.Holder) error {
			_, err := b.Complete(t.Context(), id, h, 0, team.Done{Summary: "late"})
			return err
		},
		"may complete": func(h team.Holder) error { return b.MayComplete(t.Context(), held, h, 0) },
		"fail check": func(h team.Holder) error {
			_, err := b.FailCheck(t.Context(), id, h, 0, team.Freed{Reason: "x"})
			return err
		},
		"fail": func(h team.Holder) error {
			_, err := b.Fail(t.Context(), id, team.Actor{Holder: h}, 0, team.Freed{Reason: "x"})
			return err
		},
		"release": func(h team.Holder) error {
			_, err := b.Release(t.Context(), id, team.Actor{Holder: h}, 0, team.Freed{Reason: "x"})
			return err
		},
		"confirm": func(h team.Holder) error {
			if h == carol {
				return team.PermissionDenied
			}
			_, err := hand.Confirm(t.Context(), id) // of a hand that remembers nothing
			return err
		},
	} {
		err := write(ann)
		wantCode(t, name+" by a former holder", err, team.Conflict)
		if want := "T-001 is no longer yours: it is held by tester-1 (epoch 2)"; err == nil || err.Error() != want {
			t.Errorf("%s by a former holder: %v, want %s", name, err, want)
		}
		wantCode(t, name+" by a stranger", write(carol), team.PermissionDenied)
	}
	if now := get(t, b, id); now.Revision != held.Revision {
		t.Errorf("a refused write changed the task: %+v", now)
	}
}

// Whoever waits for a dependency that nobody will complete is told how to do without.
func TestBlockedHint(t *testing.T) {
	b, _ := open(t)
	one, two := add(t, b).ID, add(t, b).ID
	three := add(t, b, one, two).ID
	_, err := b.Claim(t.Context(), three, ann)
	if wantCode(t, "waiting", err, team.Blocked); team.HintOf(err) != "it can be claimed once they are completed" {
		t.Errorf("waiting: hint %q", team.HintOf(err))
	}
	if _, err := b.Cancel(t.Context(), one, leader, ""); err != nil {
		t.Fatal(err)
	}
	_, err = b.Claim(t.Context(), three, ann)
	if wantCode(t, "given up", err, team.Blocked); !strings.Contains(team.HintOf(err), "update T-003 --remove-dependency T-001") {
		t.Errorf("given up: hint %q", team.HintOf(err))
	}
	_, err = depend(b, t, two, three)
	if wantCode(t, "a cycle", err, team.InvalidArgument); team.HintOf(err) == "" {
		t.Error("a cycle: no hint")
	}
	_, _, err = b.CreateOnce(t.Context(), "user", "", team.NewTask{Title: "x"})
	if wantCode(t, "no key", err, team.InvalidArgument); team.HintOf(err) == "" {
		t.Error("no key: no hint")
	}
}

// claim has h claim the task.
func claim(t *testing.T, b *board.Board, id team.TaskID, h team.Holder) team.Task {
	t.Helper()
	task, err := b.Claim(t.Context(), id, h)
	if err != nil {
		t.Fatal(err)
	}
	return task
}
