package board_test

import (
	"math/rand/v2"
	"testing"

	"agentteam/pkg/board"
	"agentteam/pkg/broker/brokertest"
	"agentteam/pkg/subject"
	"agentteam/pkg/team"
)

// Whatever happens to the board between its looks, a scout finds what a reading of
// the whole board would choose.
func TestScout(t *testing.T) {
	bt := brokertest.Team(t, "t")
	b := board.New(bt, board.Options{})
	ctx := t.Context()
	scout := board.NewScout(board.New(bt, board.Options{}), "coder")
	rnd := rand.New(rand.NewPCG(1, 2))
	leads := team.Actor{Holder: team.Holder{Agent: team.Leader}, Leads: true}
	coder := team.Holder{Agent: "coder-1", Role: "coder", Incarnation: 1}
	var all []team.Task
	some := func() team.Task { return all[rnd.IntN(len(all))] }
	change := []func(){
		func() {
			n := team.NewTask{Title: "x", Priority: rnd.IntN(3), Role: []string{"", "coder", "tester"}[rnd.IntN(3)]}
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
		func() { _, _ = b.Release(ctx, some().ID, leads, 0, "again", false) },
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
			if v.Claimable("coder") && (want.ID == "" || v.Before(want.Task)) {
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
