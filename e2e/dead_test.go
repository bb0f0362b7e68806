package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/team"
)

// The NATS server, which is not ours, and all processes are killed at once. More than half of
// the members are silent then, for which the watchdog waits three leases, since it may be cut
// off itself. Here the server has started since they joined: their tasks are free after one.
func TestDeadCluster(t *testing.T) {
	t.Parallel()
	const lease = 5 * time.Second
	nats := brokertest.NewCluster(t, 1)
	c := folder(t, rehearse(t, heldScript(2, 2, "")), "NATS_URL="+nats.URL())
	conn := dial(t, nats.URL())
	programs := []string{"leader", "teammate", "teammate"}
	var all []*exec.Cmd
	for _, program := range programs {
		all = append(all, c.launch(program))
	}
	t.Cleanup(func() { // unless it was killed below
		for _, cmd := range all {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
	until(t, "leader and standbys answer", func() bool {
		s, err := conn.Processes(t.Context())
		return err == nil && len(s.Leaders) == 1 && len(s.Standbys) == 2
	})
	_, bt := watched(t, conn, team.DefaultTeam, lease)
	c.ok("run", "--detach", "go")
	h := remember(t, bt)
	until(t, "both coders are at work", func() bool {
		return h.last("T-001").Status == team.InProgress && h.last("T-002").Status == team.InProgress
	})

	log := filepath.Join(c.dir, "processes.log")
	before, _ := os.ReadFile(log)
	nats.Kill(0)
	for _, cmd := range all {
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
	}
	nats.Restart(0)
	for _, program := range programs {
		c.start(program)
	}
	brokertest.Within(t, 30*time.Second, "a task is claimed again", func() bool { // 12 s on a busy machine
		for _, id := range []team.TaskID{"T-001", "T-002"} {
			if freed := h.freed(id); freed.ID != "" && h.last(id).Status == team.InProgress && h.last(id).Epoch >= freed.Epoch {
				return true
			}
		}
		return false
	})
	until(t, "both tasks were freed", func() bool { return h.freed("T-001").ID != "" && h.freed("T-002").ID != "" })
	if said, err := os.ReadFile(log); err != nil || bytes.Contains(said[len(before):], []byte("after three leases")) {
		t.Errorf("a leader waited for three leases: %v\n%s", err, said)
	}
	if err := os.WriteFile(filepath.Join(c.dir, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	until(t, "both tasks are completed", func() bool {
		return h.last("T-001").Status == team.Completed && h.last("T-002").Status == team.Completed
	})
}

// freed is the first revision of a task that its first holder no longer has; the zero value if
// there is none.
func (h *history) freed(id team.TaskID) team.Task {
	h.mu.Lock()
	defer h.mu.Unlock()
	claimed := team.Task{}
	for _, task := range h.tasks[id] {
		switch {
		case task.Status == team.InProgress && claimed.ID == "":
			claimed = task
		case claimed.ID != "" && (task.Status != team.InProgress || task.Epoch != claimed.Epoch):
			return task
		}
	}
	return team.Task{}
}
