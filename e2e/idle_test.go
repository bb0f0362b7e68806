package e2e

import (
	"testing"
	"time"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
	"agentteam/pkg/teamtest/testenv"
)

const idlerScript = `
agents:
  - match: {role: coder}
    rules:
      - name: work
        since: '<task id="(?P<task>T-\d+)"'
        steps:
          - calls: [{tool: update_task, args: {task_id: "{{.Match.task}}", status: completed, result_summary: "Done at last."}}]
          - say: Done.
      - name: rest
        say: Nothing to do.
`

// A teammate that has been idle for long takes the task that comes then, with no leader to
// tell it: ten minutes at the lease of 30 s are twenty leases, which are short here. Meanwhile
// it costs no model call, and nobody takes it for lost.
func TestIdleForLong(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	const lease = 4 * time.Second // a busy machine may stand for two
	c := upAt(t, rehearse(t, idlerScript), 1, "AGENTTEAM_LEASE="+lease.String())
	c.ok("spawn", "coder")
	tm, err := c.connect().Open(t.Context(), team.DefaultTeam)
	if err != nil {
		t.Fatal(err)
	}
	first := idler(t, tm)
	begun := time.Now()
	until(t, "twenty leases have passed", func() bool { return time.Since(begun) > 20*lease })
	if now := idler(t, tm); now.Incarnation != first.Incarnation || now.PID != first.PID || now.Turn != first.Turn {
		t.Errorf("it was %+v and is %+v", first, now)
	}
	c.ok("tasks", "add", "--title", "late")
	until(t, "the task is done", func() bool {
		task, err := tm.Board().Task(t.Context(), "T-001")
		return err == nil && task.Status == team.Completed
	})
	task, err := tm.Board().Task(t.Context(), "T-001")
	if err != nil || task.Assignee != "coder-1" || task.Epoch != 1 || task.Attempts != 0 || task.ResultSummary != "Done at last." {
		t.Errorf("the task is %+v, %v", task.Task, err)
	}
}

// idler returns coder-1 once it is idle.
func idler(t *testing.T, tm *client.Team) (a client.Agent) {
	t.Helper()
	until(t, "the coder is idle", func() bool {
		var err error
		a, err = tm.Members().Get(t.Context(), "coder-1")
		return err == nil && a.State == team.Idle
	})
	return a
}
