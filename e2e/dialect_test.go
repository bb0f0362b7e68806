package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
)

// migrationScript is one job for a team of each dialect. The leader makes four tasks that
// depend on each other, changes one, cancels one, tries to claim one that is blocked, and
// ends the goal when all is done.
const migrationScript = `
agents:
  - match: {role: leader, team: native}
    rules:
      - name: lead
        since: '<mail from="user"'
        steps:
          - calls:
              - tool: create_tasks
                args:
                  tasks:
                    - {key: look, title: List the REST endpoints, role: analyst}
                    - {key: schema, title: Write the schema, role: backend, dependencies: [look]}
                    - {key: serve, title: Resolve, role: backend, dependencies: [schema]}
                    - {key: ask, title: Query it, role: frontend, dependencies: [look]}
              - {tool: create_task, args: {title: Not needed, dependencies: [T-004]}}
          - calls:
              - {tool: update_task, args: {task_id: T-004, title: Query by GraphQL, priority: 2, add_dependencies: [T-003]}}
              - {tool: claim_task, args: {task_id: T-005}}
              - {tool: get_task, args: {task_id: T-004}}
              - {tool: update_task, args: {task_id: T-005, status: cancelled, reason: no need}}
              - {tool: list_tasks, args: {}}
          - calls:
              - {tool: spawn_teammate, args: {role: analyst}}
              - {tool: spawn_teammate, args: {role: backend}}
              - {tool: spawn_teammate, args: {role: frontend}}
          - say: I wait.
          - await: '\[All Idle\]'
            calls:
              - {tool: finish_team, args: {summary: '{{(result "lead" 1 1).code}} {{(result "lead" 1 2).title}}: {{(result "lead" 1 2).waiting_for}}'}}
  - match: {team: native}
    rules:
      - name: work
        since: '<task id="(?P<id>[^"]+)"'
        steps:
          - calls:
              - {tool: bash, args: {command: 'ls native-* 2>/dev/null'}}
              - {tool: write_file, args: {path: 'native-{{.Match.id}}', content: 'by {{.Name}}'}}
          - calls:
              - {tool: update_task, args: {task_id: '{{.Match.id}}', status: completed, result_summary: 'There was: {{result "work" 0}}'}}
      - {name: rest, say: Nothing to do.}
  - match: {role: leader, team: claude}
    rules:
      - name: lead
        since: '<mail from="user"'
        steps:
          - calls:
              - {tool: TeamCreate, args: {team_name: claude, description: Migrates the API.}}
              - {tool: TaskCreate, args: {subject: List the REST endpoints, role: analyst, activeForm: Listing}}
              - {tool: TaskCreate, args: {subject: Write the schema, role: backend}}
              - tool: TeamFanout
                args:
                  tasks:
                    - {key: serve, subject: Resolve, role: backend, blockedBy: [T-002]}
                    - {key: ask, subject: Query it, role: frontend, blockedBy: [T-001]}
                    - {key: no, subject: Not needed, blockedBy: [ask]}
          - calls:
              - {tool: TaskUpdate, args: {taskId: "1", addBlocks: ["2"]}}
              - {tool: TaskUpdate, args: {taskId: "4", subject: Query by GraphQL, addBlockedBy: ["3"], metadata: {priority: critical}}}
              - {tool: TaskUpdate, args: {taskId: "5", owner: leader, status: in_progress}}
              - {tool: TaskGet, args: {taskId: "4"}}
              - {tool: TaskUpdate, args: {taskId: "5", status: deleted}}
              - {tool: TaskList, args: {}}
          - calls:
              - {tool: Task, args: {team_name: claude, name: analyst-1, subagent_type: analyst, prompt: Be brief., description: looks}}
              - {tool: Task, args: {team_name: claude, name: backend-1, subagent_type: backend}}
              - {tool: Task, args: {team_name: claude, name: frontend-1, subagent_type: frontend}}
          - calls:
              - {tool: TeamCollect, args: {}}
          - await: '\[All Idle\]'
            calls:
              - {tool: SendMessage, args: {to: analyst-1, message: {type: shutdown_request, reason: All is done.}}}
              - {tool: SendMessage, args: {type: shutdown_request, recipient: backend-1, content: All is done.}}
          - calls:
              - tool: TeamDelete
                args: {name: claude, summary: '{{(result "lead" 1 2).code}} {{(result "lead" 1 3).subject}}: {{(result "lead" 1 3).blockedBy}}'}
  - match: {team: claude}
    rules:
      - name: work
        since: '<task id="(?P<id>[^"]+)"'
        steps:
          - calls:
              - {tool: TaskUpdate, args: {taskId: '{{.Match.id}}', status: in_progress, activeForm: Working}}
              - {tool: Bash, args: {command: 'ls claude-* 2>/dev/null', description: See what is there, timeout: 60000}}
              - {tool: Write, args: {file_path: 'claude-{{.Match.id}}', content: 'by {{.Name}}'}}
              - {tool: Read, args: {file_path: 'claude-{{.Match.id}}'}}
          - calls:
              - {tool: TaskUpdate, args: {taskId: '{{.Match.id}}', status: completed, result_summary: 'There was: {{result "work" 0 1}}'}}
      - {name: rest, say: Nothing to do.}
`

// A migration in four dependent tasks is done by an analyst, a backend and a frontend, from
// the goal to the answer, in both dialects. The team is deleted at the first call, whoever of its members was asked to leave. Tasks are made, read, changed and cancelled; one
// that depends on others is refused until they are completed, and then begins by itself.
func TestMigrationInBothDialects(t *testing.T) {
	t.Parallel()
	c := up(t, migrationScript, 3)
	if err := os.Mkdir(filepath.Join(c.dir, ".agents"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, role := range []string{"analyst", "backend", "frontend"} {
		text := "---\nname: " + role + "\ndescription: Does the part of the " + role + ".\n---\nYou do your part.\n"
		if err := os.WriteFile(filepath.Join(c.dir, ".agents", role+".md"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	c.ok("teams", "add", "native")
	c.ok("teams", "add", "claude", "--dialect", "claude")
	for dialect, summary := range map[string]string{
		"native": "blocked Query by GraphQL: [T-001 T-003]",
		"claude": "blocked Query by GraphQL: [T-001 T-003]",
	} {
		r, err := c.run("--team", dialect, "Migrate the API from REST to GraphQL")
		if err != nil {
			t.Fatal(err)
		}
		if r.Status != "finished" || r.Summary != summary {
			t.Errorf("%s: %s with %q, want %q", dialect, r.Status, r.Summary, summary)
		}
		tasks := map[team.TaskID]team.TaskView{}
		for _, task := range r.Tasks {
			tasks[task.ID] = task
		}
		for id, by := range map[team.TaskID]team.AgentID{"T-001": "analyst-1", "T-002": "backend-1", "T-003": "backend-1", "T-004": "frontend-1"} {
			task := tasks[id]
			if task.Status != team.Completed || task.Assignee != by {
				t.Errorf("%s: %s is %s by %s, want completed by %s", dialect, id, task.Status, task.Assignee, by)
				continue
			}
			for _, d := range task.Dependencies {
				if done := tasks[d].CompletedAt; done == nil || task.ClaimedAt.Before(*done) || !strings.Contains(task.ResultSummary, dialect+"-"+string(d)) {
					t.Errorf("%s: %s was begun at %v, its dependency %s ended at %v: %s", dialect, id, task.ClaimedAt, d, done, task.ResultSummary)
				}
			}
		}
		if last := tasks["T-004"]; last.Priority != 2 || !slices.Equal(last.Dependencies, []team.TaskID{"T-001", "T-003"}) {
			t.Errorf("%s: the changed task is %+v", dialect, last)
		}
		if got := c.ok("--team", dialect, "tasks", "get", "T-005", "-o", "json"); !strings.Contains(got, `"status":"cancelled"`) {
			t.Errorf("%s: the task that is not needed: %s", dialect, got)
		}
	}
	if got := c.ok("teams", "get", "claude"); !strings.Contains(got, "Migrates the API.") {
		t.Errorf("the team's record:\n%s", got)
	}
}

// keptScript has a leader of the other dialect read a skill and run its script, mean a mode of another program, ask the one member
// that is kept ready to leave, and delete the team once another one is ready in its place.
const keptScript = `
agents:
  - match: {role: leader}
    rules:
      - name: lead
        since: '<mail from="user"[^>]*>\s*go'
        steps:
          - calls:
              - {tool: TeamCreate, args: {name: shop}}
              - {tool: Task, args: {prompt: Both at the same time., mode: parallel}}
              - {tool: Skill, args: {skill: deploy, args: today}}
              - {tool: Bash, args: {command: 'sh .claude/skills/deploy/scripts/go.sh; until [ -e ready-1 ]; do sleep 0.05; done', timeout: 60000}}
          - calls:
              - {tool: SendMessage, args: {type: shutdown_request, recipient: coder-1, content: All is done.}}
              - {tool: Bash, args: {command: 'until [ -e ready-2 ]; do sleep 0.05; done', timeout: 60000}}
          - calls:
              - {tool: TeamDelete, args: {name: shop, summary: '{{(result "lead" 0 1).hint}} / {{result "lead" 0 2}}'}}
  - match: {role: coder}
    rules:
      - name: leave
        since: '(?s)<mail from="leader" type="shutdown_request"[^>]* request_id="(?P<id>[^"]+)"'
        steps:
          - calls:
              - {tool: SendMessage, args: {type: shutdown_response, request_id: '{{.Match.id}}', approve: true}}
      - {name: rest, say: Nothing to do.}
`

// The first TeamDelete ends a team whose members are kept ready, although one has consented to leave and another has come in
// its place; no member comes back. The leader has read a skill, whose script has run, and its Task of a mode that is not there started
// nothing.
func TestTeamDeleteWithMembersKeptReady(t *testing.T) {
	t.Parallel()
	c := folder(t, rehearse(t, keptScript), "AGENTTEAM_LEASE=3s")
	write(t, filepath.Join(c.dir, "team.yaml"), "roles: {coder: 1}\ndialect: claude\n")
	skill := filepath.Join(".claude", "skills", "deploy")
	write(t, filepath.Join(c.dir, skill, "SKILL.md"), "---\nname: deploy\ndescription: Deploys\nallowed-tools: \"*\"\n---\nRun scripts/go.sh $ARGUMENTS.\n")
	write(t, filepath.Join(c.dir, skill, "scripts", "go.sh"), "echo deployed > out\n")
	c.ok("trust", "--yes", "team.yaml")
	c.ok("trust", "--yes", filepath.Join(skill, "SKILL.md"))
	c.upWith(3)
	run := c.begin("go")
	conn := c.connect()
	var tm *client.Team
	until(t, "the team is there", func() bool {
		var err error
		tm, err = conn.Open(t.Context(), team.DefaultTeam)
		return err == nil
	})
	state := func(a team.AgentID) team.MemberState {
		m, _ := tm.Members().Get(t.Context(), a)
		return m.State
	}
	for _, ready := range []string{"1", "2"} {
		until(t, "coder-"+ready+" is ready", func() bool { return state(team.AgentID("coder-"+ready)) == team.Idle })
		write(t, filepath.Join(c.dir, "ready-"+ready), "")
	}
	r := run.end(t)
	if r.Status != "finished" || !strings.Contains(r.Summary, "use TeamFanout") || !strings.HasSuffix(r.Summary, "Run scripts/go.sh today.\n\n[files of this skill, to be read with file: scripts/go.sh]") {
		t.Errorf("%s: %q", r.Status, r.Summary)
	}
	if text, err := os.ReadFile(filepath.Join(c.dir, "out")); err != nil || string(text) != "deployed\n" {
		t.Errorf("the script has written %q, %v", text, err)
	}
	until(t, "both have left", func() bool { return state("coder-1") == team.Stopped && state("coder-2") == team.Stopped })
	if got := c.ok("teams", "get", string(team.DefaultTeam), "-o", "json"); !strings.Contains(got, `"status":"finished"`) {
		t.Errorf("the stored team is %s", got)
	}
	if all, err := tm.Members().List(t.Context(), true); err != nil || len(all) != 3 {
		t.Errorf("of a leader and two coders there are %d, %v", len(all), err)
	}
}
