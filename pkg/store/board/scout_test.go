package board_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"agentteam/pkg/store/board"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

// Whatever happens to the board between its looks, a scout finds what a reading of
// the whole board would choose.
func TestScout(t *testing.T) {
	bt := brokertest.Team(t, "t")
	b := board.New(bt.Bucket, board.Options{})
	ctx := t.Context()
	scout := board.NewScout(board.New(bt.Bucket, board.Options{}), "coder-1", team.Role{Name: "coder"}, nil)
	rnd := rand.New(rand.NewPCG(1, 2))
	leads := team.Actor{Holder: team.Holder{Agent: team.Leader}, Leads: true}
	coder := team.Holder{Agent: "coder-1", Role: "coder", Incarnation: 1}
	var all []team.Task
	some := func() team.Task { return all[rnd.IntN(len(all))] }
	change := []func(){
		func() {
			n := team.NewTask{Title: "x", Priority: rnd.IntN(3), Role: []string{"", "coder", "tester"}[rnd.IntN(3)]}
			n.ReservedFor = []team.AgentID{"", "", "coder-1", "coder-2"}[rnd.IntN(4)]
			for range rnd.IntN(3) {
				if len(all) > 0 {
					n.Dependencies = append(n.Dependencies, some().ID)
				}
			}
			created, err := b.Create(ctx, team.Leader, n)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, created...)
		},
		func() { _, _ = b.Claim(ctx, some().ID, coder) },
		func() { _, _ = b.Claim(ctx, some().ID, coder) },
		func() {
			if task, err := b.Get(ctx, some().ID); err == nil {
				_, _ = b.Complete(ctx, task.ID, coder, task.Epoch, team.Done{Summary: "done"})
			}
		},
		func() { _, _ = b.Release(ctx, some().ID, leads, 0, team.Freed{Reason: "again"}) },
		func() {
			_, _ = b.Reserve(ctx, some().ID, []team.AgentID{"", "coder-1", "coder-2"}[rnd.IntN(3)], leads)
		},
		func() {
			if rnd.IntN(4) == 0 {
				_, _ = b.Cancel(ctx, some().ID, leads, "not needed")
			}
		},
	}
	find := func() (ok bool) {
		t.Helper()
		tasks, err := b.All(ctx)
		if err != nil {
			t.Fatal(err)
		}
		var want team.TaskView
		for _, v := range team.View(tasks) {
			if own, first := v.ReservedFor != "", want.ReservedFor != ""; v.Claimable("coder-1", "coder") &&
				(want.ID == "" || own && !first || own == first && v.Before(want.Task)) {
				want = v
			}
		}
		id, ok, err := scout.Find(ctx)
		if err != nil || id != want.ID || ok != (want.ID != "") {
			t.Fatalf("found %q (%v, %v), want %q", id, ok, err, want.ID)
		}
		return ok
	}
	const rounds = 150
	found := 0
	for range rounds {
		for range rnd.IntN(5) {
			if f := rnd.IntN(len(change)); f == 0 || len(all) > 0 {
				change[f]()
			}
		}
		if find() {
			found++
		}
	}
	if found < rounds/5 || found == rounds {
		t.Errorf("in %d of %d rounds there was something to find: that tells little", found, rounds)
	}
	for _, task := range all { // one by one, what cannot be read cannot be claimed
		now, err := b.Get(ctx, task.ID)
		if err == nil {
			_, err = bt.Bucket.Put(ctx, subject.KeyTask(task.ID), []byte("{"), now.Revision)
		}
		if err != nil {
			t.Fatal(err)
		}
		if task.ID.Number()%20 == 0 {
			find()
		}
	}
	if find() {
		t.Error("a task was found on a board without a readable one")
	}
}

// A scout reads the whole board once, and after that only what was written since.
func TestScoutCosts(t *testing.T) {
	b, bt := open(t)
	for range 100 {
		add(t, b)
	}
	scout := board.NewScout(b, "coder-1", team.Role{Name: "coder"}, nil)
	finds := func(want team.TaskID) (read uint64) {
		t.Helper()
		before := bt.Conn.NATS().Stats().InMsgs
		if id, ok, err := scout.Find(t.Context()); err != nil || !ok || id != want {
			t.Fatalf("found %q, %v, %v, want %s", id, ok, err, want)
		}
		return bt.Conn.NATS().Stats().InMsgs - before
	}
	if read := finds("T-001"); read < 100 {
		t.Errorf("the first look read %d messages for 100 tasks", read)
	}
	for _, id := range []team.TaskID{"T-001", "T-002"} {
		done(t, b, id, ann)
	}
	if read := finds("T-003"); read < 4 || read > 20 {
		t.Errorf("the second look read %d messages for 4 writes", read)
	}
}

// A scout finds tasks whose creator died before it created their keys.
func TestScoutFinishesCreation(t *testing.T) {
	b, bt := open(t)
	writeSequence(t, bt, 3, []team.Task{
		team.NewTask{Title: "one"}.Task("T-001", "leader", time.Now()), team.NewTask{Title: "two"}.Task("T-002", "leader", time.Now())})
	if id, ok, err := board.NewScout(b, "coder-1", team.Role{Name: "coder"}, nil).Find(t.Context()); err != nil || !ok || id != "T-001" {
		t.Errorf("found %q, %v, %v, want T-001", id, ok, err)
	}
}

// What waits for a task is not found if that was completed and is so no more.
func TestScoutForgetsCompletion(t *testing.T) {
	b, bt := open(t)
	first := add(t, b)
	second := add(t, b, first.ID)
	held := done(t, b, first.ID, ann)
	scout := board.NewScout(b, "coder-1", team.Role{Name: "coder"}, nil)
	if id, ok, err := scout.Find(t.Context()); err != nil || !ok || id != second.ID {
		t.Fatalf("found %q, %v, %v, want %s", id, ok, err, second.ID)
	}
	if _, err := bt.Bucket.Put(t.Context(), subject.KeyTask(first.ID), []byte("{"), held.Revision); err != nil {
		t.Fatal(err)
	}
	if id, ok, err := scout.Find(t.Context()); err != nil || ok {
		t.Errorf("its dependency is damaged, and found is %q, %v", id, err)
	}
}

// A member that looks by itself leaves alone what it has put back, and one that only looks
// leaves tasks for any role to those that can do them.
func TestScoutRests(t *testing.T) {
	bt := brokertest.Team(t, "t")
	b := board.New(bt.Bucket, board.Options{})
	tasks, err := b.Create(t.Context(), "leader", team.NewTask{Title: "one"}, team.NewTask{Title: "two"})
	if err != nil {
		t.Fatal(err)
	}
	ann := team.Holder{Agent: "coder-1", Incarnation: 1}
	held, err := b.Claim(t.Context(), tasks[0].ID, ann)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.GiveBack(t.Context(), held.ID, ann, held.Epoch, team.GiveBack{Freed: team.Freed{Reason: "cannot"}}); err != nil {
		t.Fatal(err)
	}
	looks := team.Role{Name: "explorer", Tools: []string{"read_file"}}
	for name, tt := range map[string]struct {
		agent  team.AgentID
		role   team.Role
		others bool
		want   team.TaskID
	}{
		"the one that put it back": {"coder-1", team.Role{Name: "coder"}, true, "T-002"},
		"another one":              {"coder-2", team.Role{Name: "coder"}, true, "T-001"},
		"who only looks":           {"explorer-1", looks, true, ""},
		"who only looks, alone":    {"explorer-1", looks, false, "T-001"},
	} {
		scout := board.NewScout(b, tt.agent, tt.role, func(context.Context, team.Task) bool { return tt.others })
		if id, ok, err := scout.Find(t.Context()); err != nil || id != tt.want || ok != (tt.want != "") {
			t.Errorf("%s: found %q, %v, %v", name, id, ok, err)
		}
	}
}
