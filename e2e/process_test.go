package e2e

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

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
	c = upAt(t, rehearse(t, slowScript), standbys, confined(t)...)
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
	t.Parallel()
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

// killAll kills all processes of the cluster at once, and waits until they have ended: some may end with their parent.
func (c *cluster) killAll() {
	c.t.Helper()
	pids := c.pids()
	for _, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			c.t.Fatal(err)
		}
	}
	for _, pid := range pids {
		gone(c.t, pid)
	}
}

// After everything was killed at once, the next cluster in the folder knows that all of it
// is gone: its members go on at once, however long the lease is.
func TestBackAfterEverythingWasKilled(t *testing.T) {
	t.Parallel()
	c := upAt(t, rehearse(t, slowScript), 2, "AGENTTEAM_LEASE=30m")
	newTeam(t, c.connect(), team.DefaultTeam)
	c.ok("run", "--detach", "go")
	c.pidIn("child.pid")
	c.killAll()
	if err := os.Remove(filepath.Join(c.dir, "child.pid")); err != nil {
		t.Fatal(err)
	}
	c.ok("up", "-d", "-n", "2")
	c.pidIn("child.pid") // somebody is at the task again
	tm, err := c.connect().Open(t.Context(), team.DefaultTeam)
	if err != nil {
		t.Fatal(err)
	}
	task, err := tm.Board().Task(t.Context(), "T-001")
	if err != nil || task.Status != team.InProgress || task.Attempts != 0 {
		t.Errorf("the task is %s after %d attempts (%v)", task.Status, task.Attempts, err)
	}
}

// lastTurnScript has a leader that looks once more before it ends each goal, which takes as
// long as the file hold is there.
const lastTurnScript = `
agents:
  - match: {role: leader}
    rules:
      - name: goal
        since: '<mail from="user"'
        steps:
          - calls:
              - {tool: spawn_teammate, args: {role: coder}}
              - {tool: spawn_teammate, args: {role: coder}}
              - {tool: create_task, args: {title: quick}}
          - await: 'T-00\d \(quick\) completed'
            calls:
              - {tool: bash, args: {command: "echo $$ > looking.pid.tmp; mv looking.pid.tmp looking.pid; while test -e hold; do sleep 0.05; done", timeout: 600}}
          - calls:
              - {tool: list_teammates, args: {}}
          - calls:
              - {tool: finish_team, args: {summary: '{{result "goal" 2}}'}}
  - match: {role: coder}
    rules:
      - name: work
        since: '<task id="(?P<task>T-\d+)"'
        steps:
          - calls:
              - {tool: update_task, args: {task_id: "{{.Match.task}}", status: completed, result_summary: done}}
          - say: Done.
      - name: rest
        say: Nothing to do.
`

// Everything is killed in the leader's last turn, when all tasks are done. The next cluster
// ends the goal, nobody stays in the finished team, and the leader of the next goal meets
// nobody who is lost.
func TestNoGhosts(t *testing.T) {
	t.Parallel()
	c := upAt(t, rehearse(t, lastTurnScript), 2, "AGENTTEAM_LEASE=30m")
	hold := filepath.Join(c.dir, "hold")
	if err := os.WriteFile(hold, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	c.ok("run", "--detach", "one")
	c.pidIn("looking.pid")
	c.killAll()
	if err := os.Remove(hold); err != nil {
		t.Fatal(err)
	}
	c.ok("up", "-d", "-n", "2")
	tm, err := c.connect().Open(t.Context(), team.DefaultTeam)
	if err != nil {
		t.Fatal(err)
	}
	for _, goal := range []string{"one", "two"} {
		if goal != "one" {
			c.ok("run", "--detach", goal)
		}
		var record team.Team
		until(t, "the goal "+goal+" is reached", func() bool {
			record, err = tm.Record(t.Context())
			return err == nil && record.Status == team.TeamFinished
		})
		if strings.Contains(record.Summary, string(team.Lost)) || !strings.Contains(record.Summary, "role:coder") {
			t.Errorf("in goal %s the leader met %s", goal, record.Summary)
		}
		until(t, "nobody stays after goal "+goal, func() bool {
			all, err := tm.Members().List(t.Context(), true)
			return err == nil && !slices.ContainsFunc(all, func(a client.Agent) bool { return a.State != team.Stopped })
		})
	}
}

// A teammate started by the leader itself, since no standby was there, is stopped
// by force: its command and the command's children end too.
func TestForcedStopEndsTools(t *testing.T) {
	t.Parallel()
	c, tm, shell, child := slow(t, 0)
	agent, err := tm.Members().Get(t.Context(), "coder-1")
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
	if agent, err = tm.Members().Get(t.Context(), "coder-1"); err != nil || agent.State != team.Stopped {
		t.Errorf("coder-1 is %s, %v", agent.State, err)
	}
	until(t, "the task is free again", func() bool {
		v, err := tm.Board().Task(t.Context(), "T-001")
		return err == nil && v.Status == team.Pending
	})
}

// killerScript has a task whose command kills the member that runs it, the parent of its
// supervisor, each time. Only without a sandbox it can.
const killerScript = `
agents:
  - match: {role: leader}
    rules:
      - name: lead
        since: '<mail from="user"'
        steps:
          - calls:
              - {tool: spawn_teammate, args: {role: coder}}
          - calls:
              - {tool: create_task, args: {title: "kill"}}
          - say: I wait.
      - name: rest
        say: I wait.
  - match: {role: coder}
    rules:
      - name: work
        since: '<task id='
        steps:
          - calls: [{tool: bash, args: {command: "echo x >> tries; kill -9 $(cut -d' ' -f4 /proc/$PPID/stat); sleep 60"}}]
          - calls: [{tool: bash, args: {command: "echo x >> tries; kill -9 $(cut -d' ' -f4 /proc/$PPID/stat); sleep 60"}}]
          - calls: [{tool: bash, args: {command: "echo x >> tries; kill -9 $(cut -d' ' -f4 /proc/$PPID/stat); sleep 60"}}]
      - name: rest
        say: Nothing to do.
`

// What kills its holder each time has an end: the task fails after three attempts, or its
// holder, which goes on with it without holding it, is given up after five crashes.
func TestTaskKillsItsHolder(t *testing.T) {
	t.Parallel()
	c := upAt(t, rehearse(t, killerScript), 2, "AGENTTEAM_LEASE=2s", "AGENTTEAM_SANDBOX=none")
	tm := newTeamWith(t, c.connect(), team.DefaultTeam, 2*time.Second)
	if _, err := tm.Choose(t.Context(), team.Choices{Policy: &team.Policy{PermissionMode: team.BypassPermissions}}); err != nil {
		t.Fatal(err)
	}
	c.ok("run", "--detach", "go")
	until(t, "somebody has had enough", func() bool {
		v, err := tm.Board().Task(t.Context(), "T-001")
		if err != nil {
			return false
		}
		if v.Status == team.Failed {
			return v.Attempts == team.MaxAttempts && strings.Contains(v.Reason, "given up after 3 attempts")
		}
		a, err := tm.Members().Get(t.Context(), "coder-1")
		return err == nil && a.Member.State == team.Stopped && strings.Contains(a.LastError, "lost 5 times in a row") && v.Attempts > 0
	})
	tries, err := os.ReadFile(filepath.Join(c.dir, "tries"))
	if n := strings.Count(string(tries), "x"); err != nil || n < 1 || n > 5 {
		t.Errorf("it was tried %d times, %v", n, err)
	}
}

// A frozen teammate loses its task, and its command has ended before another may begin one.
// When it runs again it finds itself replaced, and changes nothing.
func TestFrozenTeammate(t *testing.T) {
	t.Parallel()
	c, tm, shell, child := slow(t, 2)
	agent, err := tm.Members().Get(t.Context(), "coder-1")
	if err != nil {
		t.Fatal(err)
	}
	halt(t, agent.PID)
	until(t, "the task is taken from coder-1", func() bool {
		v, err := tm.Board().Task(t.Context(), "T-001")
		return err == nil && v.Epoch > 1
	})
	if alive(shell) || alive(child) {
		t.Error("the command of the frozen teammate runs on, and its task is free")
	}
	until(t, "coder-1 is brought back and claims the task again", func() bool {
		v, err := tm.Board().Task(t.Context(), "T-001")
		return err == nil && v.Status == team.InProgress && v.Incarnation == 2
	})
	if err := syscall.Kill(agent.PID, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	until(t, "the old process is a standby again", func() bool {
		log, err := os.ReadFile(filepath.Join(c.dir, ".agentteam", "up.log"))
		return err == nil && strings.Contains(string(log), "msg=superseded process=teammate pid="+strconv.Itoa(agent.PID))
	})
	v, err := tm.Board().Task(t.Context(), "T-001")
	if err != nil || v.Status != team.InProgress || v.Incarnation != 2 || v.Epoch < 3 {
		t.Errorf("T-001 is %s, incarnation %d, epoch %d, %v", v.Status, v.Incarnation, v.Epoch, err)
	}
}

// The leader is killed while its teammates work: it is started again, waits for
// the lease of its predecessor, and goes on from the journal.
func TestLeaderSurvivesKill(t *testing.T) {
	t.Parallel()
	c := up(t, "", 3)
	tm := newTeam(t, c.connect(), team.DefaultTeam)
	f := follow(t, tm)
	done := c.begin(survey(tree(t))...)
	f.next("a survey is complete", func(e client.Entry) bool { return e.Event.Event.Type == "TASK_COMPLETED" })
	leader, err := tm.Members().Get(t.Context(), team.Leader)
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
	after, err := tm.Members().Get(t.Context(), team.Leader)
	if err != nil || after.Incarnation <= leader.Incarnation {
		t.Errorf("the leader's incarnation is %d after %d, %v", after.Incarnation, leader.Incarnation, err)
	}
}

// The leader is killed, and the teammate that it had started is frozen: when the
// cluster ends, that one does too, although nobody is its parent and it hears nothing.
// Before that the cluster's file names the next leader's pages, and its API is where that
// of the last one was, so that clients find it again.
func TestFrozenOrphan(t *testing.T) {
	t.Parallel()
	c, tm, shell, child := slow(t, 0)
	agent, err := tm.Members().Get(t.Context(), "coder-1")
	if err != nil {
		t.Fatal(err)
	}
	leader, err := tm.Members().Get(t.Context(), team.Leader)
	if err != nil {
		t.Fatal(err)
	}
	before := c.file()
	if err := syscall.Kill(agent.PID, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(leader.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	until(t, "the cluster's file names the next leader's pages", func() bool {
		now := c.file().HTTP
		return now != before.HTTP && status(now+"/livez") == http.StatusOK
	})
	if api := c.file().API; api != before.API || status(api+"/health") != http.StatusOK {
		t.Errorf("the next leader's API is at %s and answers %d; the last one's was at %s", api, status(api+"/health"), before.API)
	}
	c.ok("down")
	if alive(agent.PID) {
		t.Error("the frozen teammate was left behind")
	}
	for _, pid := range []int{agent.PID, shell, child} {
		gone(t, pid)
	}
	c.ok("up", "-d", "-n", "0") // for the cleanup, which ends it
}

// file is what the cluster's file says.
func (c *cluster) file() config.Cluster {
	c.t.Helper()
	cl, _, err := config.FindCluster(c.dir)
	if err != nil {
		c.t.Fatal(err)
	}
	return cl
}
