package board_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"agentteam/pkg/store/board"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/team"
	"agentteam/pkg/team/explain"
)

var (
	ann    = team.Holder{Agent: "coder-1", Incarnation: 1, Role: "coder"}
	bob    = team.Holder{Agent: "tester-1", Incarnation: 1, Role: "tester"}
	leader = team.Actor{Holder: team.Holder{Agent: team.Leader}, Leads: true}
)

// open returns a new team's board, with what it is stored in.
func open(t *testing.T) (*board.Board, *broker.Storage) {
	t.Helper()
	bt := brokertest.Team(t, "t")
	return board.New(bt.Bucket, board.Options{}), bt
}

// add creates one task that depends on deps.
func add(t *testing.T, b *board.Board, deps ...team.TaskID) team.Task {
	t.Helper()
	tasks, err := b.Create(t.Context(), "leader", team.NewTask{Title: "任务 🚀", Dependencies: deps})
	if err != nil {
		t.Fatal(err)
	}
	return tasks[0]
}

func get(t *testing.T, b *board.Board, id team.TaskID) team.Task {
	t.Helper()
	task, err := b.Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return task
}

// done claims and completes the task as h.
func done(t *testing.T, b *board.Board, id team.TaskID, h team.Holder) team.Task {
	t.Helper()
	task, err := b.Claim(t.Context(), id, h)
	if err == nil {
		task, err = b.Complete(t.Context(), id, h, task.Epoch, team.Done{Summary: "done"})
	}
	if err != nil {
		t.Fatal(err)
	}
	return task
}

func wantCode(t *testing.T, what string, err error, want team.Code) {
	t.Helper()
	if team.CodeOf(err) != want {
		t.Errorf("%s: %v (%s), want %q", what, err, team.CodeOf(err), want)
	}
}

// atOnce runs n calls of f together and returns their errors by code; ok is "".
func atOnce(n int, f func(i int) error) map[team.Code]int {
	var mu sync.Mutex
	var wg sync.WaitGroup
	codes := map[team.Code]int{}
	gate := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-gate
			err := f(i)
			code := team.CodeOf(err)
			if err != nil && code == "" {
				code = team.Code("without a code: " + err.Error())
			}
			mu.Lock()
			codes[code]++
			mu.Unlock()
		})
	}
	close(gate)
	wg.Wait()
	return codes
}

func TestClaimConflict(t *testing.T) {
	b, _ := open(t)
	task := add(t, b)
	codes := atOnce(32, func(i int) error {
		_, err := b.Claim(t.Context(), task.ID, team.Holder{Agent: team.AgentID(fmt.Sprintf("coder-%d", i)), Incarnation: 1})
		return err
	})
	if codes[""] != 1 || codes[team.Conflict] != 31 {
		t.Fatalf("32 claims of one task: %v, want 1 ok and 31 conflict", codes)
	}
	held := get(t, b, task.ID)
	if held.Epoch != 1 || held.Status != team.InProgress {
		t.Errorf("after the race: %+v", held)
	}
	_, err := b.ClaimAt(t.Context(), task, ann) // as an offer that came late
	wantCode(t, "claim at an old revision", err, team.Conflict)
	if after := get(t, b, task.ID); after.Revision != held.Revision {
		t.Error("a lost claim wrote something")
	}
}

func TestClaimRefused(t *testing.T) {
	b, _ := open(t)
	first, second := add(t, b), add(t, b)
	third := add(t, b, first.ID, second.ID)
	done(t, b, first.ID, ann)

	_, err := b.Claim(t.Context(), third.ID, ann)
	wantCode(t, "claim of a blocked task", err, team.Blocked)
	if s := fmt.Sprint(err); !strings.Contains(s, "T-002 (pending)") || strings.Contains(s, "T-001") {
		t.Errorf("the error %q must name what it waits for, and only that", s)
	}
	_, err = b.Claim(t.Context(), "T-077", ann)
	wantCode(t, "claim of an unknown task", err, team.NotFound)
	_, err = b.Claim(t.Context(), first.ID, bob)
	wantCode(t, "claim of a completed task", err, team.Conflict)

	done(t, b, second.ID, bob)
	if _, err := b.Claim(t.Context(), third.ID, ann); err != nil {
		t.Errorf("claim once the last dependency is completed: %v", err)
	}

	tasks, err := b.Create(t.Context(), "leader", team.NewTask{Title: "for testers", Role: "tester"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = b.Claim(t.Context(), tasks[0].ID, ann)
	wantCode(t, "claim by another role", err, team.PermissionDenied)
}

// After a reap the former holder's every write is refused, before and after the
// task has a new holder and is completed.
func TestLateWrites(t *testing.T) {
	b, _ := open(t)
	ctx := t.Context()
	id := add(t, b).ID
	held, err := b.Claim(ctx, id, ann)
	if err != nil {
		t.Fatal(err)
	}
	late := func(when string) {
		t.Helper()
		before := get(t, b, id)
		_, err := b.Complete(ctx, id, ann, held.Epoch, team.Done{Summary: "late"})
		wantCode(t, "complete "+when, err, team.Conflict)
		_, err = b.Release(ctx, id, team.Actor{Holder: ann}, held.Epoch, team.Freed{Reason: "late"})
		wantCode(t, "release "+when, err, team.Conflict)
		_, err = b.Fail(ctx, id, team.Actor{Holder: ann}, held.Epoch, team.Freed{Reason: "late"})
		wantCode(t, "fail "+when, err, team.Conflict)
		if after := get(t, b, id); after.Revision != before.Revision {
			t.Errorf("%s: a refused write was stored", when)
		}
	}
	if err := b.Reap(ctx, id, held.Epoch, team.Freed{Reason: "silent", Attempt: true}); err != nil {
		t.Fatal(err)
	}
	if freed := get(t, b, id); freed.Status != team.Pending || freed.Epoch != held.Epoch+1 || freed.Attempts != 1 {
		t.Errorf("reaped: %+v", freed)
	}
	late("after the reap")
	if err := b.Reap(ctx, id, held.Epoch, team.Freed{Reason: "silent", Attempt: true}); err != nil {
		t.Errorf("a reap that comes again: %v", err)
	}
	next, err := b.Claim(ctx, id, bob)
	if err != nil {
		t.Fatal(err)
	}
	late("after another's claim")
	if err := b.Reap(ctx, id, held.Epoch, team.Freed{Reason: "silent", Attempt: true}); err != nil {
		t.Errorf("a reap of a former epoch: %v", err)
	}
	if now := get(t, b, id); !now.HeldBy(bob) || now.Attempts != 1 {
		t.Errorf("a reap of a former epoch hit the present holder: %+v", now)
	}
	if _, err := b.Complete(ctx, id, bob, next.Epoch, team.Done{Summary: "done"}); err != nil {
		t.Fatal(err)
	}
	late("after another completed it")
	_, err = b.Complete(ctx, id, team.Holder{Agent: "coder-9", Incarnation: 1}, 0, team.Done{Summary: "never held"})
	wantCode(t, "complete by one who never held it", err, team.InvalidState)
}

func TestAdopt(t *testing.T) {
	b, _ := open(t)
	ctx := t.Context()
	id := add(t, b).ID
	old, err := b.Claim(ctx, id, ann)
	if err != nil {
		t.Fatal(err)
	}
	again := ann
	again.Incarnation++
	got, err := b.Adopt(ctx, id, again, false)
	if err != nil || got.Incarnation != 2 || got.Epoch != old.Epoch+1 || got.Attempts != 0 {
		t.Fatalf("adopted = %+v, %v", got, err)
	}
	_, err = b.Complete(ctx, id, ann, old.Epoch, team.Done{Summary: "by the old incarnation"})
	wantCode(t, "complete by the old incarnation", err, team.Conflict)
	_, err = b.Adopt(ctx, id, ann, false)
	wantCode(t, "adopt by the old incarnation", err, team.InvalidState)
	if _, err := b.Complete(ctx, id, again, got.Epoch, team.Done{Summary: "done"}); err != nil {
		t.Error(err)
	}
}

func TestAttemptsOnTheBoard(t *testing.T) {
	b, _ := open(t)
	ctx := t.Context()
	id := add(t, b).ID
	for i, want := range []team.TaskStatus{team.Pending, team.Pending, team.Failed} {
		held, err := b.Claim(ctx, id, ann)
		if err != nil {
			t.Fatal(err)
		}
		got, err := b.Release(ctx, id, team.Actor{Holder: ann}, held.Epoch, team.Freed{Reason: fmt.Sprintf("turn limit %d", i), Attempt: true})
		if err != nil || got.Status != want || got.Attempts != i+1 {
			t.Fatalf("release %d: %s after %d attempts, %v, want %s", i, got.Status, got.Attempts, err, want)
		}
	}
	if got := get(t, b, id); !strings.Contains(got.Reason, "turn limit 2") {
		t.Errorf("reason is %q", got.Reason)
	}
}

func TestCancel(t *testing.T) {
	b, _ := open(t)
	ctx := t.Context()
	first, second := add(t, b).ID, add(t, b).ID
	held, err := b.Claim(ctx, second, ann)
	if err != nil {
		t.Fatal(err)
	}
	_, err = b.Cancel(ctx, first, team.Actor{Holder: ann}, "mine")
	wantCode(t, "cancel by a teammate", err, team.PermissionDenied)
	for _, id := range []team.TaskID{first, second} {
		if got, err := b.Cancel(ctx, id, leader, "not needed"); err != nil || got.Status != team.Cancelled || got.Reason != "not needed" {
			t.Errorf("cancel %s: %+v, %v", id, got, err)
		}
	}
	_, err = b.Complete(ctx, second, ann, held.Epoch, team.Done{Summary: "done"})
	wantCode(t, "complete of a cancelled task", err, team.InvalidState)
	third := add(t, b, first).ID
	_, err = b.Claim(ctx, third, ann)
	wantCode(t, "claim behind a cancelled task", err, team.Blocked)
}

// Work that a former holder adds is no new end of the task, nor the act of the agent that took it: rules and notices judge by who did that.
func TestLeftIsNoEnd(t *testing.T) {
	b, _ := open(t)
	ctx := t.Context()
	for name, end := range map[string]func(held team.Task) error{
		"cancelled": func(held team.Task) error { _, err := b.Cancel(ctx, held.ID, leader, ""); return err },
		"released":  func(held team.Task) error { _, err := b.Release(ctx, held.ID, leader, 0, team.Freed{}); return err },
		"failed":    func(held team.Task) error { _, err := b.Fail(ctx, held.ID, leader, 0, team.Freed{}); return err },
		"reaped":    func(held team.Task) error { return b.Reap(ctx, held.ID, held.Epoch, team.Freed{Keep: true}) },
	} {
		t.Run(name, func(t *testing.T) {
			held, err := b.Claim(ctx, add(t, b).ID, ann)
			if err == nil {
				err = end(held)
			}
			if err != nil {
				t.Fatal(err)
			}
			ended := get(t, b, held.ID)
			work := team.Try{By: ann.Agent, Epoch: held.Epoch, Host: "alpha", Unfinished: true}
			now, err := b.Left(ctx, held.ID, work)
			if err != nil || now.UpdatedBy != ended.UpdatedBy || now.UpdatedBy == ann.Agent || !now.UpdatedAt.After(ended.UpdatedAt) ||
				now.Status != ended.Status || len(now.Returned) != 1 || now.Returned[0] != work {
				t.Errorf("of %+v it makes %+v, %v", ended, now, err)
			}
			copies, err := b.History(ctx, held.ID)
			if err != nil {
				t.Fatal(err)
			}
			if steps, _ := explain.History(copies); steps[len(steps)-1].By != ann.Agent {
				t.Errorf("its history ends with %+v", steps[len(steps)-1])
			}
		})
	}
}

func TestEditRights(t *testing.T) {
	b, _ := open(t)
	ctx := t.Context()
	id := add(t, b).ID
	annActs := team.Actor{Holder: ann}
	title, meta := team.Edit{Title: new("新标题")}, team.Edit{Metadata: []byte(`{"step":1}`)}
	_, _, err := b.Edit(ctx, id, annActs, title)
	wantCode(t, "edit by a teammate", err, team.PermissionDenied)
	if got, _, err := b.Edit(ctx, id, leader, title); err != nil || got.Title != "新标题" {
		t.Errorf("edit by the leader: %+v, %v", got, err)
	}
	_, _, err = b.Edit(ctx, id, annActs, meta)
	wantCode(t, "metadata by one who does not hold it", err, team.PermissionDenied)
	if _, err := b.Claim(ctx, id, ann); err != nil {
		t.Fatal(err)
	}
	if got, _, err := b.Edit(ctx, id, annActs, meta); err != nil || string(got.Metadata) != `{"step":1}` {
		t.Errorf("metadata by the holder: %s, %v", got.Metadata, err)
	}
	_, _, err = b.Edit(ctx, id, leader, team.Edit{Title: new("另一个")})
	wantCode(t, "edit of a task in progress", err, team.Conflict)
	if _, changed, err := b.Edit(ctx, id, leader, title); err != nil || changed {
		t.Errorf("an edit that was made before it was claimed, repeated: %v, %v", changed, err)
	}
	_, _, err = b.Edit(ctx, "T-404", leader, title)
	wantCode(t, "edit of an unknown task", err, team.NotFound)
}

func TestAllOrder(t *testing.T) {
	b, bt := open(t)
	if tasks, err := b.All(t.Context()); err != nil || len(tasks) != 0 {
		t.Errorf("an empty board has %v, %v", tasks, err)
	}
	// The numbers around a thousand, without the thousand.
	writeSequence(t, bt, 998, nil)
	for range 3 {
		add(t, b)
	}
	tasks, err := b.All(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := ids(tasks), []team.TaskID{"T-998", "T-999", "T-1000"}; !slices.Equal(got, want) {
		t.Errorf("All is %v, want %v", got, want)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = b.All(ctx)
	if err == nil {
		t.Error("All with a context that has ended returned no error, so an empty list would pass for the truth")
	}
}

func ids(tasks []team.Task) []team.TaskID {
	all := make([]team.TaskID, len(tasks))
	for i, t := range tasks {
		all[i] = t.ID
	}
	return all
}
