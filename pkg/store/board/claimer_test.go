package board_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"agentteam/pkg/store/board"
	"agentteam/pkg/store/board/boardtest"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

const (
	stressProcesses = 8
	stressClaimers  = 8 // in each process

	// stressEnv makes the test binary one of the processes: "<its number> <url>".
	stressEnv = "AGENTTEAM_BOARD_STRESS"
)

// stressTasks is how many tasks there are, in hundreds. It has no more than two sizes,
// since every claimer looks through all tasks after each change.
var stressTasks = min(1000, size(400, 1000))

// processes are what the test binary is in place of a test, by the variable that
// says so.
var processes = map[string]func(value string) error{stressEnv: stressProcess, workerEnv: runWorker, frozenEnv: holdAndComplete}

func TestMain(m *testing.M) {
	for env, run := range processes {
		if value := os.Getenv(env); value != "" {
			if err := run(value); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			return
		}
	}
	os.Exit(m.Run())
}

// tally is what the claimers of a process report: the tasks that each completed,
// how often each error came, and every write that was acknowledged.
type tally struct {
	Won   map[team.AgentID][]team.TaskID
	Codes map[team.Code]int
	Acked []boardtest.Ack
}

// stressProcess is one of the processes: claimers on one connection, which print
// their tally.
func stressProcess(who string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	var number int
	var url string
	if _, err := fmt.Sscan(who, &number, &url); err != nil {
		return err
	}
	c, err := broker.Connect(ctx, broker.Options{URL: url, Wait: time.Minute})
	if err != nil {
		return err
	}
	defer c.Close()
	bt, err := c.Open(ctx, "t")
	if err != nil {
		return err
	}
	seen := newFeed(ctx, bt.Bucket)
	sum := tally{Won: map[team.AgentID][]team.TaskID{}, Codes: map[team.Code]int{}}
	errs := make([]error, stressClaimers)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := range stressClaimers {
		wg.Go(func() {
			h := team.Holder{Agent: team.AgentID(fmt.Sprintf("coder-%d", number*stressClaimers+i)), Incarnation: 1}
			// One claimer of each process begins at the same place.
			cl := &claimer{feed: seen, hand: board.NewClaimSlot(ctx, board.New(bt.Bucket, board.Options{}), h),
				offset: i * stressTasks / stressClaimers, tried: map[team.TaskID]bool{}, codes: map[team.Code]int{}}
			errs[i] = cl.run(ctx)
			mu.Lock()
			defer mu.Unlock()
			sum.Won[h.Agent] = cl.won
			for code, n := range cl.codes {
				sum.Codes[code] += n
			}
			sum.Acked = append(sum.Acked, cl.acked...)
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(sum)
}

// feed is the board as the bucket's feed has shown it so far, which is a little
// behind.
type feed struct {
	mu    sync.Mutex
	moved sync.Cond
	tasks []team.Task // by number
	err   error
}

func newFeed(ctx context.Context, b *broker.Bucket) *feed {
	f := &feed{tasks: make([]team.Task, stressTasks)}
	f.moved.L = &f.mu
	change := func(g func()) {
		f.mu.Lock()
		g()
		f.mu.Unlock()
		f.moved.Broadcast()
	}
	go func() {
		err := b.Watch(ctx, func(e broker.Entry) error {
			task, err := board.Decode(e)
			change(func() { f.tasks[task.ID.Number()-1] = task })
			return err
		}, nil, subject.AllTasks)
		change(func() { f.err = errors.Join(errors.New("the feed has ended"), err) })
	}()
	return f
}

// claimer takes whatever it can get, until all is completed. What is blocked it
// tries once all the same, so that it is refused.
type claimer struct {
	feed   *feed
	hand   *board.ClaimSlot
	offset int
	tried  map[team.TaskID]bool // although it was blocked
	won    []team.TaskID
	codes  map[team.Code]int
	acked  []boardtest.Ack
}

func (c *claimer) run(ctx context.Context) error {
	lost := map[team.TaskID]uint64{} // at which revision somebody else was first
	for n := 0; ; n++ {
		task, blocked, err := c.next(lost)
		if err != nil || task.ID == "" {
			return err
		}
		var claimed team.Task
		if n%2 == 0 || blocked {
			claimed, err = c.hand.Claim(ctx, task.ID)
		} else { // as an offer is taken, without reading it again
			claimed, err = c.hand.Take(ctx, task)
		}
		if code := team.CodeOf(err); err == nil {
			completed, err := c.hand.Complete(ctx, task.ID, team.Done{Summary: "完成 ✅"})
			if err != nil {
				return fmt.Errorf("complete what it has claimed: %w", err)
			}
			c.won = append(c.won, task.ID)
			c.acked = append(c.acked, boardtest.AckOf(claimed), boardtest.AckOf(completed))
		} else if code == "" {
			return err
		} else {
			c.codes[code]++
			if !blocked {
				lost[task.ID] = task.Revision
			}
		}
	}
}

// next waits for a task to try; it returns none once all are completed.
func (c *claimer) next(lost map[team.TaskID]uint64) (task team.Task, blocked bool, err error) {
	f := c.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	for ; f.err == nil; f.moved.Wait() {
		completed := 0
		for i := range f.tasks {
			task := f.tasks[(c.offset+i)%stressTasks]
			if task.Status == team.Completed {
				completed++
			}
			if task.Status != team.Pending || lost[task.ID] == task.Revision {
				continue
			}
			blocked := slices.ContainsFunc(task.Dependencies, func(d team.TaskID) bool { return f.tasks[d.Number()-1].Status != team.Completed })
			if !blocked || !c.tried[task.ID] {
				c.tried[task.ID] = c.tried[task.ID] || blocked
				return task, blocked, nil
			}
		}
		if completed == stressTasks {
			return team.Task{}, false, nil
		}
	}
	return team.Task{}, false, f.err
}
