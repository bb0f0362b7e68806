package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/team"
)

// jobsScript has a coder begin a command in the background and then a subagent, which runs another
// one. Both take longer than any test. Its successor completes the task when it learns of them.
const jobsScript = `
agents:
  - match: {role: leader}
    rules:
      - name: lead
        since: '<mail from="user"'
        steps:
          - calls:
              - {tool: spawn_teammate, args: {role: coder}}
              - {tool: create_task, args: {title: "build"}}
          - await: 'All Idle'
            waiting: I wait.
            calls: [{tool: finish_team, args: {summary: "Built."}}]
  - match: {role: coder}
    rules:
      - name: again
        since: 'Your process was restarted. What you had in the background has ended with it:\s+- (?P<id>b[0-9a-f]{6}): echo'
        steps:
          - await: '<task id="T-001"|T-001 is still yours'
            waiting: I have no task.
            calls:
              - {tool: update_task, args: {task_id: T-001, status: completed, result_summary: "lost {{.Match.id}}"}}
          - say: Done.
      - name: work
        since: '<task id="(?P<task>T-\d+)"'
        steps:
          - calls:
              - {tool: bash, args: {command: "echo $$ > build.pid.tmp; mv build.pid.tmp build.pid; sleep 1000", run_in_background: true}}
          - calls:
              - {tool: subagent, args: {description: "try it", type: tester, prompt: "Try it."}}
          - say: Done.
      - name: rest
        say: Nothing to do.
  - match: {role: tester}
    rules:
      - name: try
        steps:
          - say: I try what was built.
            calls:
              - {tool: bash, args: {command: "echo $$ > try.pid.tmp; mv try.pid.tmp try.pid; sleep 1000", timeout: 600}}
          - say: It works.
`

// The process of a member is killed while its subagent works and its command runs in the background:
// neither runs on, its successor is told, and what the subagent did can be read.
func TestJobsEndWithTheirOwner(t *testing.T) {
	t.Parallel()
	c := upAt(t, rehearse(t, jobsScript), 2, confined(t)...)
	write(t, filepath.Join(c.dir, "AGENTS.md"), "Rules.\n")
	tm := newTeam(t, c.connect(), team.DefaultTeam)
	written := make(chan team.Delta, 1) // by the subagent, while its model writes
	ctx, stop := context.WithCancel(t.Context())
	unheard := make(chan error, 1)
	go func() {
		unheard <- tm.Live(ctx, nil, func(d team.Delta) {
			if strings.HasPrefix(string(d.AgentID), "coder-1.") {
				select {
				case written <- d:
				default:
				}
			}
		})
	}()
	t.Cleanup(func() {
		stop()
		if err := brokertest.Receive(t, "no more is heard", unheard); err != nil {
			t.Errorf("what is written is not heard: %v", err)
		}
	})
	c.ok("run", "--detach", "go")
	build, try := c.pidIn("build.pid"), c.pidIn("try.pid")

	owner, err := tm.Members().Get(t.Context(), "coder-1")
	if err != nil || len(owner.Jobs) != 2 {
		t.Fatalf("%+v, %v", owner, err)
	}
	listed := c.ok("agents", "jobs", "-o", "wide")
	agents, wide := c.ok("agents"), c.ok("agents", "-o", "wide")
	for _, j := range owner.Jobs {
		if !strings.Contains(listed, j.ID) || !strings.Contains(agents, j.ID) || !strings.Contains(wide, j.ID) {
			t.Errorf("%s is not listed:\n%s\n%s\n%s", j.ID, listed, agents, wide)
		}
	}
	if strings.Count(wide, "AGENTS.md 7 B") != 2 { // of the leader and the coder
		t.Errorf("what the repository states is not named:\n%s", wide)
	}
	sub := team.Subagent("coder-1", owner.Jobs[1].ID)
	select {
	case d := <-written:
		if d.AgentID != sub || !strings.HasPrefix("I try what was built.", d.Text) || d.Text == "" {
			t.Errorf("while %s writes, people see %+v", sub, d)
		}
	case <-time.After(limit):
		t.Errorf("nobody sees what %s writes", sub)
	}
	if err := syscall.Kill(owner.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	gone(t, build)
	gone(t, try)
	var task team.TaskView
	until(t, "the successor completes the task", func() bool {
		task, err = tm.Board().Task(t.Context(), "T-001")
		return err == nil && task.Status == team.Completed
	})
	if want := "lost " + owner.Jobs[0].ID; task.ResultSummary != want {
		t.Errorf("%q, want %q", task.ResultSummary, want)
	}
	if said := c.ok("agents", "transcript", string(sub)); !strings.Contains(said, "Try it.") || !strings.Contains(said, "try.pid") {
		t.Errorf("the conversation of %s:\n%s", sub, said)
	}
	c.ok("export", "report")
	for _, name := range []string{"transcripts/" + string(sub) + ".md", "report.html"} {
		said, err := os.ReadFile(filepath.Join(c.dir, "report", name))
		if err != nil || !strings.Contains(string(said), string(sub)) || !strings.Contains(string(said), "I try what was built.") {
			t.Errorf("%s of the export: %v\n%s", name, err, said)
		}
	}
	if told := c.ok("agents", "transcript", "coder-1"); !strings.Contains(told, "what it ran has ended") {
		t.Errorf("the call of the subagent:\n%s", told)
	}
	cmd := c.command("agents", "transcript", "coder-1.a000000")
	if out, err := cmd.CombinedOutput(); err == nil || cmd.ProcessState.ExitCode() != 3 {
		t.Errorf("of a subagent that never was: %v\n%s", err, out)
	}
}
