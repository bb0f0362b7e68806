package e2e

import (
	"regexp"
	"strings"
	"testing"
)

// A coder asks the person about its task; the leader ends the goal with what it heard.
const askingScript = `
agents:
  - match: {role: coder}
    rules:
      - name: names
        since: '<task id="(?P<task>T-\d+)"'
        steps:
          - calls: [{tool: ask_user, args: {question: 'Shall I keep the names?', choices: [keep them, rename them]}}]
          - await: 'in_reply_to="'
            calls: [{tool: update_task, args: {task_id: '{{.Match.task}}', status: completed, result_summary: 'told to {{heard "(keep them|rename them)\\n</mail"}}'}}]
      - name: rest
        say: "Nothing to do."
  - match: {role: leader}
    rules:
      - name: go
        since: '<mail from="user"[^>]*>\s*go'
        steps:
          - calls:
              - {tool: create_task, args: {title: Name the tokens, role: coder}}
              - {tool: spawn_teammate, args: {role: coder}}
          - await: 'told to (rename them|keep them)'
            waiting: "I wait for the coder."
            calls: [{tool: finish_team, args: {summary: 'The coder was told to {{heard "told to (rename them|keep them)"}}.'}}]
      - name: rest
        say: "I wait for the coder."
`

// A member asks the person, and goes on with the answer. Until then everybody who watches sees
// the question and how to answer it, and the goal waits.
func TestPersonIsAsked(t *testing.T) {
	t.Parallel()
	c := up(t, askingScript, 1)
	run, quiet := c.command("run", "go"), c.command("attach", "-q")
	var shown, said, answer printed
	run.Stdout, quiet.Stdout, quiet.Stderr = &shown, &answer, &said
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	command := regexp.MustCompile(`answer: teamctl answer (coder-1) NUMBER`)
	until(t, "run shows the question", func() bool { return command.MatchString(shown.String()) })
	if err := quiet.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, "attach -q tells it", func() bool { return strings.Contains(said.String(), "\n") })
	if got := said.String(); !strings.Contains(got, "coder-1@default asks for T-001: Shall I keep the names? (1 keep them, 2 rename them); answer: teamctl answer ") {
		t.Errorf("attach -q says %q", got)
	}
	who := command.FindStringSubmatch(shown.String())[1]
	if status := c.ok("status"); !strings.Contains(status, "waiting_user") || !strings.Contains(status, "answer: teamctl answer "+who) {
		t.Errorf("status tells no question:\n%s", status)
	}
	if out := c.ok("answer", who, "2"); out != "coder-1@default goes on with the answer: rename them\n" {
		t.Errorf("answer says %q", out)
	}
	const summary = "The coder was told to rename them."
	if code := wait(t, run); code != 0 || !strings.Contains(shown.String(), summary) {
		t.Errorf("run ended with %d:\n%s", code, shown.String())
	}
	if code := wait(t, quiet); code != 0 || answer.String() != summary+"\n" {
		t.Errorf("attach -q ended with %d and %q", code, answer.String())
	}
	if code, _, errs := exit(t, c.command("answer", who, "1")); code == 0 {
		t.Errorf("a second answer: exit status %d, %s", code, errs)
	}
}
