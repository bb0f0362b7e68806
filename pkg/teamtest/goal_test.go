package teamtest_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
	"agentteam/pkg/teamtest"
	"agentteam/pkg/teamtest/testenv"
	"agentteam/pkg/telemetry/telemetrytest"
)

// builds is a script in which a team builds something: a tester is told to claim
// what is blocked, a coder asks the tester, the tester checks what the coder built.
const builds = `
agents:
- match: {role: leader}
  rules:
  - name: recall
    since: '<mail from="user"[^>]*>\s*What came of the first goal'
    steps:
    - calls:
      - {tool: finish_team, args: {summary: '{{heard "- Goal 1, finished on \\S+ \\S+: (.*\n  Summary.*\n  Tasks.*)"}}'}}
  - name: plan
    since: '<mail from="user"[^>]*>\s*Build (?P<what>\S+)'
    steps:
    - calls:
      - {tool: spawn_teammate, args: {role: tester}}
    - calls:
      - {tool: create_task, args: {title: 'Make {{.Match.what}} 🛠', role: coder, description: 'ask {{field "agent_id" (result "plan" 0)}}'}}
    - calls:
      - {tool: create_task, args: {title: '检查 {{.Match.what}}', role: tester, dependencies: ['{{field "id" (result "plan" 1)}}']}}
    - calls:
      - {tool: send_message, args: {to: '{{field "agent_id" (result "plan" 0)}}', content: 'Try {{field "id" (result "plan" 2)}}', await_reply: true}}
    - await: 'the claim says (\w+)'
      waiting: I wait for the tester.
      calls:
      - {tool: spawn_teammate, args: {role: coder}}
    - await: '\[All Idle\]'
      waiting: I wait for all.
      calls:
      - {tool: get_task, args: {task_id: '{{field "id" (result "plan" 2)}}'}}
    - calls:
      - {tool: finish_team, args: {summary: '{{.Match.what}}: {{field "result_summary" (result "plan" 5)}}, claim {{heard "the claim says (\\w+)"}}'}}
  - {name: wait, say: I wait.}

- match: {role: tester}
  rules:
  - name: try
    since: '<mail from="leader"[^>]*>\s*Try (?P<id>T-\d+)'
    unless: '<task id=' # the check has begun: its context tells the mail once more
    steps:
    - calls:
      - {tool: claim_task, args: {task_id: '{{.Match.id}}'}}
    - calls:
      - {tool: send_message, args: {to: leader, content: 'the claim says {{field "code" (result "try" 0)}}'}}
  - name: answer
    since: '(?s).*<mail from="(?P<from>coder-\d+)" id="(?P<mail>[^"]+)"[^>]*>\s*Which colour'
    steps:
    - calls:
      - {tool: send_message, args: {to: '{{.Match.from}}', content: 'colour blue', in_reply_to: '{{.Match.mail}}'}}
  - name: check
    since: '(?s)<task id="(?P<id>[^"]+)".*\n  file: (?P<path>\S+)'
    steps:
    - calls:
      - {tool: read_file, args: {path: '{{.Match.path}}'}}
    - calls:
      - {tool: update_task, args: {task_id: '{{.Match.id}}', status: completed, result_summary: 'read {{regex "built (\\w+)" (result "check" 0)}}'}}
  - {name: idle, say: Nothing to do.}

- match: {role: coder}
  rules:
  - name: make
    since: '(?s)<task id="(?P<id>[^"]+)"[^>]*>\ntitle: Make (?P<what>\S+).*\nask (?P<ask>\S+)\n\ndeliverable: (?P<path>\S+)'
    steps:
    - calls:
      - {tool: send_message, args: {to: '{{.Match.ask}}', content: 'Which colour?', await_reply: true}}
    - await: 'colour (\w+)'
      waiting: I wait for the colour.
      calls:
      - {tool: bash, args: {command: 'GATE mkdir -p deliverables && echo built {{heard "colour (\\w+)"}} > {{.Match.path}}'}}
    - calls:
      - {tool: update_task, args: {task_id: '{{.Match.id}}', status: completed, result_summary: built it}}
  - {name: idle, say: Nothing to do.}
`

// script is builds without a gate: nothing holds the coder up.
var script = strings.ReplaceAll(builds, "GATE ", "")

// A goal goes in, the work is done, the answer comes out; and again with the same
// team.
func TestTwoGoals(t *testing.T) {
	t.Parallel()
	c := teamtest.Start(t, script)
	c.Leader()
	c.Teammates(2)
	tm := c.Team("t")

	record := teamtest.Wait(t, teamtest.Set(t, tm, "Build bridges"))
	// The words come from the deliverable, the answers and the refused claim: each
	// link of the chain has held.
	if record.Status != team.TeamFinished || record.Summary != "bridges: read blue, claim blocked" || record.FinishedAt == nil {
		t.Fatalf("the first goal is %s: %q", record.Status, record.Summary)
	}
	for _, task := range teamtest.Tasks(t, tm) {
		if task.Status != team.Completed || task.Attempts != 0 || task.Epoch != 1 {
			t.Errorf("%s is %s after %d attempts, epoch %d", task.ID, task.Status, task.Attempts, task.Epoch)
		}
	}
	for _, name := range []team.AgentID{"tester-1", "coder-1", team.Leader} {
		teamtest.Until(t, tm, func(e client.Entry) bool { return e.AgentID == name && e.Event.Event.Type == "MEMBER_STOPPED" })
	}

	record = teamtest.Wait(t, teamtest.Set(t, tm, "Build towers"))
	if record.Status != team.TeamFinished || record.Summary != "towers: read blue, claim blocked" || record.GoalNumber != 2 {
		t.Errorf("the second goal is %s: %q", record.Status, record.Summary)
	}
	tasks := teamtest.Tasks(t, tm)
	if len(tasks) != 4 || tasks[3].ID != "T-004" || tasks[3].Assignee != "tester-1" { // which has come back
		t.Errorf("the board after the second goal: %+v", tasks)
	}

	record = teamtest.Wait(t, teamtest.Set(t, tm, "What came of the first goal?"))
	if record.Summary != "Build bridges\n  Summary: bridges: read blue, claim blocked\n  Tasks: T-001 to T-002: 2 completed" {
		t.Errorf("of the first goal the leader of the third knows %q", record.Summary)
	}

	status, err := c.Client.Processes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range slices.Concat(status.Leaders, status.Standbys, status.Members) {
		telemetrytest.Lint(t, teamtest.Metrics(t, p.Metrics))
	}
	if len(status.Leaders) != 1 || len(status.Standbys)+len(status.Members) < 2 {
		t.Errorf("processes: %+v", status)
	}
}

// The members of one goal come back for the next, with their conversations: many goals do not
// make many members. One that is still leaving when the next goal comes is passed over.
func TestMembersComeBack(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	c := teamtest.Start(t, `
agents:
- match: {role: leader}
  rules:
  - name: lead
    since: '<mail from="user"[^>]*>\s*goal (?P<n>\d+)'
    steps:
    - calls:
      - {tool: spawn_teammate, args: {role: coder, prompt: 'report {{.Match.n}}'}}
    - await: 'report (\d+) by'
      waiting: I wait.
      calls:
      - {tool: finish_team, args: {summary: 'heard {{heard "report (\\d+) by"}}'}}
- match: {role: coder}
  rules:
  - name: report
    since: 'report (?P<n>\d+)'
    steps:
    - calls:
      - {tool: send_message, args: {to: leader, content: 'report {{.Match.n}} by {{.Name}}'}}
  - {name: idle, say: Nothing to do.}
`)
	c.Leader()
	c.Teammates(3)
	tm := c.Team("t")
	const goals = 12
	for n := range goals {
		record := teamtest.Wait(t, teamtest.Set(t, tm, fmt.Sprintf("goal %d", n)))
		if want := fmt.Sprintf("heard %d", n); record.Status != team.TeamFinished || record.Summary != want {
			t.Fatalf("the goal is %s: %q, want %q", record.Status, record.Summary, want)
		}
	}
	all, err := tm.Members().Records(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	incarnations := uint64(0)
	for _, m := range all {
		if m.AgentID != team.Leader {
			incarnations += m.Incarnation
		}
	}
	if len(all) > 4 || incarnations < goals {
		t.Errorf("%d goals have made %d members of %d incarnations", goals, len(all)-1, incarnations)
	}
}

// A conversation shows each call with its own answer: a process that ends its team
// is not seen as interrupted at the next goal.
func TestFinishIsAnswered(t *testing.T) {
	t.Parallel()
	c := teamtest.Start(t, script)
	c.Leader()
	c.Teammates(2)
	tm := c.Team("t")
	teamtest.Wait(t, teamtest.Set(t, tm, "Build bridges"))
	end := teamtest.Until(t, tm, func(e client.Entry) bool {
		return e.Event.Event.Type == team.ToolCallResult && e.Event.Event.ToolCallName == "finish_team"
	})
	const want = `{"summary":"bridges: read blue, claim blocked","completed_tasks":2,"total_tasks":2}`
	if got := end.Event.Event.Content; got != want {
		t.Errorf("finish_team answered %s, want %s", got, want)
	}
}

// Two teams of one cluster work at the same time and know nothing of each other.
func TestTwoTeams(t *testing.T) {
	t.Parallel()
	c := teamtest.Start(t, script)
	c.Leader()
	c.Teammates(4)
	what := map[team.TeamID]string{"red": "bridges", "blue": "towers"}
	teams, goals := map[team.TeamID]*client.Team{}, map[team.TeamID]*client.Goal{}
	for id := range what {
		teams[id] = c.Team(id)
		goals[id] = teamtest.Set(t, teams[id], "Build "+what[id])
	}
	for id, g := range goals {
		record := teamtest.Wait(t, g)
		if record.Status != team.TeamFinished || record.Summary != what[id]+": read blue, claim blocked" {
			t.Errorf("%s is %s: %q", id, record.Status, record.Summary)
		}
		if tasks := teamtest.Tasks(t, teams[id]); len(tasks) != 2 || !strings.Contains(tasks[0].Title, what[id]) {
			t.Errorf("board of %s: %+v", id, tasks)
		}
		err := teams[id].Feed(t.Context(), client.FeedOptions{}, func(e client.Entry) error {
			if text := e.Event.Event.Delta + e.Event.Event.Content; e.TeamID != id || strings.Contains(text, what["red"]) && strings.Contains(text, what["blue"]) {
				t.Errorf("in the feed of %s: %+v", id, e)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// A leader stops in the middle of the work; another goes on from its journal, and
// nothing that it did is done again.
func TestSecondLeader(t *testing.T) {
	t.Parallel()
	c := teamtest.Start(t, strings.ReplaceAll(builds, "GATE", "until [ -e go ]; do sleep 0.02; done;"))
	stop := c.Leader()
	c.Teammates(2)
	tm := c.Team("t")
	led := func(incarnation uint64) {
		teamtest.Until(t, tm, func(e client.Entry) bool {
			var m team.Member
			return e.AgentID == team.Leader && e.Event.Event.Type == "MEMBER_JOINED" && json.Unmarshal(e.Event.Event.Value, &m) == nil && m.Incarnation == incarnation
		})
	}
	led(1) // the team has no goal yet: the one that comes is not another one
	g := teamtest.Set(t, tm, "Build bridges")
	teamtest.Until(t, tm, func(e client.Entry) bool { return e.Event.Event.ToolCallName == "bash" })
	stop()
	c.Leader()
	led(2)
	record, err := tm.Record(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(record.Workspace, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	record = teamtest.Wait(t, g)
	if record.Status != team.TeamFinished || record.Summary != "bridges: read blue, claim blocked" {
		t.Errorf("the goal is %s: %q", record.Status, record.Summary)
	}
	members, err := tm.Members().List(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	if tasks := teamtest.Tasks(t, tm); len(tasks) != 2 || len(members) != 3 {
		t.Errorf("%d tasks and %d members, want 2 and 3: something was done twice", len(tasks), len(members))
	}
}
