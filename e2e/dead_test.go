package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"agentteam/pkg/broker/brokertest"
	"agentteam/pkg/journal"
	"agentteam/pkg/team"
)

// Two coders work until there is a file named go.
const twoAtWorkScript = `
agents:
  - match: {role: leader}
    rules:
      - name: lead
        since: '<mail from="user"'
        steps:
          - calls:
              - {tool: create_task, args: {title: "one"}}
              - {tool: create_task, args: {title: "two"}}
              - {tool: spawn_teammate, args: {role: coder}}
              - {tool: spawn_teammate, args: {role: coder}}
          - await: 'All Idle'
            waiting: I wait.
            calls: [{tool: finish_team, args: {summary: "Both are done."}}]
  - match: {role: coder}
    rules:
      - name: work
        since: '<task id="(?P<task>T-\d+)"'
        steps:
          - calls: [{tool: bash, args: {command: "until [ -e go ]; do sleep 0.05; done", timeout: 600}}]
          - calls: [{tool: update_task, args: {task_id: "{{.Match.task}}", status: completed, result_summary: "Done."}}]
          - say: Done.
      - name: rest
        say: Nothing to do.
`

// The NATS server, which is not ours, and all processes are killed at once. More than half of
// the members are silent then, for which the watchdog waits three leases, since it may be cut
// off itself. Here the server has started since they joined: their tasks are free after one.
func TestDeadCluster(t *testing.T) {
	t.Parallel()
	const lease = 10 * time.Second
	nats := brokertest.NewCluster(t, 1)
	c := folder(t, rehearse(t, twoAtWorkScript), "NATS_URL="+nats.URL())
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
	var free [2]team.Task
	until(t, "both tasks were freed", func() bool {
		free = [2]team.Task{h.freed("T-001"), h.freed("T-002")}
		return free[0].ID != "" && free[1].ID != ""
	})
	for _, task := range free {
		var led time.Time // since when the leader that freed it was there, by its own clock too
		if err := journal.Each(t.Context(), bt, 1, func(r journal.Record) {
			if r.Agent == team.Leader && r.Kind == journal.Start && r.At.Before(task.UpdatedAt) {
				led = r.At
			}
		}); err != nil {
			t.Fatal(err)
		}
		after := task.UpdatedAt.Sub(led)
		t.Logf("%s was freed after %v: %s", task.ID, after, task.Reason)
		if after < lease || after > lease*5/2 { // by the other rule never before three; a leader that does not hear itself for a while waits longer than one
			t.Errorf("%s was freed %v after a leader was there again; the lease is %v", task.ID, after, lease)
		}
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
