package main

import (
	"testing"
	"time"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
)

func TestStoppingLine(t *testing.T) {
	since := time.Now().Add(-270 * time.Minute)
	forced := "; without an answer it is stopped by force 30s after it was asked"
	for want, tt := range map[string]struct {
		m     client.Agent
		drain bool
	}{
		"waiting for coder-1@red: it is at bash for 4h (T-001) and answers when that has ended" + forced: {client.Agent{State: team.Running, Task: "T-001", Tool: "bash", Since: &since}, false},
		"waiting for coder-1@red: it is at its model and answers when that has ended" + forced:           {client.Agent{State: team.Running}, false},
		"waiting for coder-1@red: it is leaving" + forced:                                                {client.Agent{State: team.Idle}, false},
		"waiting for coder-1@red: its process does not answer" + forced:                                  {client.Agent{State: team.Unknown}, false},
		"waiting for coder-1@red: it is at bash for 4h (T-001) and leaves when it has no task":           {client.Agent{State: team.Running, Task: "T-001", Tool: "bash", Since: &since}, true},
		"waiting for coder-1@red: it has T-001 and leaves when it has no task":                           {client.Agent{State: team.Idle, Task: "T-001"}, true},
	} {
		tt.m.AgentID = "coder-1"
		if got := stoppingLine("red", tt.m, client.StopOptions{Wait: 30 * time.Second, Drain: tt.drain}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestStoppedLine(t *testing.T) {
	for want, tt := range map[string]struct {
		forced bool
		wait   time.Duration
	}{
		"coder-1@red is stopped": {false, time.Second},
		"coder-1@red is stopped by force: it gave no answer within 1s": {true, time.Second},
		"coder-1@red is stopped by force":                              {true, 0},
	} {
		if got := stoppedLine("coder-1@red", tt.forced, tt.wait); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
