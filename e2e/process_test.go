package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"agentteam/pkg/client"
	"agentteam/pkg/config"
	"agentteam/pkg/team"
)

// slowScript has one teammate run a command that takes longer than any test.
const slowScript = `
agents:
  - match: {role: leader}
    rules:
      - name: lead
        since: '<mail from="user"'
        steps:
          - calls:
              - {tool: spawn_teammate, args: {role: coder}}
          - calls:
              - {tool: create_task, args: {title: "slow 慢 🐌"}}
          - say: I wait.
  - match: {role: coder}
    rules:
      - name: work
        since: '<task id="(?P<task>T-\d+)"'
        steps:
          - calls:
              - tool: bash
                args: {command: "echo $$ > shell.pid; sleep 1000 & echo $! > child.pid.tmp; mv child.pid.tmp child.pid; wait", timeout: 600}
          - calls:
              - {tool: update_task, args: {task_id: "{{.Match.task}}", status: completed, result_summary: "late"}}
          - say: Done.
      - name: rest
        say: Nothing to do.
`

// slow starts a cluster whose coder-1 is in the middle of a long command, and
// returns the pids of the command's shell and of its child.
func slow(t *testing.T, standbys int) (c *cluster, tm *client.Team, shell, child int) {
	t.Helper()
	c = up(t, slowScript, standbys)
	tm = newTeam(t, c.connect(), team.DefaultTeam)
	c.ok("run", "--detach", "go")
	child = c.pidIn("child.pid")
	return c, tm, c.pidIn("shell.pid"), child
}

// pidIn waits for a file with a process id.
func (c *cluster) pidIn(name string) (pid int) {
	c.t.Helper()
	until(c.t, name+" is written", func() bool {
		data, err := os.ReadFile(filepath.Join(c.dir, name))
		if err != nil {
			return false
		}
		pid, err = strconv.Atoi(strings.TrimSpace(string(data)))
		return err == nil
	})
	return pid
}

// The owner of the cluster is killed with SIGKILL: nothing of it survives, not even
// what a tool left in the background.
func TestNothingSurvivesTheOwner(t *testing.T) {
	c, _, shell, child := slow(t, 1)
	pids := c.pids()
	if err := syscall.Kill(pids[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for _, pid := range append(pids, shell, child) {
		gone(t, pid)
	}
	c.ok("up", "-d", "-n", "1") // the folder of a killed cluster can be used again
}

// A teammate started by the leader itself, since no standby was there, is stopped
// by force: its command and the command's children end too.
func TestForcedStopEndsTools(t *testing.T) {
	c, tm, shell, child := slow(t, 0)
	agent, err := tm.Agent(t.Context(), "coder-1")
	if err != nil {
		t.Fatal(err)
	}
	if agent.State != team.Running || agent.Task != "T-001" {
		t.Errorf("coder-1 is %s with task %q", agent.State, agent.Task)
	}
	c.ok("stop", "coder-1", "--force")
	for _, pid := range []int{agent.PID, shell, child} {
		gone(t, pid)
	}
	if agent, err = tm.Agent(t.Context(), "coder-1"); err != nil || agent.State != team.Stopped {
		t.Errorf("coder-1 is %s, %v", agent.State, err)
	}
	until(t, "the task is free again", func() bool {
		v, err := tm.Task(t.Context(), "T-001")
		return err == nil && v.Status == team.Pending
	})
}

// A frozen teammate loses its task; when it runs again it finds itself replaced,
// and its completion is refused.
func TestFrozenTeammate(t *testing.T) {
	c, tm, _, child := slow(t, 2)
	agent, err := tm.Agent(t.Context(), "coder-1")
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(agent.PID, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(agent.PID, syscall.SIGCONT) })
	until(t, "coder-1 is brought back and claims the task again", func() bool {
		v, err := tm.Task(t.Context(), "T-001")
		return err == nil && v.Status == team.InProgress && v.Incarnation == 2
	})
	// The command that it waits for ends, so the first thing that it does is to
	// complete its task.
	if err := syscall.Kill(child, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(agent.PID, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	gone(t, child)
	until(t, "the old process is a standby again", func() bool {
		log, err := os.ReadFile(filepath.Join(c.dir, ".agentteam", "up.log"))
		return err == nil && strings.Contains(string(log), "msg=superseded process=teammate pid="+strconv.Itoa(agent.PID))
	})
	v, err := tm.Task(t.Context(), "T-001")
	if err != nil || v.Status != team.InProgress || v.Incarnation != 2 || v.Epoch < 3 {
		t.Errorf("T-001 is %s, incarnation %d, epoch %d, %v", v.Status, v.Incarnation, v.Epoch, err)
	}
}

// The leader is killed while its teammates work: it is started again, waits for
// the lease of its predecessor, and goes on from the journal.
func TestLeaderSurvivesKill(t *testing.T) {
	c := up(t, "", 3)
	tm := newTeam(t, c.connect(), team.DefaultTeam)
	f := follow(t, tm)
	done := c.begin(goal(tree(t)))
	f.next("a survey is complete", func(e client.Entry) bool { return e.Event.Event.Type == "TASK_COMPLETED" })
	leader, err := tm.Agent(t.Context(), team.Leader)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(leader.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	r := done.end(t)
	if r.Status != "finished" || !strings.Contains(r.Summary, "Files: 4") {
		t.Errorf("run ended as %s: %s", r.Status, r.Summary)
	}
	after, err := tm.Agent(t.Context(), team.Leader)
	if err != nil || after.Incarnation <= leader.Incarnation {
		t.Errorf("the leader's incarnation is %d after %d, %v", after.Incarnation, leader.Incarnation, err)
	}
}

// The leader is killed, and the teammate that it had started is frozen: when the
// cluster ends, that one does too, although nobody is its parent and it hears nothing.
// Before that the cluster's file names the next leader's address.
func TestFrozenOrphan(t *testing.T) {
	c, tm, shell, child := slow(t, 0)
	agent, err := tm.Agent(t.Context(), "coder-1")
	if err != nil {
		t.Fatal(err)
	}
	leader, err := tm.Agent(t.Context(), team.Leader)
	if err != nil {
		t.Fatal(err)
	}
	before := c.http()
	if err := syscall.Kill(agent.PID, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(leader.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	until(t, "the cluster's file names the next leader's pages", func() bool {
		now := c.http()
		return now != before && status(now+"/livez") == http.StatusOK
	})
	c.ok("down")
	if alive(agent.PID) {
		t.Error("the frozen teammate was left behind")
	}
	for _, pid := range []int{agent.PID, shell, child} {
		gone(t, pid)
	}
	c.ok("up", "-d", "-n", "0") // for the cleanup, which ends it
}

// http is the address of the leader's pages, as the cluster's file has it.
func (c *cluster) http() string {
	c.t.Helper()
	cl, _, err := config.FindCluster(c.dir)
	if err != nil {
		c.t.Fatal(err)
	}
	return cl.HTTP
}
