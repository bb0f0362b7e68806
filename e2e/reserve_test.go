package e2e

import (
	"fmt"
	"strings"
	"testing"

	"agentteam/pkg/team"
)

// The leader spawns two, and in the same turn gives every task of its plan to the first. That one
// greets, since its prompt says so.
const assignScript = `
agents:
  - match: {role: leader}
    rules:
      - name: finish
        newest: '\[All Idle\]'
        steps: [{calls: [{tool: finish_team, args: {summary: '{{heard "hello from ([a-z0-9-]+)"}} greeted'}}]}]
      - name: lead
        since: 'from="user"'
        steps:
          - calls:
              - {tool: spawn_teammate, args: {role: coder}}
              - {tool: spawn_teammate, args: {role: coder, prompt: 'Say hello.'}}
              - {tool: create_task, args: {title: 'the first', assignee: coder-2}}
              - {tool: create_tasks, args: {tasks: [PLAN]}}
              - {tool: create_task, args: {title: 'the last', assignee: coder-2, dependencies: ['T-007']}}
      - name: rest
        say: I wait.
  - match: {role: coder}
    rules:
      - name: greet
        since: '<mail from="leader" id="prompt-1"'
        steps: [{calls: [{tool: send_message, args: {to: leader, content: 'hello from {{.Name}}'}}]}]
      - name: work
        since: '<task id="(?P<id>T-\d+)"'
        steps: [{calls: [{tool: update_task, args: {task_id: '{{.Match.id}}', status: completed, result_summary: done}}]}]
      - name: rest
        say: Nothing to do.
`

// What is assigned to a named teammate is done by that one, 8 of 8 times, from the moment that
// it was spawned, while another of the same role is idle and hungry. A spawn prompt begins that
// teammate's first run.
func TestAssignmentHolds(t *testing.T) {
	t.Parallel()
	var plan []string
	for n := range 6 {
		plan = append(plan, fmt.Sprintf("{key: k%d, title: 'part %d', assignee: coder-2}", n, n))
	}
	c := up(t, strings.Replace(assignScript, "PLAN", strings.Join(plan, ", "), 1), 2)
	r, err := c.run("go")
	if err != nil {
		t.Fatal(err)
	}
	if r.Status != "finished" || r.Summary != "coder-2 greeted" || len(r.Tasks) != 8 {
		t.Errorf("%s with %d tasks: %s", r.Status, len(r.Tasks), r.Summary)
	}
	for _, v := range r.Tasks {
		if v.Status != team.Completed || v.Assignee != "coder-2" {
			t.Errorf("%s is %s, by %s", v.ID, v.Status, v.Assignee)
		}
	}
	if events := c.ok("events", "--type", "TASK_ASSIGNED", "-o", "jsonl"); events != "" {
		t.Errorf("what was created for a member was assigned again:\n%s", events)
	}
	steps, _, err := newTeam(t, c.connect(), team.DefaultTeam).Board().History(t.Context(), "T-001")
	if err != nil || len(steps) != 3 {
		t.Errorf("T-001 was written %d times (%v): %+v", len(steps), err, steps)
	}
}
