package index_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"agentteam/pkg/store/board"
	"agentteam/pkg/store/board/index"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/team"
)

// Several dependencies are completed at once, by agents none of which can know that
// it is the last: the dependent is offered all the same.
func TestLastOfSeveral(t *testing.T) {
	bt := brokertest.Team(t, "t")
	ctx, cancel := context.WithCancel(t.Context())
	b := board.New(bt.Bucket, board.Options{})
	offers := make(chan team.Task, 10)
	x := index.New(index.Options{Team: bt, Finish: b.FinishCreate, Send: func(_ team.AgentID, o team.Task) error { offers <- o; return nil }})
	done := make(chan error, 1)
	go func() { done <- x.Run(ctx) }()
	defer func() {
		cancel()
		if err := brokertest.Receive(t, "the index ends", done); err != nil {
			t.Error(err)
		}
	}()

	waiter := team.Holder{Agent: "waiter", Incarnation: 1}
	wait := board.NewClaimSlot(ctx, b, waiter)
	workers := []team.Holder{{Agent: "a", Incarnation: 1}, {Agent: "b", Incarnation: 1}, {Agent: "c", Incarnation: 1}}
	for round := range 20 {
		tasks, err := b.Create(ctx, "leader", team.NewTask{Title: "1"}, team.NewTask{Title: "2"}, team.NewTask{Title: "3"},
			team.NewTask{Title: "last", After: []int{0, 1, 2}})
		if err != nil {
			t.Fatal(err)
		}
		var held, ended sync.WaitGroup
		held.Add(len(workers))
		for i, w := range workers {
			ended.Go(func() {
				_, err := b.Claim(ctx, tasks[i].ID, w)
				held.Done()
				held.Wait()
				if err == nil {
					_, err = b.Complete(ctx, tasks[i].ID, w, 0, team.Done{Summary: "done"})
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		ended.Wait()
		_, seq := wait.Now()
		x.Hear(team.Heartbeat{AgentID: waiter.Agent, Incarnation: 1, N: uint64(round + 1), State: team.Idle, BoardSeq: seq})
		for deadline, taken := time.After(brokertest.Longest), false; !taken; {
			select {
			case o := <-offers:
				_, err := wait.Take(ctx, o)
				if errors.Is(err, team.Conflict) {
					continue // offered before the feed showed that it was taken
				}
				if err != nil || o.Title != "last" {
					t.Fatalf("offered %s (%s): %v", o.ID, o.Title, err)
				}
				if _, err := wait.Complete(ctx, o.ID, team.Done{Summary: "done"}); err != nil {
					t.Fatal(err)
				}
				taken = true
			case <-deadline:
				t.Fatalf("round %d: nobody was offered the task whose dependencies are all completed", round+1)
			}
		}
	}
}
