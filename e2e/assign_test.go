package e2e

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"agentteam/pkg/team"
)

const idleScript = `
agents:
  - match: {role: leader}
    rules:
      - name: rest
        say: I wait.
  - match: {role: coder}
    rules:
      - name: rest
        say: Nothing to do.
`

// An assignment to a frozen process is given up by whoever made it. When the process runs
// again it finds the assignment, and takes the task neither from somebody who has claimed
// it meanwhile nor, once the member was brought back elsewhere, at all.
func TestAssignmentToFrozen(t *testing.T) {
	c := up(t, idleScript, 2)
	tm := newTeam(t, c.connect(), team.DefaultTeam)
	c.ok("spawn", "coder")
	old, err := tm.Agent(t.Context(), "coder-1")
	if err != nil {
		t.Fatal(err)
	}
	c.ok("tasks", "add", "--title", "taken", "--role", "tester") // so that it is offered to nobody
	c.ok("tasks", "add", "--title", "free", "--role", "tester")
	signal := func(s syscall.Signal) {
		t.Helper()
		if err := syscall.Kill(old.PID, s); err != nil {
			t.Fatal(err)
		}
	}
	signal(syscall.SIGSTOP)
	t.Cleanup(func() { _ = syscall.Kill(old.PID, syscall.SIGCONT) })
	for _, id := range []string{"T-001", "T-002"} {
		if code, _, stderr := exit(t, c.command("tasks", "assign", id, "--to", "coder-1", "--timeout", "300ms")); code != 124 {
			t.Errorf("assigning %s to a frozen process ends with %d: %s", id, code, stderr)
		}
	}
	c.ok("tasks", "claim", "T-001", "--as", "erin")
	until(t, "coder-1 is brought back", func() bool {
		now, err := tm.Agent(t.Context(), "coder-1")
		return err == nil && now.Incarnation == 2 && now.State == team.Idle
	})
	signal(syscall.SIGCONT)
	until(t, "the old process is a standby again", func() bool {
		log, err := os.ReadFile(filepath.Join(c.dir, ".agentteam", "up.log"))
		return err == nil && strings.Contains(string(log), "msg=superseded process=teammate pid="+strconv.Itoa(old.PID))
	})
	for id, want := range map[team.TaskID]int{"T-001": 2, "T-002": 1} {
		steps, _, err := tm.History(t.Context(), id)
		if err != nil || len(steps) != want {
			t.Errorf("%s was written %d times, want %d: %v", id, len(steps), want, err)
		}
	}
	c.ok("tasks", "update", "T-001", "--status", "completed", "--as", "erin", "--summary", "my work")
}
