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

	"agentteam/pkg/store/board"
	"agentteam/pkg/store/board/boardtest"
	"agentteam/pkg/store/broker/brokertest"
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
	recorder := boardtest.Record(t, bt.Bucket)
	b := board.New(bt.Bucket, board.Options{})
	acked := createStressTasks(t, b)

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
			acked = append(acked, got.Acked...)
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
	if n := recorder.Judge(t, acked...); n[team.Completed] != stressTasks {
		t.Errorf("tasks by status: %v, want all completed", n)
	}
}

func createStressTasks(t *testing.T, b *board.Board) (acked []boardtest.Ack) {
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
		created, err := b.Create(t.Context(), "leader", call...)
		if err != nil {
			t.Fatal(err)
		}
		for _, task := range created {
			acked = append(acked, boardtest.AckOf(task))
		}
	}
	return acked
}
