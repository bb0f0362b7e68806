package board_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"

	"agentteam/pkg/board"
	"agentteam/pkg/broker"
	"agentteam/pkg/broker/brokertest"
	"agentteam/pkg/subject"
	"agentteam/pkg/team"
)

// 64 claimers in 8 processes over 1,000 tasks, a third of which depend on others:
// each task is claimed exactly once, by one who holds no other, after its
// dependencies; and nobody gets an error other than conflict, blocked and busy.
func TestStress(t *testing.T) {
	if testing.Short() {
		t.Skip("8 processes")
	}
	url := brokertest.Server(t)
	bt, err := brokertest.Connect(t, url).Make(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}
	b := board.New(bt, board.Options{})
	createStressTasks(t, b)

	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	won := map[team.TaskID][]team.AgentID{}
	codes := map[team.Code]int{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := range stressProcesses {
		wg.Go(func() {
			cmd := exec.CommandContext(t.Context(), self)
			cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d %s", stressEnv, i, url))
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			var got tally
			if err = errors.Join(err, json.Unmarshal(out, &got)); err != nil {
				t.Errorf("process %d: %v\n%s", i, err, &stderr)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			for agent, ids := range got.Won {
				for _, id := range ids {
					won[id] = append(won[id], agent)
				}
			}
			for code, n := range got.Codes {
				codes[code] += n
			}
		})
	}
	wg.Wait()
	t.Logf("errors of %d claimers: %v", stressProcesses*stressClaimers, codes)
	for code, n := range codes {
		if !slices.Contains([]team.Code{team.Conflict, team.Blocked, team.Busy}, code) {
			t.Errorf("%d errors %q", n, code)
		}
	}
	for n := range stressTasks {
		if id := team.MakeTaskID(n + 1); len(won[id]) != 1 {
			t.Errorf("%s was completed by %v, want exactly one", id, won[id])
		}
	}
	judgeHistory(t, bt, won)
}

func createStressTasks(t *testing.T, b *board.Board) {
	t.Helper()
	for n := 0; n < stressTasks; {
		var call []team.NewTask
		for range 100 {
			n++
			task := team.NewTask{Title: fmt.Sprintf("任务 %d 🚀", n), Priority: n % 3}
			if n%3 == 0 && n > 100 { // on tasks of an earlier call
				task.Dependencies = []team.TaskID{team.MakeTaskID(n - 100), team.MakeTaskID(1 + n/2)}
			}
			call = append(call, task)
		}
		if _, err := b.Create(t.Context(), "leader", call...); err != nil {
			t.Fatal(err)
		}
	}
}

// judgeHistory reads every write of every task, in order, as the bucket keeps
// them, and holds the rules against what really happened.
func judgeHistory(t *testing.T, bt *broker.Team, won map[team.TaskID][]team.AgentID) {
	t.Helper()
	now := map[team.TaskID]team.Task{}
	holds := map[team.AgentID]team.TaskID{}
	claims := map[team.TaskID]int{}
	end := errors.New("end")
	last, err := bt.Bucket.LastSeq(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	err = bt.Bucket.Changes(t.Context(), 1, func(e broker.Entry) error {
		if kind, _ := subject.ParseKey(e.Key); kind == subject.Task {
			task, err := board.Decode(e)
			if err != nil {
				return err
			}
			judgeWrite(t, now, task)
			switch task.Status {
			case team.InProgress:
				claims[task.ID]++
				if other, ok := holds[task.Assignee]; ok {
					t.Errorf("%s claimed %s while it held %s", task.Assignee, task.ID, other)
				}
				holds[task.Assignee] = task.ID
			case team.Completed:
				delete(holds, task.Assignee)
				if !slices.Equal(won[task.ID], []team.AgentID{task.Assignee}) {
					t.Errorf("%s was completed by %s, and %v were told that they did", task.ID, task.Assignee, won[task.ID])
				}
			}
			now[task.ID] = task
		}
		if e.Revision == last {
			return end
		}
		return nil
	}, nil, ">")
	if !errors.Is(err, end) {
		t.Fatal(err)
	}
	for n := range stressTasks {
		id := team.MakeTaskID(n + 1)
		if claims[id] != 1 || now[id].Status != team.Completed {
			t.Errorf("%s was claimed %d times and is %s", id, claims[id], now[id].Status)
		}
	}
}

// judgeWrite checks one write against the one before and the tasks as they stood.
func judgeWrite(t *testing.T, now map[team.TaskID]team.Task, task team.Task) {
	t.Helper()
	before, ok := now[task.ID]
	switch {
	case !ok && task.Status == team.Pending:
	case before.Status == team.Pending && task.Status == team.InProgress && task.Epoch == before.Epoch+1:
	case before.Status == team.InProgress && task.Status == team.Completed && task.Assignee == before.Assignee && task.Epoch == before.Epoch:
	default:
		t.Errorf("%s went from %q (%s) to %s (%s)", task.ID, before.Status, before.Assignee, task.Status, task.Assignee)
	}
	if task.Status != team.InProgress {
		return
	}
	for _, d := range task.Dependencies {
		if now[d].Status != team.Completed {
			t.Errorf("%s was claimed while its dependency %s was %s", task.ID, d, now[d].Status)
		}
	}
}
