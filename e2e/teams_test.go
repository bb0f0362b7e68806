package e2e

import (
	"strings"
	"sync"
	"testing"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
)

// pairScript has two teammates, one of whom asks the other to claim a blocked task;
// that is refused, and the answer says how. Who asks is the one that joins last: before,
// there is nobody to ask. What they report stands in the tasks' summaries.
const pairScript = `
agents:
  - match: {role: leader}
    rules:
      - name: finish
        since: '\[All Idle\]'
        steps:
          - calls:
              - {tool: finish_team, args: {summary: "{{.Team}} is done"}}
      - name: go
        since: '<mail from="user"'
        steps:
          - calls:
              - {tool: create_task, args: {title: first, role: reviewer}}
          - calls:
              - {tool: create_task, args: {title: second, dependencies: ['{{index (result "go" 0) "id"}}']}}
          - calls:
              - {tool: spawn_teammate, args: {role: coder, name: alice}}
              - {tool: spawn_teammate, args: {role: reviewer, name: bob}}
          - say: I wait.
  - match: {name: "[ab]*"}
    rules:
      - name: second
        since: 'title: second'
        steps:
          - calls:
              - {tool: update_task, args: {task_id: '{{regex "task id=.(T-[0-9]+)" (heard "(?s)(<task id=[^>]*>.title: second)")}}', status: completed, result_summary: "second done in {{.Team}}"}}
      - name: first
        since: '<task id="(?P<task>T-\d+)"[^>]*>\ntitle: first'
        steps:
          - calls:
              - {tool: list_tasks, args: {status: pending}}
          - calls:
              - {tool: send_message, args: {to: alice, content: 'Can you claim {{regex "T-[0-9]+" (result "first" 0)}}?', await_reply: true}}
          - await: 'I get '
            waiting: I wait for the answer.
            calls:
              - {tool: update_task, args: {task_id: "{{.Match.task}}", status: completed, result_summary: 'answer: {{heard "(I get [a-z]+ in [a-z]+)"}}'}}
      - name: answer
        since: '<mail from="(?P<who>bob)" id="(?P<id>[^"]+)"[^>]*>\nCan you claim (?P<task>T-\d+)'
        steps:
          - calls:
              - {tool: claim_task, args: {task_id: "{{.Match.task}}"}}
          - calls:
              - {tool: send_message, args: {to: "{{.Match.who}}", content: 'I get {{index (result "answer" 0) "code"}} in {{.Team}}', in_reply_to: "{{.Match.id}}"}}
      - name: rest
        say: Nothing to do.
`

// Two teams of one cluster work at once and do not mix; a blocked claim is
// refused, a question is answered by another, the notice that all are idle reaches
// the leader; a second goal goes to the same members.
func TestTwoTeams(t *testing.T) {
	t.Parallel()
	c := up(t, pairScript, 4)
	var wg sync.WaitGroup
	for _, id := range []string{"red", "blue"} {
		wg.Go(func() {
			r, err := c.run("--team", id, "do it 做 🎯")
			if err != nil {
				t.Error(err)
				return
			}
			if r.Status != "finished" || r.Summary != id+" is done" {
				t.Errorf("%s ended as %s: %s", id, r.Status, r.Summary)
			}
			checkPair(t, id, r.Tasks)
		})
	}
	wg.Wait()
	if t.Failed() {
		return
	}
	r := c.begin("--team", "red", "again").end(t)
	if len(r.Tasks) != 4 {
		t.Fatalf("red has %d tasks after its second goal, want 4", len(r.Tasks))
	}
	checkPair(t, "red", r.Tasks[2:])
	for _, a := range r.Agents {
		if a.AgentID != team.Leader && a.Incarnation != 2 {
			t.Errorf("%s is incarnation %d, want 2: the same member again", a.AgentID, a.Incarnation)
		}
	}
	tm, err := c.connect().Open(t.Context(), "red")
	if err != nil {
		t.Fatal(err)
	}
	until(t, "the standbys are free again", func() bool {
		var s client.Status
		s, err = c.connect().Processes(t.Context())
		return err == nil && len(s.Standbys) == 4
	})
	if agents, err := tm.Members().List(t.Context(), false); err != nil || len(agents) != 0 {
		t.Errorf("red still has members: %+v, %v", agents, err)
	}
}

func checkPair(t *testing.T, id string, tasks []team.TaskView) {
	t.Helper()
	if len(tasks) != 2 {
		t.Errorf("%s has %d tasks, want 2", id, len(tasks))
		return
	}
	want := []string{"answer: I get blocked in " + id, "second done in " + id}
	for i, v := range tasks {
		if v.Status != team.Completed || v.ResultSummary != want[i] {
			t.Errorf("%s of %s is %s with %q, want %q", v.ID, id, v.Status, v.ResultSummary, want[i])
		}
		if strings.TrimSpace(string(v.Assignee)) == "" || v.Attempts != 0 {
			t.Errorf("%s of %s: assignee %q, %d attempts", v.ID, id, v.Assignee, v.Attempts)
		}
	}
}
