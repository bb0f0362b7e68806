package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
)

// A teammate in plan mode that tries to write first, then plans, and writes once more after
// each decision; the second plan is better than the first.
const planScript = `
agents:
  - match: {role: leader}
    rules:
      - name: done
        newest: '"completed_tasks"'
        say: It is done.
      - name: finish
        since: '\[All Idle\]'
        unless: 'waits for (your|a person)'
        steps:
          - calls:
              - {tool: finish_team, args: {summary: written as planned}}
      - name: second
        since: '(?s)type="plan_approval_request"[^>]*request_id="(?P<id>[^"]+)".*plan: write it in small'
        steps:
          - calls:
              - {tool: approve_plan, args: {request_id: "{{.Match.id}}", approve: true, feedback: well planned}}
      - name: first
        since: '(?s)type="plan_approval_request"[^>]*request_id="(?P<id>[^"]+)".*plan: write it in large'
        steps:
          - calls:
              - {tool: approve_plan, args: {request_id: "{{.Match.id}}", approve: false, feedback: smaller letters}}
      - name: begin
        since: 'Write a note'
        steps:
          - calls:
              - {tool: spawn_teammate, args: {role: coder, plan_mode: true}}
              - {tool: create_task, args: {title: Write note.txt}}
      - name: wait
        say: I wait.
  - match: {role: coder}
    rules:
      - name: approved
        since: '(?s).*type="plan_approval_response"[^>]*approve="true"'
        steps:
          - calls:
              - {tool: bash, args: {command: "printf small >note.txt"}}
          - calls:
              - {tool: update_task, args: {task_id: T-001, status: completed, result_summary: written small}}
      - name: rejected
        since: '(?s).*type="plan_approval_response"[^>]*approve="false".*smaller letters'
        steps:
          - calls:
              - {tool: bash, args: {command: "printf large >note.txt"}}
          - await: 'was rejected: smaller letters'
            calls:
              - {tool: submit_plan, args: {plan: "plan: write it in small letters"}}
      - name: begin
        since: '<task id="T-001"'
        steps:
          - calls:
              - {tool: write_file, args: {path: note.txt, content: at once}}
              - {tool: bash, args: {command: "printf now >note.txt"}}
          - await: 'submit_plan'
            calls:
              - {tool: submit_plan, args: {plan: "plan: write it in large letters"}}
      - name: rest
        say: Nothing to do.
`

// Approval blocks writing: of a teammate in plan mode nothing is there before its plan is
// approved, neither at once nor after a rejection. What the leader decides is carried out.
func TestApprovalBlocks(t *testing.T) {
	t.Parallel()
	c := up(t, planScript, 1)
	r := c.begin("Write a note").end(t)
	if r.Status != string(team.TeamFinished) || r.Summary != "written as planned" {
		t.Errorf("the goal is %s: %s", r.Status, r.Summary)
	}
	if note, err := os.ReadFile(filepath.Join(c.dir, "note.txt")); string(note) != "small" {
		t.Errorf("note.txt holds %q, %v", note, err)
	}
	var events []string
	for _, line := range strings.Split(c.ok("events"), "\n") {
		for _, what := range []string{"asks for approval", "rejects the plan", "approves the plan", "T-001 completed"} {
			if strings.Contains(line, what) {
				events = append(events, what)
			}
		}
	}
	if got, want := strings.Join(events, ", "), "asks for approval, rejects the plan, asks for approval, approves the plan, T-001 completed"; got != want {
		t.Errorf("the team tells: %s, want %s", got, want)
	}
}

// Where a person decides, the file is absent until the person has, whatever happens to the
// processes meanwhile.
func TestPersonApproves(t *testing.T) {
	t.Parallel()
	c := up(t, planScript, 2)
	tm := newTeam(t, c.connect(), team.DefaultTeam)
	note := filepath.Join(c.dir, "note.txt")
	c.ok("spawn", "coder", "--plan-mode", "--approver", "human")
	c.ok("tasks", "add", "--title", "Write note.txt")
	waiting := func(of string) client.Plan {
		t.Helper()
		var found client.Plan
		until(t, of, func() bool {
			plans, err := tm.Plans().List(t.Context())
			for _, p := range plans {
				if err == nil && p.Waits() && strings.Contains(p.Plan, of) {
					found = p
				}
			}
			a, err := tm.Members().Get(t.Context(), "coder-1")
			return err == nil && found.ID != "" && a.State == team.WaitingApproval && a.Awaits == team.UserAgent
		})
		if _, err := os.Stat(note); !os.IsNotExist(err) {
			t.Fatalf("while the plan waits: %v", err)
		}
		return found
	}
	first := waiting("large")
	old, err := tm.Members().Get(t.Context(), "coder-1")
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(old.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	until(t, "coder-1 is brought back", func() bool {
		now, err := tm.Members().Get(t.Context(), "coder-1")
		return err == nil && now.Incarnation == 2 && now.State == team.WaitingApproval
	})
	c.ok("approvals", "reject", first.ID, "--feedback", "smaller letters")
	second := waiting("small")
	if out := c.ok("approvals"); !strings.Contains(out, second.ID) || strings.Contains(out, first.ID) {
		t.Errorf("waiting:\n%s", out)
	}
	c.ok("approvals", "approve", second.ID)
	until(t, "the task is completed", func() bool {
		task, err := tm.Board().Task(t.Context(), "T-001")
		return err == nil && task.Status == team.Completed
	})
	if got, err := os.ReadFile(note); string(got) != "small" {
		t.Errorf("note.txt holds %q, %v", got, err)
	}
	for id, want := range map[string]string{first.ID: "conflict", "0123456789abcdef": "not_found"} {
		cmd := c.command("approvals", "approve", id, "-o", "json")
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), want) {
			t.Errorf("approval of %s: %s, want %s", id, out, want)
		}
	}
}
