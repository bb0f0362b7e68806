package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
)

// Joe asks the person, then submits a plan, each once: whoever has the task after that reads both. Bob tries to write
// before anything else. Who has the answer and the approval writes.
const handoverScript = `
agents:
  - match: {role: leader}
    rules:
      - name: decide
        newest: 'type="plan_approval_request"[^>]*request_id="(?P<id>[^"]+)"'
        steps: [{calls: [{tool: approve_plan, args: {request_id: "{{.Match.id}}", approve: true}}]}]
      - name: wait
        say: I wait.
  - match: {name: "*"}
    rules:
      - name: approved
        since: '(?s).*type="plan_approval_response"[^>]*approve="true"'
        steps:
          - calls:
              - tool: bash
                args:
                  command: |-
                    printf '{{heard "The answer of user:\\s+│ (tabs|spaces)"}} by {{.Name}}' >note.txt
          - calls: [{tool: update_task, args: {task_id: T-001, status: completed, result_summary: written}}]
      - name: answered
        since: '(?s)in_reply_to="[^"]*"[^>]*>\s*(tabs|spaces)'
        unless: 'asked for this task before'
        steps: [{calls: [{tool: submit_plan, args: {plan: "I write the note."}}]}]
      - name: answered-later
        since: '(?s)in_reply_to="[^"]*"[^>]*>\s*(?P<what>tabs|spaces)'
        steps: [{calls: [{tool: update_task, args: {task_id: T-001, status: completed, result_summary: 'with {{.Match.what}}'}}]}]
      - name: goes-on
        since: 'asked for this task before'
        steps:
          - calls:
              - {tool: write_file, args: {path: note.txt, content: at once}}
              - {tool: bash, args: {command: "printf now >note.txt"}}
          - say: I wait.
      - name: begin
        since: '<task id="T-001"'
        steps: [{calls: [{tool: ask_user, args: {question: 'Tabs or spaces?', choices: [tabs, spaces]}}]}]
      - name: rest
        say: Nothing to do.
`

// handover is a cluster with members that a task goes through, and what is seen of it from here.
type handover struct {
	*cluster
	tm *client.Team
}

// restarts ends the cluster in an orderly way, and starts it again.
func (h *handover) restarts() {
	h.t.Helper()
	h.ok("down")
	h.ok("up", "-d", "-n", "2")
	h.tm = newTeam(h.t, h.connect(), team.DefaultTeam)
}

// waits waits until a member with the task waits for a person, and returns what for.
func (h *handover) waits(who team.AgentID, state team.MemberState) (asked string) {
	h.t.Helper()
	until(h.t, string(who)+" waits for a person", func() bool {
		m, err := h.tm.Members().Get(h.t.Context(), who)
		asked = m.Asked
		return err == nil && m.State == state && m.Awaits == team.UserAgent && m.Task == "T-001"
	})
	return asked
}

// killed kills the process of a member and waits until the next one is there.
func (h *handover) killed(who team.AgentID) {
	h.t.Helper()
	old, err := h.tm.Members().Get(h.t.Context(), who)
	if err != nil {
		h.t.Fatal(err)
	}
	if err := syscall.Kill(old.PID, syscall.SIGKILL); err != nil {
		h.t.Fatal(err)
	}
	until(h.t, string(who)+" is brought back", func() bool {
		now, err := h.tm.Members().Get(h.t.Context(), who)
		return err == nil && now.Incarnation > old.Incarnation && now.HasProcess()
	})
}

// asked returns the ids of the questions that the person was asked.
func (h *handover) asked() (ids []string) {
	h.t.Helper()
	letters, err := h.tm.Mail().Questions(h.t.Context(), team.UserAgent)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, l := range letters {
		ids = append(ids, l.ID)
	}
	return ids
}

// completed waits for the end of the task, and returns what came of it.
func (h *handover) completed(by team.AgentID) string {
	h.t.Helper()
	var task team.Task
	until(h.t, "the task is completed", func() bool {
		v, err := h.tm.Board().Task(h.t.Context(), "T-001")
		task = v.Task
		return err == nil && task.Status == team.Completed
	})
	if task.Assignee != by {
		h.t.Errorf("%s has completed it", task.Assignee)
	}
	return task.ResultSummary
}

func handsOver(t *testing.T, members ...[]string) *handover {
	t.Helper()
	t.Parallel()
	h := &handover{cluster: up(t, handoverScript, 2)}
	for _, args := range members {
		h.ok(append([]string{"spawn", "coder", "--name"}, args...)...)
	}
	h.ok("tasks", "add", "--title", "Write note.txt", "--assignee", members[0][0])
	h.tm = newTeam(t, h.connect(), team.DefaultTeam)
	return h
}

// A task whose plan waits for a person keeps its gate through a restart of the cluster, an assignment to a plain member and
// the death of that one's process: nothing is written before a person has approved. The plan is written once, and the
// person is asked each thing once.
func TestGateGoesWithTheTask(t *testing.T) {
	h := handsOver(t, []string{"joe", "--plan-mode", "--approver", "human"}, []string{"bob"})
	note := filepath.Join(h.dir, "note.txt")
	nothing := func(when string) {
		t.Helper()
		if text, err := os.ReadFile(note); !os.IsNotExist(err) {
			t.Fatalf("%s note.txt holds %q, %v", when, text, err)
		}
	}
	h.waits("joe", team.WaitingUser)
	h.ok("answer", "joe", "tabs")
	first := h.waits("joe", team.WaitingApproval)
	h.restarts()
	if again := h.waits("joe", team.WaitingApproval); again != first {
		t.Errorf("after the restart joe waits for %s, not for %s", again, first)
	}
	nothing("after the restart")
	h.ok("tasks", "assign", "T-001", "--to", "bob")
	second := h.waits("bob", team.WaitingApproval)
	nothing("with bob")
	if got, err := h.tm.Board().Task(t.Context(), "T-001"); err != nil || got.Gate != team.ByHuman {
		t.Errorf("its gate is %q, %v", got.Gate, err)
	}
	if out := h.ok("tasks", "get", "T-001"); !strings.Contains(out, "yes; approver: human") {
		t.Errorf("tasks get shows no gate:\n%s", out)
	}
	h.killed("bob")
	if again := h.waits("bob", team.WaitingApproval); again != second {
		t.Errorf("bob's next process waits for %s, not for %s", again, second)
	}
	nothing("with bob's next process")
	plans, err := h.tm.Plans().List(t.Context())
	waiting := slices.DeleteFunc(slices.Clone(plans), func(p client.Plan) bool { return !p.Waits() })
	if err != nil || len(plans) != 2 || len(waiting) != 1 || waiting[0].ID != second || waiting[0].Author != "joe" || waiting[0].Plan != "I write the note." {
		t.Errorf("%v: waiting are %+v, of %d", err, waiting, len(plans))
	}
	if code, _, errs := exit(t, h.command("approvals", "approve", first)); code != 4 {
		t.Errorf("an approval of the plan in joe's name: exit status %d, %s", code, errs)
	}
	nothing("after that")
	h.ok("approvals", "approve", second)
	h.completed("bob")
	if text, err := os.ReadFile(note); string(text) != "tabs by bob" {
		t.Errorf("note.txt holds %q, %v", text, err)
	}
	if asked := h.asked(); len(asked) != 1 {
		t.Errorf("the person was asked %v", asked)
	}
}

// A question that is open when its task changes hands stays open under its id, through a restart and a kill; its answer
// goes to the member that has the task then, which has not asked again.
func TestQuestionGoesWithTheTask(t *testing.T) {
	h := handsOver(t, []string{"joe"}, []string{"bob"})
	q := h.waits("joe", team.WaitingUser)
	h.restarts()
	if again := h.waits("joe", team.WaitingUser); again != q {
		t.Errorf("after the restart joe waits for %s, not for %s", again, q)
	}
	h.ok("tasks", "assign", "T-001", "--to", "bob")
	if again := h.waits("bob", team.WaitingUser); again != q {
		t.Errorf("bob waits for %s, not for %s", again, q)
	}
	if out := h.ok("inbox", "user"); !strings.Contains(out, "open") {
		t.Errorf("the question is not open:\n%s", out)
	}
	h.killed("bob")
	h.waits("bob", team.WaitingUser)
	h.ok("answer", q, "spaces")
	if got := h.completed("bob"); got != "with spaces" {
		t.Errorf("it is done %q", got)
	}
	if asked := h.asked(); len(asked) != 1 || asked[0] != q {
		t.Errorf("the person was asked %v", asked)
	}
}
