package e2e

import (
	"strings"
	"testing"
	"time"

	"agentteam/pkg/client"
	"agentteam/pkg/store/board/boardtest"
	"agentteam/pkg/team"
)

// revokedScript has coders work on their tasks for longer than any test takes, and
// testers complete theirs at once. The leader cancels or reassigns what it is told to.
const revokedScript = `
agents:
  - match: {role: leader}
    rules:
      - name: cancel
        newest: '(?m)^cancel (?P<task>T-\d+)$'
        since: 'cancel'
        steps:
          - calls:
              - {tool: update_task, args: {task_id: "{{.Match.task}}", status: cancelled, reason: "no longer wanted"}}
      - name: reassign
        newest: '(?m)^reassign (?P<task>T-\d+)$'
        since: 'reassign'
        steps:
          - calls:
              - {tool: update_task, args: {task_id: "{{.Match.task}}", assignee: tester-1}}
      - {name: rest, say: Nothing to do.}
  - match: {role: coder}
    rules:
      - name: told
        newest: '(?P<task>T-\d+) was taken from you'
        say: I stop working on {{.Match.task}}.
      - name: work
        since: '<task id="(?P<task>T-\d+)"'
        steps:
          - calls:
              - tool: bash
                args:
                  command: >-
                    bash -c 'sleep 1000 & echo $! > {{.Match.task}}.grandchild.tmp; mv {{.Match.task}}.grandchild.tmp {{.Match.task}}.grandchild; wait' &
                    echo $! > {{.Match.task}}.child;
                    echo $$ > {{.Match.task}}.shell;
                    wait
                  timeout: 600
          - calls:
              - {tool: update_task, args: {task_id: "{{.Match.task}}", status: completed, result_summary: "late"}}
      - {name: rest, say: Nothing to do.}
  - match: {role: tester}
    rules:
      - name: work
        since: '<task id="(?P<task>T-\d+)"'
        steps:
          - calls:
              - {tool: update_task, args: {task_id: "{{.Match.task}}", status: completed, result_summary: "done by {{.Name}}"}}
      - {name: rest, say: Nothing to do.}
`

// A task is taken from a teammate that is in the middle of a command for it, which
// would go on for ten minutes, as would the lease: the command is ended at once, with
// what it has started, and the next thing that the model hears is why. Who has the task
// now completes it.
func TestTakenWhileAtWork(t *testing.T) {
	t.Parallel()
	c := upAt(t, rehearse(t, revokedScript), 2, confined(t)...)
	conn := c.connect()
	tm, bt := watched(t, conn, "taken", 10*time.Minute)
	recorder := boardtest.Record(t, bt.Bucket)
	f := follow(t, tm)
	for _, role := range []string{"coder", "tester"} {
		if _, err := tm.Members().Spawn(t.Context(), team.Member{Role: role}, 1); err != nil {
			t.Fatal(err)
		}
	}
	tell := func(what string) {
		if _, _, err := tm.Mail().Send(t.Context(), client.NewMail{To: team.Leader, Text: what}); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		name   string
		take   func(id string)
		status team.TaskStatus
		holder team.AgentID
	}{
		{"a person cancels it", func(id string) { c.ok("--team", "taken", "tasks", "cancel", id) }, team.Cancelled, "coder-1"},
		{"the leader cancels it", func(id string) { tell("cancel " + id) }, team.Cancelled, "coder-1"},
		{"a person reassigns it", func(id string) { c.ok("--team", "taken", "tasks", "assign", id, "--to", "tester-1") }, team.Completed, "tester-1"},
		{"the leader reassigns it", func(id string) { tell("reassign " + id) }, team.Completed, "tester-1"},
	} {
		added, _, err := tm.Board().Add(t.Context(), "", team.NewTask{Title: tt.name, Role: "coder"})
		if err != nil {
			t.Fatal(err)
		}
		id := string(added[0].ID)
		pids := []int{c.pidIn(id + ".grandchild"), c.pidIn(id + ".child"), c.pidIn(id + ".shell")}
		begun := time.Now()
		tt.take(id)
		for _, pid := range pids {
			gone(t, pid)
		}
		t.Logf("%s: its holder's command ended after %v", tt.name, time.Since(begun).Round(time.Millisecond))
		of := func(e client.Entry, types ...team.EventType) bool {
			for _, typ := range types {
				if e.AgentID == "coder-1" && e.Event.Event.Type == typ {
					return true
				}
			}
			return false
		}
		ended := f.next("the command's end is told", func(e client.Entry) bool { return of(e, team.ToolCallResult) }).Event.Event
		if ended.ToolCallName != "bash" || !strings.Contains(ended.Content, "the task was taken away") {
			t.Errorf("%s: the tool call %s ended with %s", tt.name, ended.ToolCallName, ended.Content)
		}
		next := f.next("the model's next turn", func(e client.Entry) bool { return of(e, team.TextChunk, team.ToolCallChunk) }).Event.Event
		if next.Delta != "I stop working on "+id+"." {
			t.Errorf("%s: the model's next turn is %q %s", tt.name, next.ToolCallName, next.Delta)
		}
		until(t, "the task is "+string(tt.status), func() bool {
			v, err := tm.Board().Task(t.Context(), added[0].ID)
			return err == nil && v.Status == tt.status && v.Assignee == tt.holder
		})
	}
	if n := recorder.Judge(t); n[team.Cancelled] != 2 || n[team.Completed] != 2 {
		t.Errorf("tasks by status: %v", n)
	}
}
