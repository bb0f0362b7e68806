package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
)

// pageScript has a leader that makes tasks of a goal and ends it once they are done, and coders that
// do as a task's title begins: ask a person, or just do it.
const pageScript = `
agents:
  - match: {role: leader}
    rules:
      - name: done
        newest: '"completed_tasks"'
        say: All is done.
      - name: finish
        since: '\[All Idle\]'
        unless: 'waits for (your|a person)'
        steps:
          - calls: [{tool: finish_team, args: {summary: "The parser is ported. **All** tests pass."}}]
      - name: said
        since: '<mail from="user"[^>]*>\nHow far'
        say: Half of it is done.
      - name: begin
        since: '<mail from="user"[^>]*>\nPort'
        steps:
          - say: I split it.
            calls:
              - {tool: spawn_teammate, args: {role: coder}}
              - {tool: spawn_teammate, args: {role: coder}}
          - calls:
              - tool: create_tasks
                args:
                  tasks:
                    - {key: a, title: Read the grammar}
                    - {key: b, title: Write the parser, dependencies: [a]}
                    - {key: c, title: Write the tests, dependencies: [a]}
                    - {key: d, title: Ask which port, dependencies: [b, c]}
          - say: I wait for the team.
      - name: rest
        say: I wait.
  - match: {role: coder}
    rules:
      - name: answered
        since: '(?s)<mail from="user"[^>]*in_reply_to'
        steps:
          - calls: [{tool: update_task, args: {task_id: T-004, status: completed, result_summary: "It is the port that was named."}}]
      - name: ask
        since: '(?s)<task id="(?P<id>T-\d+)".*Ask which port'
        steps:
          - calls: [{tool: ask_user, args: {question: "Which port is it to be?", choices: ["8080", "9090"]}}]
      - name: work
        since: '(?s)<task id="(?P<id>T-\d+)"'
        steps:
          - say: "I look at **{{.Match.id}}**."
            calls: [{tool: bash, args: {command: "mkdir -p deliverables; echo done > $(ls -d deliverables)/{{.Match.id}}.txt; sleep 0.3"}}]
          - calls: [{tool: update_task, args: {task_id: "{{.Match.id}}", status: completed, result_summary: "{{.Match.id}} is done."}}]
      - name: rest
        say: Nothing to do.
`

// A person logs in by the code of teamctl web, and finds the page; it loads nothing from elsewhere.
func TestPageOpens(t *testing.T) {
	t.Parallel()
	b := openBrowser(t)
	c := up(t, pageScript, 2)
	newTeam(t, c.connect(), team.DefaultTeam)
	p := b.tab()
	p.open(c)
	p.sees("Teams")
	p.sees(string(team.DefaultTeam))
	p.goTo("#/default")
	p.sees("default")
	p.until("a view has the focus, with its name", `document.activeElement.id === "main" && document.activeElement.ariaLabel === "default"`)
	p.presses("Keys", "header")
	p.until("the keys are shown", `document.querySelector("dialog[open]")?.innerText.includes("all teams")`)
	p.keys(kb.Escape)
	p.until("the focus is where it was", `!document.querySelector("dialog") && document.activeElement.ariaLabel === "Keys"`)
}

// A person sets a goal by the pointer, answers a question by the keyboard, and takes the result:
// in two tabs, one of which was opened late and shows the past.
func TestPageRun(t *testing.T) {
	t.Parallel()
	b := openBrowser(t)
	c := folder(t, rehearse(t, pageScript), "AGENTTEAM_LEASE=5s", "XDG_CACHE_HOME="+t.TempDir())
	repository(t, c.dir, `echo one > one.txt; printf '.agentteam\n' > .gitignore`)
	c.upWith(3)
	p := b.tab()
	p.open(c)
	p.presses("New team")
	p.until("its name is asked for", `document.getElementById("new-team")`)
	eval[bool](p, `(document.getElementById("new-team").focus(), true)`)
	p.keys("default")
	p.types("Its goal", "Port the parser")
	p.presses("Start")
	p.asked("Which port is it to be?")
	p.until("the title has the number", `document.title.startsWith("(1)")`)
	p.until("the icon has the number", `document.querySelector("link[rel=icon]").href.endsWith("?n=1")`)
	late := b.tab()
	late.open(c)
	late.goTo("#/default")
	late.sees("Which port is it to be?")
	late.goTo("#/default?kind=says&member=leader")
	late.sees("I split it.") // which was said before it was opened
	late.until("and nothing of the others", `!document.querySelector(".stream .list").innerText.includes("I look at")`)
	late.goTo("#/default/timeline")
	late.sees("a person's answer")
	late.until("a lane for each agent", `document.querySelectorAll(".lane-name").length === 3`)
	late.until("the tasks are bars", `document.querySelectorAll(".bar").length >= 4`)
	late.until("the critical path is marked", `document.querySelector(".bar.critical")`)
	p.size(1280, 800, "light")
	p.shot("team") // which the README shows
	late.size(1280, 640, "light")
	late.shot("timeline")
	p.keys("1")
	p.sees("Answered.")
	p.until("nothing waits any more", `document.title.startsWith("default")`)
	p.sees("finished")
	p.until("the question is gone", `!document.querySelector(".ask")`)
	late.goTo("#/default")
	late.sees("finished")
	p.goTo("#/default")
	p.sameStream(late)
	p.keys("gr")
	p.sees("The parser is ported. All tests pass.")
	p.sees("teamctl land --team default")
	p.sees("T-004")
	p.until("the whole difference is there", `[...document.querySelectorAll(".d-more .d-text")].some((e) => e.textContent === "done")`)
	p.presses("by alias")
	p.until("the cost is by alias", `[...document.querySelectorAll(".usage th")].some((e) => e.textContent === "alias")`)
	p.keys("w")
	p.until("the next goal can be typed", `document.activeElement.id === "next-goal"`)
	p.keys("Port the printer")
	p.submits()
	p.sees("Goals before")
	p.types("What to add", "And the lexer.")
	p.presses("Add", "section[aria-label='Add to the goal']")
	p.sees("The leader reads it.")
	tm, err := c.connect().Open(t.Context(), team.DefaultTeam)
	if err != nil {
		t.Fatal(err)
	}
	until(t, "the leader has what was added", func() bool {
		all, err := tm.Mail().Inbox(t.Context(), team.Leader)
		return err == nil && slices.ContainsFunc(all, func(l client.StoredMessage) bool { return strings.Contains(l.Content, "And the lexer.") })
	})
	p.presses("Timeline", "section[aria-label='Goals before']")
	p.sees("goal 1, ")
	p.until("the wait for a person is told", `/person [0-9]+ s/.test(document.body.textContent)`)
	p.until("its tasks are bars, and it is whole", `document.querySelectorAll(".bar").length >= 4 && location.hash === "#/default/timeline?goal=1"`)
}

// pageAskScript has a coder in plan mode whose first plan of each task is rejected. Of the first task it then makes a
// call that is refused; of the second it makes calls that are allowed, and asks at its end.
const pageAskScript = `
agents:
  - match: {role: leader}
    rules:
      - name: rest
        say: I wait.
  - match: {role: coder}
    rules:
      - name: answered
        since: '(?s)<mail from="user"[^>]*in_reply_to'
        steps:
          - calls: [{tool: update_task, args: {task_id: T-002, status: completed, result_summary: "It is written."}}]
      - name: always
        since: 'has allowed your call.*echo three.*from now on'
        steps:
          - calls: [{tool: bash, args: {command: "echo three"}}]
          - calls: [{tool: ask_user, args: {question: "Which port is it to be?", choices: ["8080", "9090"]}}]
      - name: task
        since: 'has allowed your call.*echo two.*as often'
        steps:
          - calls: [{tool: bash, args: {command: "echo two >>out.txt"}}]
          - calls: [{tool: bash, args: {command: "echo two >>out.txt"}}]
          - calls: [{tool: bash, args: {command: "echo three"}}]
      - name: once
        since: 'has allowed your call.*echo one.*once'
        steps:
          - calls: [{tool: bash, args: {command: "echo one >>out.txt"}}]
          - calls: [{tool: bash, args: {command: "echo two >>out.txt"}}]
      - name: refused
        since: 'has refused your call'
        steps:
          - calls: [{tool: update_task, args: {task_id: T-001, status: completed, result_summary: done without}}]
      - name: approved
        since: '(?s).*type="plan_approval_response"[^>]*approve="true"'
        steps:
          - calls: [{tool: bash, args: {command: "echo one >>out.txt"}}]
      - name: rejected
        since: '(?s).*type="plan_approval_response"[^>]*approve="false"'
        steps:
          - calls: [{tool: submit_plan, args: {plan: "Write it in **small** letters."}}]
      - name: begin
        since: '<task id="T-00'
        steps:
          - calls: [{tool: submit_plan, args: {plan: "Write it in large letters."}}]
      - name: rest
        say: Nothing to do.
`

// Plans are rejected and approved, and calls refused and allowed, once, for a task and from now on: by keys alone, by
// the pointer, and on a phone.
func TestPageDecides(t *testing.T) {
	t.Parallel()
	b := openBrowser(t)
	c := upAt(t, rehearse(t, pageAskScript), 2, "AGENTTEAM_SANDBOX=none") // so that commands are asked for without a rule
	tm := newTeam(t, c.connect(), team.DefaultTeam)
	c.ok("spawn", "coder", "--plan-mode", "--approver", "human")
	c.ok("tasks", "add", "--title", "Write out.txt")
	completed := func(id team.TaskID) {
		t.Helper()
		until(t, "the task is completed", func() bool {
			task, err := tm.Board().Task(t.Context(), id)
			return err == nil && task.Status == team.Completed
		})
	}
	p := b.tab()
	p.open(c)
	p.goTo("#/default")
	p.asked("Write it in large letters.")
	p.keys("rsmaller letters") // in a row, as a person does who types fast: the first opens the box
	p.submits()
	p.asked("Write it in small letters.")
	if plans, err := tm.Plans().List(t.Context()); err != nil || plans[0].Feedback != "smaller letters" || plans[0].Status != team.PlanRejected {
		t.Errorf("the first plan is %+v, %v", plans, err)
	}
	p.keys("a")
	p.asked("echo one >>out.txt")
	p.keys("r")
	p.sees("Refused.")
	p.until("nothing waits any more", `!document.title.startsWith("(")`)
	completed("T-001")

	c.ok("tasks", "add", "--title", "Write more")
	p.asked("Write it in large letters.")
	p.presses("Reject", ".ask")
	p.types("What is to be different", "smaller letters")
	p.presses("Reject", ".ask form")
	phone := b.tab()
	phone.onPhone()
	phone.open(c)
	phone.decidesByTaps("Write it in small letters.", "Approve")
	phone.decidesByTaps("echo one >>out.txt", "Allow once")
	p.asked("echo two >>out.txt")
	p.presses("For the task", ".ask")
	p.asked("echo three")
	p.presses("Always", ".ask")
	phone.decidesByTaps("Which port is it to be?", "9090")
	completed("T-002")
	if text, err := os.ReadFile(filepath.Join(c.dir, "out.txt")); string(text) != "one\ntwo\ntwo\n" {
		t.Errorf("it has written %q, %v", text, err)
	}
	if record, err := tm.Record(t.Context()); err != nil || !slices.Equal(record.Policy.Permissions.Allow, []string{"Bash(echo three)"}) {
		t.Errorf("allowed from now on is %v, %v", record.Policy.Permissions.Allow, err)
	}
}
