package board_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"agentteam/pkg/store/board"
	"agentteam/pkg/store/board/boardtest"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/team"
)

// claimsEnv is how many claims TestClaims makes (make test-claims).
const claimsEnv = "AGENTTEAM_TEST_CLAIMS"

// So many claims by 64 workers that a rule which is broken once in a million is
// seen broken. Each task is claimed some hundred times before it is completed, so
// the bucket forgets most of its writes and the judge must see them as they come.
func TestClaims(t *testing.T) {
	if testing.Short() {
		t.Skip("1,500 claims")
	}
	count := 1500
	if s := os.Getenv(claimsEnv); s != "" {
		if _, err := fmt.Sscan(s, &count); err != nil {
			t.Fatalf("%s: %v", claimsEnv, err)
		}
	}
	const hands, perTask = 64, 100
	tasks := max(1, count/perTask)
	url := brokertest.NewCluster(t, 1).URL()
	bt, err := brokertest.Connect(t, url).Make(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}
	recorder := boardtest.Record(t, bt.Bucket)
	c := &claims{board: board.New(bt.Bucket, board.Options{}), copies: make([]atomic.Pointer[team.Task], tasks), perTask: perTask, recorder: recorder}
	for n := 0; n < tasks; n += 100 {
		created, err := c.board.Create(t.Context(), "leader", slices.Repeat([]team.NewTask{{Title: "任务 🚀"}}, min(100, tasks-n))...)
		if err != nil {
			t.Fatal(err)
		}
		for _, task := range created {
			_ = c.wrote(task, nil)
		}
	}
	var wg sync.WaitGroup
	begun := time.Now()
	for i := range hands {
		bt, err := brokertest.Connect(t, url).Open(t.Context(), "t")
		if err != nil {
			t.Fatal(err)
		}
		h := board.NewClaimSlot(t.Context(), board.New(bt.Bucket, board.Options{}), team.Holder{Agent: team.AgentID(fmt.Sprintf("coder-%d", i)), Incarnation: 1})
		wg.Go(func() {
			if err := c.run(t.Context(), h); err != nil {
				t.Errorf("%s: %v", h.Holder().Agent, err)
			}
		})
	}
	wg.Wait()
	took := time.Since(begun)
	if n := recorder.Judge(t); n[team.Completed] != tasks {
		t.Errorf("tasks by status: %v, want %d completed", n, tasks)
	}
	t.Logf("%d claims of %d tasks in %.0f s, %.0f a second, %d lost tries; all judged after %.0f s",
		c.made.Load(), tasks, took.Seconds(), float64(c.made.Load())/took.Seconds(), c.lost.Load(), time.Since(begun).Seconds())
}

// claims is what the hands share: the newest copy of each task that one of them has
// seen, so that most claims are made without a reading, as offers are.
type claims struct {
	board      *board.Board
	copies     []atomic.Pointer[team.Task]
	perTask    uint64
	recorder   *boardtest.Recorder
	made, lost atomic.Int64
}

func (c *claims) saw(t team.Task, err error) error {
	if err == nil {
		c.copies[t.ID.Number()-1].Store(&t)
	}
	return err
}

// wrote is saw for a copy that the caller has written itself.
func (c *claims) wrote(t team.Task, err error) error {
	if err == nil {
		c.recorder.Acknowledged(boardtest.AckOf(t))
	}
	return c.saw(t, err)
}

// run claims and releases tasks, and completes those whose epoch says that they
// were claimed often enough, until all are completed. Now and then it takes a task
// from its holder.
func (c *claims) run(ctx context.Context, h *board.ClaimSlot) error {
	const among = 1000 // so many tasks at a time are claimed by 64 hands
	for first := 0; first < len(c.copies); {
		t := *c.copies[first+rand.N(min(among, len(c.copies)-first))].Load()
		switch {
		case c.copies[first].Load().Status == team.Completed:
			first++
		case t.Status == team.InProgress && rand.N(100) == 0:
			err := c.board.Reap(ctx, t.ID, t.Epoch, team.Freed{Reason: "silent"})
			if err = errors.Join(err, c.saw(c.board.Get(ctx, t.ID))); err != nil {
				return err
			}
		case t.Status == team.Pending:
			if err := c.claim(ctx, h, t); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *claims) claim(ctx context.Context, h *board.ClaimSlot, t team.Task) error {
	claimed, err := h.Take(ctx, t)
	if errors.Is(err, team.Conflict) {
		c.lost.Add(1)
		return c.saw(c.board.Get(ctx, t.ID))
	}
	if err := c.wrote(claimed, err); err != nil {
		return err
	}
	c.made.Add(1)
	if claimed.Epoch > c.perTask { // one more, for those raised by taking a task away
		err = c.wrote(h.Complete(ctx, t.ID, team.Done{Summary: "完成 ✅"}))
	} else {
		err = c.wrote(h.Release(ctx, t.ID, team.Freed{Reason: "not yet"}))
	}
	if errors.Is(err, team.Conflict) { // it was taken away
		err = c.saw(c.board.Get(ctx, t.ID))
	}
	return err
}
