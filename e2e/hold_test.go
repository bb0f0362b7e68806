package e2e

import (
	"strings"
	"testing"

	"agentteam/pkg/client"
	"agentteam/pkg/store/board/boardtest"
	"agentteam/pkg/team"
)

// longScript has a coder work on the task "first" for several turns, each longer than a
// sixth of a lease of five seconds, so that it has to make sure in between that the task
// is still its own. Then the one of the team "forgetful" stops without completing it, and
// the one of "greedy" wants another task besides.
const longScript = `
agents:
  - match: {role: coder, team: forgetful}
    rules:
      - name: nudged
        newest: 'You stopped, but (?P<task>T-\d+) \(first\) is still in progress and yours'
        since: 'You stopped'
        steps:
          - calls:
              - {tool: update_task, args: {task_id: "{{.Match.task}}", status: completed, result_summary: "after a nudge"}}
      - name: first
        since: 'title: first'
        steps:
          - calls:
              - {tool: bash, args: {command: sleep 1}}
          - calls:
              - {tool: bash, args: {command: sleep 1}}
          - say: That was it.
  - match: {role: coder, team: greedy}
    rules:
      - name: second
        since: '<task id="(?P<task>T-\d+)"[^>]*>\ntitle: second'
        steps:
          - calls:
              - {tool: update_task, args: {task_id: "{{.Match.task}}", status: completed, result_summary: "in its turn"}}
      - name: first
        since: '<task id="(?P<task>T-\d+)"[^>]*>\ntitle: first'
        steps:
          - calls:
              - {tool: bash, args: {command: sleep 1}}
          - calls:
              - {tool: bash, args: {command: sleep 1}}
          - calls:
              - {tool: claim_task, args: {task_id: T-002}}
          - calls:
              - {tool: update_task, args: {task_id: "{{.Match.task}}", status: completed, result_summary: 'another: {{json (result "first" 2)}}'}}
      - {name: rest, say: Nothing to do.}
`

// A teammate whose task takes many turns still has it when it has made sure of that: it
// may not go idle without completing it, and gets no other besides.
func TestLongTaskStaysHeld(t *testing.T) {
	t.Parallel()
	c := up(t, longScript, 2)
	for name, tt := range map[team.TeamID]struct {
		tasks   []team.NewTask
		summary string // what the first task's must hold
	}{
		"forgetful": {[]team.NewTask{{Title: "first"}}, "after a nudge"},
		"greedy":    {[]team.NewTask{{Title: "first", Priority: 1}, {Title: "second"}}, `"code":"busy"`},
	} {
		t.Run(string(name), func(t *testing.T) {
			t.Parallel()
			conn := c.connect()
			tm, bt := watched(t, conn, name, shortLease)
			recorder := boardtest.Record(t, bt.Bucket)
			f := follow(t, tm)
			if _, _, err := tm.Board().Add(t.Context(), "", tt.tasks...); err != nil {
				t.Fatal(err)
			}
			if _, err := tm.Members().Spawn(t.Context(), team.Member{Role: "coder"}, 1); err != nil {
				t.Fatal(err)
			}
			completed := func(e client.Entry) bool { return e.Event.Event.Type == "TASK_COMPLETED" }
			f.next("the first task is completed", func(e client.Entry) bool {
				if e.Event.Event.Type == team.RunFinished {
					if v, err := tm.Board().Task(t.Context(), "T-001"); err != nil || v.Status != team.Completed {
						t.Fatalf("%s goes idle, and T-001 is %s at %s, %v", e.AgentID, v.Status, v.Assignee, err)
					}
				}
				return completed(e)
			})
			if v, err := tm.Board().Task(t.Context(), "T-001"); err != nil || !strings.Contains(v.ResultSummary, tt.summary) || v.Attempts != 0 {
				t.Fatalf("T-001 has the summary %q after %d attempts, %v", v.ResultSummary, v.Attempts, err)
			}
			for range tt.tasks[1:] {
				f.next("the next task is completed", completed)
			}
			recorder.Judge(t)
		})
	}
}
