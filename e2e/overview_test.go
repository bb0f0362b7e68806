package e2e

import (
	"strings"
	"testing"
)

// A team in which everything is there at once: a plan that waits, a task that is worked on,
// one that is free and one that is blocked. Asked how it is, the leader passes on what it was told.
const overviewScript = `
agents:
  - match: {role: leader}
    rules:
      - name: tell
        since: '<mail from="user"[^>]*>\s*how is it'
        steps:
          - calls: [{tool: send_message, args: {to: user, content: 'I was told: {{heard "\\[Team\\] ([^\\n]+)"}}'}}]
      - name: begin
        since: '<mail from="user"[^>]*>\s*begin'
        steps:
          - calls:
              - {tool: spawn_teammate, args: {role: coder, plan_mode: true}}
              - {tool: spawn_teammate, args: {role: tester}}
          - calls:
              - {tool: create_task, args: {title: plan it, role: coder}}
              - {tool: create_task, args: {title: later, role: coder, dependencies: [T-001]}}
              - {tool: create_task, args: {title: free, role: coder}}
              - {tool: create_task, args: {title: long, role: tester}}
      - name: wait
        say: I wait.
  - match: {role: coder}
    rules:
      - name: plan
        since: '<task id="T-001"'
        steps:
          - calls: [{tool: submit_plan, args: {plan: "I write it."}}]
      - name: rest
        say: Nothing to do.
  - match: {role: tester}
    rules:
      - name: work
        since: '<task id="T-004"'
        steps:
          - calls: [{tool: bash, args: {command: sleep 1000, timeout: 600}}]
      - name: rest
        say: Nothing to do.
`

// The leader's model, and a person who asks, see at any time how the team stands: its tasks,
// its unread mail and the plans that wait.
func TestOverview(t *testing.T) {
	t.Parallel()
	c := up(t, overviewScript, 2)
	c.ok("run", "--detach", "begin")
	until(t, "the plan waits and the tester works", func() bool {
		work := c.ok("status")
		return strings.Contains(work, "waits for leader to decide on its plan") && strings.Contains(work, "bash for")
	})
	c.ok("send", "tester-1", "one more thing") // which it reads behind its command
	c.ok("send", "leader", "how is it?")
	const want = "I was told: Teammates: 1 running, 1 waiting_approval. Open tasks: 2 in progress, 1 claimable, 1 blocked. " +
		"Also: 1 waiting for your decision on a plan, 1 unread message."
	var told string
	until(t, "the leader answers", func() bool {
		told = c.ok("inbox", "user", "-o", "jsonl")
		return strings.Contains(told, "I was told")
	})
	if !strings.Contains(told, want) {
		t.Errorf("the person got\n%s\nwant %s", told, want)
	}
	status := c.ok("status")
	for _, want := range []string{"1 blocked, 2 in_progress, 1 pending", "waiting_approval", "1 unread message to you: teamctl inbox user"} {
		if !strings.Contains(status, want) {
			t.Errorf("status does not tell %q:\n%s", want, status)
		}
	}
}
