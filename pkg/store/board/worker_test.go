package board_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"agentteam/pkg/store/board"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/team"
)

// workerEnv makes the test binary a worker in a process of its own; its value is
// the worker as JSON.
const workerEnv = "AGENTTEAM_BOARD_WORKER"

// worker is one incarnation of an agent that does this and that on the board and
// tells every step twice on stdout: before it is taken, and with its outcome.
type worker struct {
	URL    string
	Agent  team.AgentID
	Inc    uint64
	Steps  int
	Create string // key of a create that its predecessor did not see the end of

	board *board.Board
	hand  *board.ClaimSlot
	last  int                       // number of the newest task it knows
	known map[team.TaskID]team.Task // as it read them last
	out   *json.Encoder
	told  int
}

// report is a line of a worker's stdout.
type report struct {
	N    int // of the step; the later report of a step replaces the earlier
	Op   string
	Step step
}

func runWorker(value string) error {
	w := &worker{known: map[team.TaskID]team.Task{}, out: json.NewEncoder(os.Stdout)}
	if err := json.Unmarshal([]byte(value), w); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	c, err := broker.Connect(ctx, broker.Options{URL: w.URL, Wait: time.Minute})
	if err != nil {
		return err
	}
	defer c.Close()
	bt, err := c.Open(ctx, "t")
	if err != nil {
		return err
	}
	w.board = board.New(bt.Bucket, board.Options{})
	w.hand = board.NewClaimSlot(ctx, w.board, team.Holder{Agent: w.Agent, Incarnation: w.Inc})
	if w.Create != "" {
		if err := w.create(ctx, w.Create); err != nil {
			return err
		}
	}
	if err := w.adopt(ctx); err != nil {
		return err
	}
	for w.told < w.Steps {
		if err := w.step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// step does one thing, to one of the newest tasks, so that the workers meet.
func (w *worker) step(ctx context.Context) error {
	held, holds := w.hand.Task()
	dice := rand.N(100)
	if holds && dice < 50 {
		return w.end(ctx, held)
	}
	if holds && dice < 60 {
		if _, err := w.hand.Confirm(ctx, held.ID); team.CodeOf(err) == "" {
			return err
		}
		return nil // whatever it says, the hand must go by it
	}
	if !holds && dice < 60 {
		for n := max(1, w.last-window); n <= w.last; n++ {
			if t := w.known[team.MakeTaskID(n)]; t.Status == team.Pending {
				delete(w.known, t.ID)
				return w.take(ctx, t)
			}
		}
	}
	id := team.MakeTaskID(1 + max(0, w.last-window) + rand.N(window+1))
	switch t := w.known[id]; {
	case dice < 70 && t.Status == team.InProgress:
		delete(w.known, id)
		return w.reap(ctx, t)
	case dice >= 97:
		return w.create(ctx, fmt.Sprintf("%s/%d/%d", w.Agent, w.Inc, w.told))
	}
	return w.read(ctx, id)
}

// window is how many of the newest tasks a worker looks at.
const window = 4

// do takes a step and tells of it. Refusals are outcomes like others; an outcome
// that is not known has no end.
func (w *worker) do(s step, f func() (team.Task, error)) (team.Task, error) {
	s.Agent, s.Inc, s.Call = w.Agent, w.Inc, time.Now().UnixNano()
	w.told++
	r := report{N: w.told, Step: s}
	if err := w.out.Encode(r); err != nil {
		return team.Task{}, err
	}
	t, err := f()
	r.Step.Return = time.Now().UnixNano()
	switch r.Step.Code = team.CodeOf(err); {
	case err == nil:
		r.Step.Got, r.Op = seenOf(t), t.Op
		if r.Step.Task == "" {
			r.Step.Task = t.ID
		}
	case r.Step.Code == "":
		return t, err
	case r.Step.Code == team.Unavailable:
		r.Step.Return = 0
	}
	return t, w.out.Encode(r)
}

func (w *worker) read(ctx context.Context, id team.TaskID) error {
	t, err := w.do(step{Kind: "read", Task: id}, func() (team.Task, error) { return w.board.Get(ctx, id) })
	if t.ID != "" {
		w.known[id], w.last = t, max(w.last, id.Number())
	}
	return err
}

// create repeats its call until it is answered: the key makes it one.
func (w *worker) create(ctx context.Context, key string) error {
	t, err := w.do(step{Kind: "create", Key: key}, func() (team.Task, error) {
		tasks, _, err := w.board.CreateOnce(ctx, w.Agent, key, team.NewTask{Title: "任务 🚀"})
		if err != nil {
			return team.Task{}, errors.Join(errors.New("create"), err)
		}
		return tasks[0], nil
	})
	w.known[t.ID], w.last = t, max(w.last, t.ID.Number())
	return err
}

func (w *worker) take(ctx context.Context, t team.Task) error {
	_, err := w.do(step{Kind: "take", Task: t.ID, Revision: t.Revision}, func() (team.Task, error) { return w.hand.Take(ctx, t) })
	return err
}

func (w *worker) adopt(ctx context.Context) error {
	called := time.Now().UnixNano()
	t, ok, err := w.hand.Adopt(ctx, "")
	if err != nil || !ok {
		return err
	}
	w.told++
	return w.out.Encode(report{N: w.told, Op: t.Op, Step: step{Kind: "adopt", Task: t.ID, Agent: w.Agent, Inc: w.Inc,
		Call: called, Return: time.Now().UnixNano(), Got: seenOf(t)}})
}

func (w *worker) reap(ctx context.Context, t team.Task) error {
	_, err := w.do(step{Kind: "reap", Task: t.ID, Epoch: t.Epoch}, func() (team.Task, error) {
		return team.Task{}, w.board.Reap(ctx, t.ID, t.Epoch, team.Freed{Reason: "silent"})
	})
	return err
}

// end ends the hold in some way. Now and then it does not wait for the answer.
func (w *worker) end(ctx context.Context, held team.Task) error {
	if rand.N(20) == 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(rand.N(int64(time.Millisecond))))
		defer cancel()
	}
	s := step{Task: held.ID, Epoch: held.Epoch}
	f := func() (team.Task, error) { return w.hand.Complete(ctx, held.ID, team.Done{Summary: "完成 ✅"}) }
	s.Kind = "complete"
	switch rand.N(6) {
	case 0:
		s.Kind = "fail"
		f = func() (team.Task, error) { return w.hand.Fail(ctx, held.ID, "cannot") }
	case 1, 2, 3:
		s.Kind = "release"
		f = func() (team.Task, error) { return w.hand.Release(ctx, held.ID, team.Freed{Reason: "not now"}) }
	}
	_, err := w.do(s, f)
	return err
}
