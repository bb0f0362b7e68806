package e2e

import (
	"fmt"
	"strings"
	"testing"

	"agentteam/pkg/team"
)

// house is what each of the repositories has. A build for the one that is killed does not end the first
// time; by the token in its arguments it is found.
const house = `
mkdir -p src docs
echo 'Here RULE-OF-THE-HOUSE holds.' > AGENTS.md
printf 'auth: FIXME the token is logged\napi: fine\nstore: FIXME a list is read for each row\n' > src/notes.txt
cat > build.sh << 'EOF'
#!/bin/sh
if [ "$1" = "$(cat killed)" ] && mkdir ~/begun 2>/dev/null; then exec sleep 1000 "$(cat token)"; fi
echo "built for $1"
EOF
echo .agentteam > .gitignore
`

// looker is the subagent of all scenarios.
const looker = `
- match: {role: explorer}
  rules:
  - name: look
    steps:
    - calls: [{tool: grep, args: {pattern: FIXME, path: src}}]
    - say: 'It says {{regex "FIXME [^\n]+" (result "look" 0)}}'
`

// reviews are three reviewers who work at the same time, and one who puts their reviews together.
var reviews = looker + leads(`{tool: read_file, args: {path: report.md}}`, `
          - {key: security, title: Review the security, role: security-reviewer, assignee: security-1}
          - {key: speed, title: Review the speed, role: performance-reviewer, assignee: speed-1}
          - {key: tests, title: Review the tests, role: test-reviewer, assignee: tests-1}
          - {key: report, title: Write the report, role: reporter, assignee: reporter-1, dependencies: [security, speed, tests], check: 'test "$(grep -c "^review of" report.md)" = 3'}
`) + `
- match: {role: '*-reviewer'}
  rules:
  - name: review
    since: '<task id="(?P<id>T-\d+)"'
    again: '(?P<id>T-\d+) is still yours'
    steps:
    - calls: [{tool: bash, args: {command: 'sh build.sh {{.Role}}', run_in_background: true}}]
    - calls: [{tool: subagent, args: {description: look for it, type: Explore, prompt: 'Look for what concerns a {{.Role}}.'}}]
    - calls: [{tool: task_output, args: {task_id: '{{regex "b[0-9a-f]{6}" (result "review" 0)}}', timeout: 60}}]
    - calls: [{tool: write_file, args: {path: 'review-{{.Role}}.md', content: "review of {{.Role}}: {{regex \"It says [^\\n]+\" (result \"review\" 1)}}; {{regex \"built for [a-z-]+\" (result \"review\" 2)}}\n"}}]
    - calls: [{tool: update_task, args: {task_id: '{{.Match.id}}', status: completed, result_summary: 'See review-{{.Role}}.md'}}]
  - {name: rest, say: Nothing to do.}
- match: {role: reporter}
  rules:
  - name: report
    since: '<task id="(?P<id>T-\d+)"'
    steps:
    - calls: [{tool: bash, args: {command: 'cat review-*.md > report.md; cat report.md'}}]
    - calls: [{tool: update_task, args: {task_id: '{{.Match.id}}', status: completed, result_summary: 'See report.md'}}]
  - {name: rest, say: Nothing to do.}
`

// leads is a leader that makes these tasks and, once all are idle, ends the goal with what a call returns.
func leads(call, tasks string) string {
	return `
- match: {role: leader}
  rules:
  - name: finish
    since: '\[All Idle\]'
    steps:
    - calls: [` + call + `]
    - calls: [{tool: finish_team, args: {summary: '{{trim (result "finish" 0)}}'}}]
    - calls: [{tool: finish_team, args: {summary: '{{trim (result "finish" 0)}}'}}]
  - name: lead
    since: '<mail from="user"'
    steps:
    - calls:
      - tool: create_tasks
        args:
          tasks:` + tasks + `    - say: I wait.
  - {name: rest, say: I wait.}
`
}

// claudeRole is the file of a role as people have it for Claude Code, with these lines more.
func claudeRole(name, lines string) string {
	return fmt.Sprintf("---\nname: %s\ndescription: Does the part of the %[1]s. Use PROACTIVELY: always.\n%s---\nYou are a %[1]s.\n", name, lines)
}

// Three reviewers look at one change at the same time, each by its own eyes, a subagent's and a build
// in the background, and a fourth makes one report of it. One is killed meanwhile.
func TestParallelReview(t *testing.T) {
	scenario{
		roles: map[string]string{
			"security-reviewer":    claudeRole("security-reviewer", "tools: Read, Grep, Glob, Bash, Write, Task\nmodel: sonnet\n"),
			"performance-reviewer": claudeRole("performance-reviewer", "disallowedTools: WebFetch\ncolor: red\n"),
			"test-reviewer":        claudeRole("test-reviewer", ""),
			"reporter":             claudeRole("reporter", "tools: Read, Write, Bash\n"),
		},
		files: house, script: reviews, killed: "security-1", build: "security-reviewer",
		judge: func(t *testing.T, p played) {
			report := p.file(t, "report.md")
			for _, role := range []string{"security-reviewer", "performance-reviewer", "test-reviewer"} {
				want := "review of " + role + ": It says FIXME the token is logged; built for " + role
				if strings.Count(report, want) != 1 || !strings.Contains(p.Summary, want) {
					t.Errorf("%q is not once in the report, and in the answer:\n%s\n%s", want, report, p.Summary)
				}
			}
		},
	}.play(t)
}

// debate are two members who hold different hypotheses and argue by mail, and a third who judges.
const debate = looker + `
- match: {role: leader}
  rules:
  - name: finish
    since: '<mail from="judge-1"[^>]*>\s*VERDICT'
    steps:
    - await: '\[All Idle\]'
      waiting: I wait.
      calls: [{tool: get_task, args: {task_id: T-003}}]
    - calls: [{tool: finish_team, args: {summary: '{{(result "finish" 0).result_summary}}'}}]
    - calls: [{tool: finish_team, args: {summary: '{{(result "finish" 0).result_summary}}'}}]
  - name: lead
    since: '<mail from="user"'
    steps:
    - calls: [{tool: spawn_teammate, args: {role: investigator, name: clock, prompt: You hold that the clock is wrong.}}]
    - calls:
      - tool: create_tasks
        args: {tasks: [{key: clock, title: Show that the clock is wrong, role: investigator, assignee: clock}]}
    - await: '<mail from="clock"[^>]*>\s*READY'
      waiting: I wait.
      calls:
      - tool: create_tasks
        args:
          tasks:
          - {key: cache, title: Show that the cache is stale, role: investigator, assignee: cache}
          - {key: judge, title: Judge which it is, role: judge, assignee: judge-1, dependencies: [T-001, cache]}
    - say: I wait.
  - {name: rest, say: I wait.}
- match: {name: cache}
  rules:
  - name: claim
    since: '<task id="(?P<id>T-\d+)"'
    again: '(?P<id>T-\d+) is still yours'
    steps:
    - calls:
      - {tool: bash, args: {command: sh build.sh cache, run_in_background: true}}
      - {tool: subagent, args: {description: look for it, type: Explore, prompt: Look for what speaks for the cache., run_in_background: true}}
    - await: 'In the background: .*\ba[0-9a-f]{6} has ended'
      waiting: I wait for what I have begun.
      calls: [{tool: task_output, args: {task_id: '{{regex "b[0-9a-f]{6}" (result "claim" 0)}}', timeout: 60}}]
    - calls: [{tool: send_message, args: {to: clock, content: 'CLAIM the cache is stale: {{heard "It says [^\n]+"}}', await_reply: true}}]
    - await: '<mail from="clock"[^>]*>\s*COUNTER'
      waiting: I wait for clock.
      calls:
      - {tool: send_message, args: {to: clock, content: 'ANSWER to {{heard "COUNTER [^\n]+"}}'}}
      - {tool: update_task, args: {task_id: '{{.Match.id}}', status: completed, result_summary: 'I claim the cache, with {{heard "built for cache"}}; clock says {{heard "COUNTER [^\n]+"}}'}}
  - {name: rest, say: Nothing to do.}
- match: {name: clock}
  rules:
  - name: counter
    since: '<task id="(?P<id>T-\d+)"'
    steps:
    - calls: [{tool: send_message, args: {to: leader, content: READY to hear the other side, await_reply: true}}]
    - await: '<mail from="cache"[^>]*>\s*CLAIM'
      waiting: I wait for cache.
      calls: [{tool: subagent, args: {description: check that, type: Explore, prompt: 'Check this: {{heard "CLAIM [^\n]+"}}'}}]
    - calls: [{tool: send_message, args: {to: cache, content: 'COUNTER the clock is wrong: {{regex "It says [^\n]+" (result "counter" 1)}}', await_reply: true}}]
    - await: '<mail from="cache"[^>]*>\s*ANSWER'
      waiting: I wait for cache.
      calls: [{tool: update_task, args: {task_id: '{{.Match.id}}', status: completed, result_summary: 'cache has {{heard "CLAIM [^\n]+"}}, and gives the {{heard "ANSWER to [^\n]+"}}'}}]
  - {name: rest, say: Nothing to do.}
- match: {role: judge}
  rules:
  - name: judge
    since: '<task id="(?P<id>T-\d+)"'
    steps:
    - calls:
      - {tool: subagent, args: {description: look for it, type: Explore, prompt: Look for what speaks for the cache.}}
      - {tool: subagent, args: {description: look for it, type: Explore, prompt: Look for what speaks for the clock.}}
    - calls:
      - {tool: send_message, args: {to: cache, content: VERDICT it is the cache}}
      - {tool: send_message, args: {to: clock, content: VERDICT it is the cache}}
      - {tool: send_message, args: {to: leader, content: VERDICT it is the cache}}
      - {tool: update_task, args: {task_id: '{{.Match.id}}', status: completed, result_summary: 'It is the cache. {{heard "I claim the cache, [^\n]+"}} {{heard "cache has CLAIM [^\n]+"}} {{result "judge" 0 1}}'}}
  - {name: rest, say: Nothing to do.}
`

// Two members argue by mail for what may be wrong, and a third judges by what both of them have
// written down. One is killed meanwhile, and nothing is said twice.
func TestCompetingHypotheses(t *testing.T) {
	scenario{
		roles: map[string]string{"investigator": claudeRole("investigator", ""), "judge": claudeRole("judge", "model: opus\n")},
		files: house, script: debate, killed: "cache", build: "cache",
		judge: func(t *testing.T, p played) {
			for _, want := range []string{"It is the cache.", "I claim the cache, with built for cache; clock says COUNTER the clock is wrong: It says FIXME", "cache has CLAIM the cache is stale: It says FIXME", "and gives the ANSWER to COUNTER the clock is wrong", "It says FIXME the token"} {
				if !strings.Contains(p.Summary, want) {
					t.Errorf("the verdict lacks %q: %s", want, p.Summary)
				}
			}
			for _, m := range []struct {
				from, to team.AgentID
				text     string
			}{
				{"cache", "clock", "CLAIM the cache"}, {"clock", "cache", "COUNTER the clock"}, {"cache", "clock", "ANSWER to COUNTER the clock"}, {"judge-1", "cache", "VERDICT"}, {"judge-1", "clock", "VERDICT"},
			} {
				if n := p.sent(t, m.from, m.to, m.text); n != 1 {
					t.Errorf("%s has sent %q to %s %d times", m.from, m.text, m.to, n)
				}
			}
		},
	}.play(t)
}

// layers are three members, each of whom needs what the one before has made, and is given the
// instructions of its folder.
var layers = looker + `
- match: {role: bash}
  rules:
  - name: list
    steps:
    - calls: [{tool: bash, args: {command: 'ls backend frontend'}}]
    - say: 'There is {{result "list" 0}}'
` + leads(`{tool: bash, args: {command: sh tests/run.sh}}`, `
          - {key: backend, title: 'Layer: backend', role: backend, assignee: backend-1, check: test -s backend/api.txt}
          - {key: frontend, title: 'Layer: frontend', role: frontend, assignee: frontend-1, dependencies: [backend], check: grep -q endpoint frontend/page.txt}
          - {key: tests, title: 'Test both', role: tests, assignee: tests-1, dependencies: [backend, frontend], check: sh tests/run.sh}
`) + `
- match: {role: backend}
  rules:
  - name: build
    since: '<task id="(?P<id>T-\d+)"'
    steps:
    - calls:
      - {tool: read_file, args: {path: backend/main.txt}}
      - {tool: bash, args: {command: sh build.sh backend, run_in_background: true}}
      - {tool: subagent, args: {description: look for it, type: Explore, prompt: Look for what the backend lacks., run_in_background: true}}
    - await: 'In the background: .*\ba[0-9a-f]{6} has ended'
      waiting: I wait for what I have begun.
      calls: [{tool: task_output, args: {task_id: '{{regex "b[0-9a-f]{6}" (result "build" 0 1)}}', timeout: 60}}]
    - calls: [{tool: write_file, args: {path: backend/api.txt, content: "endpoint /list, as {{heard \"It says [^\\n]+\"}}\n"}}]
    - calls: [{tool: update_task, args: {task_id: '{{.Match.id}}', status: completed, result_summary: 'backend is {{heard "built for backend"}}'}}]
  - {name: rest, say: Nothing to do.}
- match: {role: frontend}
  rules:
  - name: build
    since: '<task id="(?P<id>T-\d+)"'
    again: '(?P<id>T-\d+) is still yours'
    steps:
    - calls: [{tool: read_file, args: {path: backend/api.txt}}, {tool: read_file, args: {path: frontend/main.txt}}]
    - calls:
      - {tool: bash, args: {command: sh build.sh frontend, run_in_background: true}}
      - {tool: subagent, args: {description: list what is there, type: Bash, prompt: List what is there.}}
    - calls: [{tool: task_output, args: {task_id: '{{regex "b[0-9a-f]{6}" (result "build" 1)}}', timeout: 60}}]
    - calls: [{tool: write_file, args: {path: frontend/page.txt, content: "page of {{regex \"endpoint [a-z/]+\" (result \"build\" 0)}}, {{regex \"api.txt\" (result \"build\" 1 1)}}, {{regex \"built for frontend\" (result \"build\" 2)}}\n"}}]
    - calls: [{tool: update_task, args: {task_id: '{{.Match.id}}', status: completed, result_summary: 'The page calls the endpoint.'}}]
  - {name: rest, say: Nothing to do.}
- match: {role: tests}
  rules:
  - name: test
    since: '<task id="(?P<id>T-\d+)"'
    steps:
    - calls: [{tool: write_file, args: {path: tests/run.sh, content: "cat backend/api.txt frontend/page.txt && grep -q /list frontend/page.txt && echo all layers pass\n"}}]
    - calls:
      - {tool: subagent, args: {description: run them, type: Bash, prompt: Run the tests., run_in_background: true}}
      - {tool: bash, args: {command: sh tests/run.sh, run_in_background: true}}
    - calls: [{tool: task_output, args: {task_id: '{{regex "b[0-9a-f]{6}" (result "test" 1 1)}}', timeout: 60}}, {tool: task_output, args: {task_id: '{{regex "a[0-9a-f]{6}" (result "test" 1)}}', timeout: 60}}]
    - calls: [{tool: update_task, args: {task_id: '{{.Match.id}}', status: completed, result_summary: '{{regex "all layers pass" (result "test" 2)}}, {{regex "There is" (result "test" 2 1)}}'}}]
  - {name: rest, say: Nothing to do.}
`

// A feature is built through the layers, each on what the one before has completed, and tested as a
// whole. One member is killed meanwhile.
func TestCrossLayerFeature(t *testing.T) {
	scenario{
		roles: map[string]string{"backend": claudeRole("backend", ""), "frontend": claudeRole("frontend", "permissionMode: acceptEdits\n"), "tests": claudeRole("tests", "maxTurns: 50\n")},
		files: house + `
mkdir -p backend frontend tests
echo 'backend of nothing' > backend/main.txt
echo 'frontend of nothing' > frontend/main.txt
echo 'Here RULE-OF-THE-BACKEND holds.' > backend/AGENTS.md
echo 'Here RULE-OF-THE-FRONTEND holds.' > frontend/CLAUDE.md
`, script: layers, killed: "frontend-1", build: "frontend",
		judge: func(t *testing.T, p played) {
			if page, want := p.file(t, "frontend/page.txt"), "page of endpoint /list, api.txt, built for frontend\n"; page != want {
				t.Errorf("the page is %q, want %q", page, want)
			}
			if api, want := p.file(t, "backend/api.txt"), "endpoint /list, as It says FIXME"; !strings.HasPrefix(api, want) {
				t.Errorf("the endpoint is %q, want %q", api, want)
			}
			if !strings.Contains(p.Summary, "all layers pass") {
				t.Errorf("the answer is %q", p.Summary)
			}
			for agent, rules := range map[string]struct{ has, not string }{"backend-1": {"BACKEND", "FRONTEND"}, "frontend-1": {"FRONTEND", ""}, "leader": {"", "FRONTEND"}} {
				said := p.tap.last(agent)
				if !strings.Contains(said, "RULE-OF-THE-"+rules.has) || rules.not != "" && strings.Contains(said, "RULE-OF-THE-"+rules.not) {
					t.Errorf("%s was given other instructions than those of its folders", agent)
				}
			}
		},
	}.play(t)
}
