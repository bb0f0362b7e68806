package board_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"
	"time"

	"agentteam/pkg/store/board/boardtest"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/team"
)

// longEnv makes the tests of many processes as many times longer as it says
// (make test-long).
const longEnv = "AGENTTEAM_TEST_LONG"

// size is how much a test does: little, or as many times the full size as longEnv says.
func size(little, full int) int {
	s := os.Getenv(longEnv)
	if s == "" {
		return little
	}
	factor, err := strconv.Atoi(s)
	if err != nil {
		panic(fmt.Sprintf("%s: %v", longEnv, err))
	}
	return factor * full
}

// Ten processes do this and that on one board while its server is killed and
// started again, and two of them are killed and come back as the next incarnation.
// The history is linearizable, and the feed shows no broken promise.
func TestLinearizable(t *testing.T) {
	if testing.Short() {
		t.Skip("10 processes")
	}
	t.Run("one server", func(t *testing.T) {
		c := brokertest.NewCluster(t, 1)
		run(t, c, size(200, 400), func(int) { c.Kill(0); c.Restart(0) })
	})
	t.Run("three servers", func(t *testing.T) {
		c := brokertest.NewCluster(t, 3)
		dead := -1
		run(t, c, size(150, 250), func(int) {
			if dead >= 0 {
				c.Restart(dead)
			}
			dead = c.Leader("KV_at-t")
			c.Kill(dead)
		})
	})
}

const workers = 10

// run starts the workers and calls disturb each time they have done 2,000 steps
// more, and first after 1,000.
func run(t *testing.T, c *brokertest.Cluster, steps int, disturb func(n int)) {
	bt, err := brokertest.Connect(t, c.URL()).Make(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}
	boardtest.KeepAll(t, bt)
	recorder := boardtest.Record(t, bt.Bucket)
	var history []step
	var acked []boardtest.Ack
	var mu sync.Mutex
	var wg sync.WaitGroup
	progress := make(chan struct{}, workers*steps)
	begun := time.Now()
	for i := range workers {
		wg.Go(func() {
			w := worker{URL: c.URL(), Agent: team.AgentID(fmt.Sprintf("coder-%d", i)), Inc: 1, Steps: steps}
			killAt := 0
			if i < 2 {
				killAt = steps * (i + 1) / 3
			}
			reports, err := w.process(t.Context(), killAt, progress)
			if err == nil && killAt > 0 {
				var more []report
				w.Inc, w.Steps, w.Create = 2, steps-len(reports), unanswered(reports)
				more, err = w.process(t.Context(), 0, progress)
				reports = append(reports, more...)
			}
			if err != nil {
				t.Errorf("%s: %v", w.Agent, err)
			}
			mu.Lock()
			defer mu.Unlock()
			for _, r := range reports {
				history = append(history, r.Step)
				if r.Op != "" && r.Step.Kind != "read" {
					acked = append(acked, boardtest.Ack{Task: r.Step.Task, Op: r.Op, Revision: r.Step.Got.Revision})
				}
			}
		})
	}
	all := make(chan struct{})
	go func() { wg.Wait(); close(all) }()
	for n, done := 1, false; !done; n++ {
		if n%2000 == 1000 {
			disturb(n)
		}
		select {
		case <-progress:
		case <-all:
			done = true
		}
	}
	took := time.Since(begun)
	history, unknown := merge(history)
	begun = time.Now()
	if err := linearizable(history, time.Minute); err != nil {
		t.Error(err)
	}
	counts := recorder.Judge(t, acked...)
	outcomes := map[string]int{}
	for _, s := range history {
		if s.Return == 0 {
			s.Code = "unknown"
		}
		outcomes[s.Kind+" "+cmp.Or(string(s.Code), "ok")]++
	}
	t.Logf("%d steps by %d processes in %v, checked in %v; tasks by status: %v; steps by outcome: %v",
		len(history), workers+2, took.Round(time.Millisecond), time.Since(begun).Round(time.Millisecond), counts, outcomes)
	for _, o := range []string{"take conflict", "take ok", "complete ok", "release ok", "reap ok", "create ok", "read not_found"} {
		if outcomes[o] == 0 {
			t.Errorf("the run had no %q and shows too little", o)
		}
	}
	if unknown == 0 {
		t.Error("the run had no step of unknown outcome and shows too little")
	}
}

// unanswered is the key of the create that was under way when the process ended.
func unanswered(reports []report) string {
	if n := len(reports); n > 0 && reports[n-1].Step.Kind == "create" && reports[n-1].Step.Return == 0 {
		return reports[n-1].Step.Key
	}
	return ""
}

// merge makes one step of the calls of a create that was repeated by a successor.
func merge(history []step) (merged []step, unknown int) {
	called := map[string]int64{}
	for _, s := range history {
		if s.Kind == "create" && s.Return == 0 {
			called[s.Key] = s.Call
		}
	}
	for _, s := range history {
		if s.Kind == "create" {
			if s.Return == 0 {
				continue
			}
			if call, ok := called[s.Key]; ok {
				s.Call = call
			}
		}
		if s.Return == 0 {
			unknown++
		}
		merged = append(merged, s)
	}
	return merged, unknown
}

// process runs the worker in a process of its own to its end or, with killAt, kills
// it before it has reported that many steps to their end, and returns its steps.
func (w worker) process(ctx context.Context, killAt int, progress chan<- struct{}) ([]report, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	value, err := json.Marshal(w)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), workerEnv+"="+string(value))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	var reports []report
	killed := false
	for dec := json.NewDecoder(out); ; {
		var r report
		if err := dec.Decode(&r); err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
				_ = cmd.Process.Kill()
			}
			break
		}
		if n := len(reports); n > 0 && reports[n-1].N == r.N {
			reports[n-1] = r
			progress <- struct{}{}
		} else {
			reports = append(reports, r)
		}
		if killAt > 0 && len(reports) >= killAt && !killed {
			killed = true
			_ = cmd.Process.Kill()
		}
	}
	if err := cmd.Wait(); err != nil && !killed {
		return reports, fmt.Errorf("%w\n%s", err, &stderr)
	}
	return reports, nil
}
