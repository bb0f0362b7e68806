package board_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"agentteam/pkg/store/board"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

// One task whoever claims for the agent and however many at once: by id, by offer
// and by assignment.
func TestHandHoldsOne(t *testing.T) {
	b, _ := open(t)
	var tasks []team.Task
	for range 32 {
		tasks = append(tasks, add(t, b))
	}
	hand := board.NewClaimSlot(t.Context(), b, ann)
	codes := atOnce(32, func(i int) (err error) {
		switch i % 3 {
		case 0:
			_, err = hand.Claim(t.Context(), tasks[i].ID)
		case 1:
			_, err = hand.Take(t.Context(), tasks[i])
		default:
			_, _, err = hand.Assign(t.Context(), byLeader(tasks[i]))
		}
		return err
	})
	if codes[""] != 1 || codes[team.Busy] != 31 {
		t.Errorf("32 claims through one hand: %v, want 1 ok and 31 busy", codes)
	}
	all, err := b.All(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	held := slices.DeleteFunc(all, func(task team.Task) bool { return !task.HeldBy(ann) })
	if task, ok := hand.Task(); !ok || len(held) != 1 || held[0].ID != task.ID {
		t.Errorf("the board says it holds %v, the hand %v, %v", ids(held), task.ID, ok)
	}
}

func TestHandLife(t *testing.T) {
	b, _ := open(t)
	ctx := t.Context()
	one, two, three := add(t, b).ID, add(t, b).ID, add(t, b).ID
	hand := board.NewClaimSlot(ctx, b, ann)

	_, err := hand.Complete(ctx, one, team.Done{Summary: "not mine"})
	wantCode(t, "complete before any claim", err, team.PermissionDenied)
	if _, err := hand.Claim(ctx, one); err != nil {
		t.Fatal(err)
	}
	if again, err := hand.Claim(ctx, one); err != nil || again.Epoch != 1 {
		t.Errorf("claiming the task that is held: %+v, %v", again, err)
	}
	_, err = hand.Claim(ctx, two)
	wantCode(t, "claim of a second task", err, team.Busy)
	if _, err := hand.Complete(ctx, one, team.Done{Summary: "done"}); err != nil {
		t.Fatal(err)
	}
	if _, held := hand.Task(); held {
		t.Error("it holds the task that it completed")
	}
	if _, err := hand.Claim(ctx, two); err != nil {
		t.Fatal(err)
	}
	if _, err := hand.Release(ctx, two, team.Freed{Reason: "not for me"}); err != nil {
		t.Fatal(err)
	}
	if _, err := hand.Claim(ctx, three); err != nil {
		t.Fatal(err)
	}
	if _, err := hand.Fail(ctx, three, "cannot"); err != nil {
		t.Fatal(err)
	}
	if _, held := hand.Task(); held {
		t.Error("it holds the task that it failed")
	}
}

// An agent makes sure every few seconds that its task is still its own. If it is, nothing
// changes; what the hand knows of itself grows with each write and reading.
func TestHandConfirms(t *testing.T) {
	b, _ := open(t)
	ctx := t.Context()
	one, two := add(t, b).ID, add(t, b).ID
	hand := board.NewClaimSlot(ctx, b, ann)
	if _, seq := hand.Now(); seq != 0 {
		t.Errorf("a new hand knows of revision %d", seq)
	}
	held, err := hand.Claim(ctx, one)
	if err != nil {
		t.Fatal(err)
	}
	edited, _, err := b.Edit(ctx, one, leader, team.Edit{Metadata: []byte(`{"note":1}`)})
	if err != nil {
		t.Fatal(err)
	}
	if _, seq := hand.Now(); seq != held.Revision {
		t.Errorf("after the claim at revision %d it knows of %d", held.Revision, seq)
	}
	for range 2 {
		if _, err := hand.Confirm(ctx, one); err != nil {
			t.Fatal(err)
		}
		if now, seq := hand.Now(); now.ID != one || seq != edited.Revision {
			t.Errorf("after a confirmation it holds %q, as of revision %d, want %s at %d", now.ID, seq, one, edited.Revision)
		}
		_, err = hand.Claim(ctx, two)
		wantCode(t, "claim of a second task", err, team.Busy)
	}
	failed, err := hand.FailCheck(ctx, one, "1 of 3 tests failed")
	if err != nil {
		t.Fatal(err)
	}
	if now, seq := hand.Now(); now.Attempts != 1 || seq != failed.Revision {
		t.Errorf("after a failed check it holds %+v as of revision %d", now, seq)
	}
	done, err := hand.Complete(ctx, one, team.Done{Summary: "done"})
	if err != nil {
		t.Fatal(err)
	}
	if now, seq := hand.Now(); now.ID != "" || seq != done.Revision {
		t.Errorf("after the completion at %d it holds %q as of revision %d", done.Revision, now.ID, seq)
	}
}

// A record that cannot be read tells nothing of who holds the task: should it be healed,
// its holder is to have no other.
func TestHandKeepsWhatCannotBeRead(t *testing.T) {
	b, bt := open(t)
	ctx := t.Context()
	one, two := add(t, b).ID, add(t, b).ID
	hand := board.NewClaimSlot(ctx, b, ann)
	held, err := hand.Claim(ctx, one)
	if err != nil {
		t.Fatal(err)
	}
	key := subject.KeyTask(one)
	good, err := bt.Bucket.Get(ctx, key)
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"{", `{"v":99,"id":"T-001","status":"pending"}`, `{"v":2,"id":"T-002","status":"pending"}`} {
		now, err := bt.Bucket.Get(ctx, key)
		if err == nil {
			_, err = bt.Bucket.Put(ctx, key, []byte(bad), now.Revision)
		}
		if err != nil {
			t.Fatal(err)
		}
		for what, call := range map[string]func() error{
			"confirm":  func() error { _, err := hand.Confirm(ctx, one); return err },
			"complete": func() error { _, err := hand.Complete(ctx, one, team.Done{Summary: "done"}); return err },
			"release":  func() error { _, err := hand.Release(ctx, one, team.Freed{}); return err },
		} {
			if err := call(); !errors.Is(err, team.ErrUnreadable) {
				t.Errorf("%s of %s: %v", what, bad, err)
			}
			if now, _ := hand.Now(); now.ID != one || !hand.Confirmed().IsZero() {
				t.Errorf("after %s of %s the hand holds %q, known %v", what, bad, now.ID, hand.Confirmed())
			}
		}
		if _, err := hand.Claim(ctx, two); err == nil {
			t.Fatal("it has claimed another")
		}
	}
	now, err := bt.Bucket.Get(ctx, key)
	if err == nil {
		_, err = bt.Bucket.Put(ctx, key, good.Value, now.Revision)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := hand.Confirm(ctx, one); err != nil || hand.Confirmed().IsZero() {
		t.Errorf("once it is healed: %v, known %v", err, hand.Confirmed())
	}
	if task, err := hand.Complete(ctx, one, team.Done{Summary: "done"}); err != nil || task.Epoch != held.Epoch {
		t.Errorf("once it is healed: %+v, %v", task, err)
	}
}

// A task whose record was deleted is nobody's.
func TestHandLetsGoOfWhatWasDeleted(t *testing.T) {
	for name, call := range map[string]func(*board.ClaimSlot, team.TaskID, team.TaskID) error{
		"confirm": func(h *board.ClaimSlot, one, _ team.TaskID) error { _, err := h.Confirm(t.Context(), one); return err },
		"claim":   func(h *board.ClaimSlot, _, two team.TaskID) error { _, err := h.Claim(t.Context(), two); return err },
	} {
		t.Run(name, func(t *testing.T) {
			b, bt := open(t)
			one := add(t, b).ID
			two := add(t, b).ID // its creation has put the first one's out of the sequence
			hand := board.NewClaimSlot(t.Context(), b, ann)
			held, err := hand.Claim(t.Context(), one)
			if err == nil {
				err = bt.Bucket.Delete(t.Context(), subject.KeyTask(one), held.Revision)
			}
			if err != nil {
				t.Fatal(err)
			}
			err = call(hand, one, two)
			now, _ := hand.Now()
			switch {
			case name == "confirm" && (!errors.Is(err, team.NotFound) || now.ID != ""):
				t.Errorf("%v, and the hand holds %q", err, now.ID)
			case name == "claim" && (err != nil || now.ID != two):
				t.Errorf("%v, and the hand holds %q", err, now.ID)
			}
		})
	}
}

// That a task was taken from the agent is told once for each hold, by whatever finds it;
// what the agent ends itself, and a record that cannot be read, are no loss.
func TestHandTellsOfLosses(t *testing.T) {
	ctx := t.Context()
	for name, tt := range map[string]struct {
		before func(*board.Board, *broker.Storage, *board.ClaimSlot, team.Task) error
		find   func(h *board.ClaimSlot, held, next team.TaskID) error
		want   int
	}{
		"cancelled, found by a claim": {cancelled, func(h *board.ClaimSlot, _, next team.TaskID) error { _, err := h.Claim(ctx, next); return err }, 1},
		"cancelled, found by a confirmation": {cancelled, func(h *board.ClaimSlot, held, _ team.TaskID) error {
			_, _ = h.Confirm(ctx, held)
			_, _ = h.Confirm(ctx, held)
			return nil
		}, 1},
		"cancelled, found by a completion": {cancelled, func(h *board.ClaimSlot, held, _ team.TaskID) error {
			_, _ = h.Complete(ctx, held, team.Done{Summary: "late"})
			return nil
		}, 1},
		"completed by itself": {
			func(_ *board.Board, _ *broker.Storage, h *board.ClaimSlot, held team.Task) error {
				_, err := h.Complete(ctx, held.ID, team.Done{Summary: "done"})
				return err
			},
			func(h *board.ClaimSlot, held, next team.TaskID) error {
				_, _ = h.Confirm(ctx, held)
				_, err := h.Claim(ctx, next)
				return err
			}, 0},
		"completed by itself, with the answer lost": {
			func(b *board.Board, _ *broker.Storage, _ *board.ClaimSlot, held team.Task) error {
				_, err := b.Complete(ctx, held.ID, ann, held.Epoch, team.Done{Summary: "done"})
				return err
			},
			func(h *board.ClaimSlot, held, _ team.TaskID) error {
				_, _ = h.Complete(ctx, held, team.Done{Summary: "done"})
				return nil
			}, 0},
		"released by itself, with the answer lost": {
			func(b *board.Board, _ *broker.Storage, _ *board.ClaimSlot, held team.Task) error {
				_, err := b.Release(ctx, held.ID, team.Actor{Holder: ann}, held.Epoch, team.Freed{})
				return err
			},
			func(h *board.ClaimSlot, _, next team.TaskID) error { _, err := h.Claim(ctx, next); return err }, 0},
		"cancelled, found by a release": {cancelled, func(h *board.ClaimSlot, held, _ team.TaskID) error {
			_, _ = h.Release(ctx, held, team.Freed{})
			return nil
		}, 1},
		"damaged": {
			func(_ *board.Board, bt *broker.Storage, _ *board.ClaimSlot, held team.Task) error {
				_, err := bt.Bucket.Put(ctx, subject.KeyTask(held.ID), []byte("{"), held.Revision)
				return err
			},
			func(h *board.ClaimSlot, held, _ team.TaskID) error { _, _ = h.Confirm(ctx, held); return nil }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			b, bt := open(t)
			held, next := add(t, b), add(t, b)
			hand := board.NewClaimSlot(ctx, b, ann)
			var losses []string
			hand.OnLoss(func(t team.Task, why error) { losses = append(losses, string(t.ID)+": "+why.Error()) })
			held, err := hand.Claim(ctx, held.ID)
			if err == nil {
				err = tt.before(b, bt, hand, held)
			}
			if err == nil {
				err = tt.find(hand, held.ID, next.ID)
			}
			if err != nil {
				t.Fatal(err)
			}
			if len(losses) != tt.want || tt.want == 1 && losses[0] != "T-001: T-001 is already cancelled" {
				t.Errorf("losses told: %q, want %d", losses, tt.want)
			}
		})
	}
}

func cancelled(b *board.Board, _ *broker.Storage, _ *board.ClaimSlot, held team.Task) error {
	_, err := b.Cancel(context.Background(), held.ID, team.Actor{Holder: team.Holder{Agent: team.Leader}, Leads: true}, "not needed")
	return err
}

// A completion that is refused before it is written is a late write too; it completes
// nothing.
func TestHandMayComplete(t *testing.T) {
	bt := brokertest.Team(t, "t")
	reg := prometheus.NewRegistry()
	b := board.New(bt.Bucket, board.Options{Metrics: reg})
	ctx := t.Context()
	task := add(t, b)
	hand := board.NewClaimSlot(ctx, b, ann)
	held, err := hand.Claim(ctx, task.ID)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := hand.MayComplete(ctx, task.ID); err != nil {
		t.Error(err)
	}
	if err := b.Reap(ctx, task.ID, held.Epoch, team.Freed{Reason: "silent"}); err != nil {
		t.Fatal(err)
	}
	_, err = hand.MayComplete(ctx, task.ID)
	wantCode(t, "completion of what was taken away", err, team.Conflict)
	if err := testutil.GatherAndCompare(reg, strings.NewReader(`
# HELP agentteam_late_writes_total Writes of former holders that were refused.
# TYPE agentteam_late_writes_total counter
agentteam_late_writes_total 1
`), "agentteam_late_writes_total"); err != nil {
		t.Error(err)
	}
	if now := get(t, b, task.ID); now.Status != team.Pending {
		t.Errorf("the task is %s", now.Status)
	}
}

// A task that was taken away does not bind the hand: neither to claim another nor
// when a late write shows it.
func TestHandLosesTask(t *testing.T) {
	b, _ := open(t)
	ctx := t.Context()
	one, two := add(t, b).ID, add(t, b).ID
	hand := board.NewClaimSlot(ctx, b, ann)
	for _, late := range []func() error{
		func() error { _, err := hand.Claim(ctx, two); return err },
		func() error {
			_, err := hand.Complete(ctx, one, team.Done{Summary: "late"})
			wantCode(t, "late complete", err, team.Conflict)
			_, err = hand.Claim(ctx, two)
			return err
		},
	} {
		held, err := hand.Claim(ctx, one)
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Reap(ctx, one, held.Epoch, team.Freed{Reason: "silent"}); err != nil {
			t.Fatal(err)
		}
		if err := late(); err != nil {
			t.Errorf("it cannot claim another: %v", err)
		}
		if _, err := hand.Release(ctx, two, team.Freed{}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestHandRole(t *testing.T) {
	b, _ := open(t)
	tasks, err := b.Create(t.Context(), "leader", team.NewTask{Title: "for testers", Role: "tester"})
	if err != nil {
		t.Fatal(err)
	}
	hand := board.NewClaimSlot(t.Context(), b, ann)
	_, err = hand.Claim(t.Context(), tasks[0].ID)
	wantCode(t, "claim by another role", err, team.PermissionDenied)
	_, err = hand.Take(t.Context(), tasks[0])
	wantCode(t, "offer to another role", err, team.PermissionDenied)
	if task, taken, err := hand.Assign(t.Context(), byLeader(tasks[0])); err != nil || !taken || !task.HeldBy(ann) {
		t.Errorf("assigned: %+v, %v", task, err)
	}
}

func TestHandAdopts(t *testing.T) {
	b, bt := open(t)
	ctx := t.Context()
	dep := done(t, b, add(t, b).ID, bob)
	task := add(t, b, dep.ID)
	before := board.NewClaimSlot(ctx, b, ann)
	if _, err := before.Claim(ctx, task.ID); err != nil {
		t.Fatal(err)
	}
	next := ann
	next.Incarnation = 2
	hand := board.NewClaimSlot(ctx, b, next)
	adopted, ok, err := hand.Adopt(ctx, "")
	if err != nil || !ok || !adopted.HeldBy(next) {
		t.Fatalf("adopted %+v, %v, %v", adopted, ok, err)
	}
	if held, ok := hand.Task(); !ok || held.ID != task.ID {
		t.Errorf("the hand holds %v, %v", held.ID, ok)
	}
	_, err = hand.Claim(ctx, add(t, b).ID)
	wantCode(t, "claim beside the adopted task", err, team.Busy)
	_, err = before.Complete(ctx, task.ID, team.Done{Summary: "by the old incarnation"})
	wantCode(t, "complete by the old incarnation", err, team.Conflict)
	if inputs, err := hand.Inputs(ctx, adopted); err != nil || !slices.Equal(inputs, []team.Input{dep.Input()}) {
		t.Errorf("inputs are %v, %v", inputs, err)
	}
	if _, err := bt.Bucket.Put(ctx, subject.KeyTask(dep.ID), []byte("{"), dep.Revision); err != nil {
		t.Fatal(err)
	}
	if inputs, err := hand.Inputs(ctx, adopted); err != nil || len(inputs) != 0 {
		t.Errorf("inputs from what cannot be read are %v, %v", inputs, err)
	}
	if _, err := hand.Complete(ctx, task.ID, team.Done{Summary: "done"}); err != nil {
		t.Error(err)
	}
	if _, ok, err := hand.Adopt(ctx, ""); ok || err != nil {
		t.Errorf("nothing is left to adopt: %v, %v", ok, err)
	}
}

// An assignment that comes before the predecessor's task was adopted would make two.
func TestHandClaimsNothingBeforeItAdopts(t *testing.T) {
	b, _ := open(t)
	ctx := t.Context()
	first, second := add(t, b), add(t, b)
	if _, err := board.NewClaimSlot(ctx, b, ann).Claim(ctx, first.ID); err != nil {
		t.Fatal(err)
	}
	next := ann
	next.Incarnation = 2
	hand := board.NewClaimSlot(ctx, b, next)
	_, _, err := hand.Assign(ctx, byLeader(second))
	wantCode(t, "assignment before adoption", err, team.Busy)
	if _, ok, err := hand.Adopt(ctx, ""); !ok || err != nil {
		t.Fatalf("Adopt = %v, %v", ok, err)
	}
	_, _, err = hand.Assign(ctx, byLeader(second))
	wantCode(t, "assignment beside the adopted task", err, team.Busy)
	if task := get(t, b, second.ID); task.Status != team.Pending {
		t.Errorf("the second task is %s of %s", task.Status, task.Assignee)
	}
}

// The leader may take a task from one member and give it to another; the first one's
// writes are refused from then on.
func TestHandAssignedFromOther(t *testing.T) {
	b, _ := open(t)
	ctx := t.Context()
	task := add(t, b)
	anns, bobs := board.NewClaimSlot(ctx, b, ann), board.NewClaimSlot(ctx, b, bob)
	held, err := anns.Claim(ctx, task.ID)
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = bobs.Assign(ctx, byLeader(held))
	wantCode(t, "assignment that takes from nobody", err, team.Conflict)
	if task, _, err = bobs.Assign(ctx, taken(held)); err != nil || !task.HeldBy(bob) || task.Epoch != held.Epoch+1 {
		t.Fatalf("reassigned: %+v, %v", task, err)
	}
	_, err = anns.Confirm(ctx, task.ID)
	wantCode(t, "confirmation by the former holder", err, team.Conflict)
	if !strings.Contains(err.Error(), string(bob.Agent)) {
		t.Errorf("%q does not name the new holder", err)
	}
	if _, holds := anns.Task(); holds {
		t.Error("the former holder's hand is not free")
	}
	_, err = anns.Complete(ctx, task.ID, team.Done{Summary: "late"})
	wantCode(t, "completion by the former holder", err, team.Conflict)
	if again, taken, err := bobs.Assign(ctx, taken(task)); err != nil || taken || again.Epoch != task.Epoch {
		t.Errorf("assigned what it holds: %+v, %v", again, err)
	}
	if _, err := bobs.Complete(ctx, task.ID, team.Done{Summary: "done"}); err != nil {
		t.Error(err)
	}
}

// An assignment may reach its agent late, as when that was frozen: it takes the task from
// nobody who has claimed it since.
func TestHandAssignedLate(t *testing.T) {
	b, _ := open(t)
	ctx := t.Context()
	task := add(t, b)
	late := taken(task)
	if _, err := b.Claim(ctx, task.ID, bob); err != nil {
		t.Fatal(err)
	}
	hand := board.NewClaimSlot(ctx, b, ann)
	for _, status := range []team.TaskStatus{team.InProgress, team.Pending} {
		_, _, err := hand.Assign(ctx, late)
		wantCode(t, "a late assignment of a task that is "+string(status), err, team.Conflict)
		if now := get(t, b, task.ID); now.Status != status || now.Assignee == ann.Agent {
			t.Errorf("after it the task is %s of %s", now.Status, now.Assignee)
		}
		if status == team.InProgress {
			if _, err := b.Release(ctx, task.ID, team.Actor{Holder: bob}, 1, team.Freed{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, _, err := hand.Assign(ctx, taken(get(t, b, task.ID))); err != nil {
		t.Errorf("assigned again: %v", err)
	}
}

// Completing saves the reading of the task, and is right also if somebody wrote it
// meanwhile.
func TestHandCompletesOverMetadata(t *testing.T) {
	b, _ := open(t)
	ctx := t.Context()
	hand := board.NewClaimSlot(ctx, b, ann)
	task, err := hand.Claim(ctx, add(t, b).ID)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.Edit(ctx, task.ID, leader, team.Edit{Metadata: []byte(`{"note":"读"}`)}); err != nil {
		t.Fatal(err)
	}
	if task, err = hand.Complete(ctx, task.ID, team.Done{Summary: "done"}); err != nil || string(task.Metadata) != `{"note":"读"}` {
		t.Errorf("completed: metadata %s, %v", task.Metadata, err)
	}
}

func TestHandFailsCheck(t *testing.T) {
	b, _ := open(t)
	ctx := t.Context()
	hand := board.NewClaimSlot(ctx, b, ann)
	task, err := hand.Claim(ctx, add(t, b).ID)
	if err != nil {
		t.Fatal(err)
	}
	given := 0
	hand.BeforeRelease(func(ctx context.Context, id team.TaskID) {
		if now, err := b.Get(ctx, id); err != nil || now.Status != team.InProgress {
			t.Errorf("what was begun for it ends after it: %+v, %v", now, err)
		}
		given++
	})
	for n := 1; n <= team.MaxAttempts; n++ {
		if task, err = hand.FailCheck(ctx, task.ID, "1 of 3 tests failed"); err != nil || task.Attempts != n {
			t.Fatalf("failure %d: %d attempts, %v", n, task.Attempts, err)
		}
		if _, holds := hand.Task(); holds != (n < team.MaxAttempts) {
			t.Errorf("after failure %d the hand holds it: %v", n, holds)
		}
		if want := n / team.MaxAttempts; given != want {
			t.Errorf("after failure %d it was given up %d times", n, given)
		}
	}
	if task.Status != team.Failed || !strings.Contains(task.Reason, "1 of 3 tests failed") {
		t.Errorf("after the last: %s (%s)", task.Status, task.Reason)
	}
}

func TestHistory(t *testing.T) {
	b, _ := open(t)
	ctx := t.Context()
	task := add(t, b)
	hand := board.NewClaimSlot(ctx, b, ann)
	held, err := hand.Claim(ctx, task.ID)
	if err == nil {
		err = b.Reap(ctx, task.ID, held.Epoch, team.Freed{Reason: "silent for 30s", Attempt: true})
	}
	if err != nil {
		t.Fatal(err)
	}
	done(t, b, task.ID, bob)
	copies, err := b.History(ctx, task.ID)
	if err != nil {
		t.Fatal(err)
	}
	var story []string
	for _, c := range copies {
		story = append(story, fmt.Sprintf("%s by %s", c.Status, c.UpdatedBy))
	}
	want := []string{"pending by leader", "in_progress by coder-1", "pending by watchdog", "in_progress by tester-1", "completed by tester-1"}
	if !slices.Equal(story, want) {
		t.Errorf("history %q, want %q", story, want)
	}
	_, err = b.History(ctx, "T-099")
	wantCode(t, "history of nothing", err, team.NotFound)
}

// byLeader is an assignment of a task that nobody holds.
func byLeader(t team.Task) team.Assignment {
	return team.Assignment{Task: t.ID, By: team.Leader, Epoch: t.Epoch}
}

// taken is an assignment of a task that somebody may hold.
func taken(t team.Task) team.Assignment {
	return team.Assignment{Task: t.ID, By: team.Leader, Take: true, Epoch: t.Epoch}
}
