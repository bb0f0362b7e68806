package e2e

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

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
	t.Parallel()
	c := upAt(t, rehearse(t, idleScript), 2, "AGENTTEAM_LEASE=15s") // time enough for what follows
	tm := newTeam(t, c.connect(), team.DefaultTeam)
	c.ok("spawn", "coder")
	old, err := tm.Members().Get(t.Context(), "coder-1")
	if err != nil {
		t.Fatal(err)
	}
	c.ok("tasks", "add", "--title", "taken", "--role", "tester") // so that it is offered to nobody
	c.ok("tasks", "add", "--title", "free", "--role", "tester")
	halt(t, old.PID)
	for _, id := range []team.TaskID{"T-001", "T-002"} { // by no command, which may come up when the member is back already
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second) // time enough to store it
		if _, _, err := tm.Board().Assign(ctx, id, "coder-1"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("assigning %s to a frozen process: %v", id, err)
		}
		cancel()
		// Whoever gives up the assignment ends the reservation.
		if _, err := tm.Board().Release(t.Context(), id, "", "not there"); err != nil {
			t.Fatal(err)
		}
	}
	c.ok("tasks", "claim", "T-001", "--as", "erin")
	until(t, "coder-1 is brought back", func() bool {
		now, err := tm.Members().Get(t.Context(), "coder-1")
		return err == nil && now.Incarnation == 2 && now.State == team.Idle
	})
	if err := syscall.Kill(old.PID, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	until(t, "the old process is a standby again", func() bool {
		log, err := os.ReadFile(filepath.Join(c.dir, ".agentteam", "up.log"))
		return err == nil && strings.Contains(string(log), "msg=superseded process=teammate pid="+strconv.Itoa(old.PID))
	})
	for id, want := range map[team.TaskID]int{"T-001": 4, "T-002": 3} {
		steps, _, err := tm.Board().History(t.Context(), id)
		if err != nil || len(steps) != want {
			t.Errorf("%s was written %d times, want %d: %+v, %v", id, len(steps), want, steps, err)
		}
	}
	c.ok("tasks", "update", "T-001", "--status", "completed", "--as", "erin", "--summary", "my work")
}
