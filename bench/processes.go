package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"agentteam/pkg/cluster/childproc"
	"agentteam/pkg/team"
)

const mebibyte = 1 << 20

// beat is a heartbeat and when this process heard it.
type beat struct {
	team.Heartbeat
	at time.Time
}

// startTeammate starts the program as a named member, with a model configured that
// is never called: there is nothing to do.
func (r *rig) startTeammate(id team.TeamID, name team.AgentID, lifeline *os.File) (*childproc.Process, error) {
	return childproc.Start(filepath.Join(r.bin, "teammate"),
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
