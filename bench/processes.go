package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"agentteam/pkg/child"
	"agentteam/pkg/roster"
	"agentteam/pkg/team"
)

const (
	starts     = 7
	idleBeats  = 3  // heard of every teammate before its memory counts
	memoryGoal = 25 // MiB
	mebibyte   = 1 << 20
)

// beat is a heartbeat and when this process heard it.
type beat struct {
	team.Beat
	at time.Time
}

// processes starts teammate processes one after the other, measures how long each
// takes to its first heartbeat, and, once all are idle, how much memory they hold.
// There is no raw figure: JetStream alone has no agents.
func processes(ctx context.Context, r *rig) ([]figure, error) {
	progress("processes: %d teammates", starts)
	conn, err := r.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	bt, err := r.makeTeam(ctx, conn, "processes")
	if err != nil {
		return nil, err
	}
	heard := make(chan beat, 1000) // many more than come while nobody reads
	stop, err := roster.New(bt).Listen(team.Everyone, func(b team.Beat) { heard <- beat{b, time.Now()} })
	if err != nil {
		return nil, err
	}
	defer stop()
	if err := conn.Flush(ctx); err != nil { // the server listens for us from here on
		return nil, err
	}

	// Teammates on a lifeline end with this process, however it ends.
	lifeline, held, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer lifeline.Close()
	defer held.Close()

	var took []float64 // ms
	var pids []int
	for i := range starts {
		name := team.AgentID(fmt.Sprintf("coder-%d", i+1))
		begun := time.Now()
		p, err := r.startTeammate(bt.ID, name, lifeline)
		if err != nil {
			return nil, err
		}
		defer func() { p.Kill(); <-p.Done() }() // it has nothing to save
		pids = append(pids, p.PID())
		first, err := await(ctx, heard, p.Done(), func(b beat) bool { return b.AgentID == name })
		if err != nil {
			return nil, fmt.Errorf("teammate %s: %w", name, err)
		}
		took = append(took, milliseconds(first.at.Sub(begun)))
	}
	if err := awaitIdle(ctx, heard); err != nil {
		return nil, err
	}
	return memoryOf(pids, []figure{measured("process_start_to_first_heartbeat", median(took), "ms")})
}

// awaitIdle waits until every teammate has sent some idle heartbeats.
func awaitIdle(ctx context.Context, heard chan beat) error {
	idle := map[team.AgentID]int{}
	_, err := await(ctx, heard, nil, func(b beat) bool {
		if b.State == team.Idle {
			idle[b.AgentID]++
		}
		settled := len(idle) == starts
		for _, n := range idle {
			settled = settled && n >= idleBeats
		}
		return settled
	})
	if err != nil {
		return fmt.Errorf("teammates do not become idle: %w", err)
	}
	return nil
}

// memoryOf adds what the largest of the processes holds.
func memoryOf(pids []int, figures []figure) ([]figure, error) {
	if runtime.GOOS != "linux" {
		progress("memory is measured on Linux only")
		return figures, nil
	}
	var most float64
	for _, pid := range pids {
		memory, err := resident(pid)
		if err != nil {
			return nil, err
		}
		most = max(most, memory)
	}
	return append(figures, measured("idle_teammate_memory", most, "MiB").atMost(memoryGoal)), nil
}

// startTeammate starts the program as a named member, with a model configured that
// is never called: there is nothing to do.
func (r *rig) startTeammate(id team.TeamID, name team.AgentID, lifeline *os.File) (*child.Process, error) {
	return child.Start(filepath.Join(r.bin, "teammate"),
		[]string{"--server", r.server.URL(), "--http", "127.0.0.1:0", "--team", string(id), "--name", string(name), "--role", "coder"},
		[]string{"OPENAI_BASE_URL=http://127.0.0.1:1/v1", "OPENAI_MODEL=none", "OPENAI_API_KEY=none", "AGENTTEAM_LOG_LEVEL=warn"},
		lifeline, os.Stderr)
}

// await returns the first beat that is wanted, or an error once ended is closed.
func await(ctx context.Context, heard <-chan beat, ended <-chan struct{}, wanted func(beat) bool) (beat, error) {
	for {
		select {
		case b := <-heard:
			if wanted(b) {
				return b, nil
			}
		case <-ended:
			return beat{}, errors.New("it ended before its first heartbeat")
		case <-ctx.Done():
			return beat{}, ctx.Err()
		}
	}
}

// resident is the memory that a process holds, in MiB, the pages of the
// program that it has touched included.
func resident(pid int) (float64, error) {
	file := fmt.Sprintf("/proc/%d/status", pid)
	status, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			var kib float64
			if _, err := fmt.Sscanf(rest, "%f kB", &kib); err != nil {
				return 0, fmt.Errorf("%s: %q: %w", file, line, err)
			}
			return kib * 1024 / mebibyte, nil
		}
	}
	return 0, fmt.Errorf("%s tells no VmRSS", file)
}

// sizes are those of the three programs as `make build` builds them.
func sizes(_ context.Context, r *rig) (all []figure, err error) {
	for _, program := range []string{"leader", "teammate", "teamctl"} {
		info, err := os.Stat(filepath.Join(r.bin, program))
		if err != nil {
			return nil, err
		}
		all = append(all, measured("binary_size_"+program, float64(info.Size())/mebibyte, "MiB"))
	}
	return all, nil
}
