package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentteam/pkg/team"
)

// paintScript has three teammates: ann asks the person for a colour and tells it to all;
// ben and cy are at work with another one meanwhile, and change what they do.
const paintScript = `
agents:
  - match: {role: leader}
    rules:
      - name: go
        since: '<mail from="user"'
        steps:
          - calls:
              - {tool: spawn_teammate, args: {role: coder, name: ben}}
              - {tool: spawn_teammate, args: {role: coder, name: cy}}
              - {tool: spawn_teammate, args: {role: coder, name: ann}}
          - calls:
              - {tool: send_message, args: {to: ben, content: Paint.}}
              - {tool: send_message, args: {to: cy, content: Paint.}}
              - {tool: send_message, args: {to: ann, content: Ask for the colour.}}
          - await: 'painted by (ben|cy)'
            waiting: I wait.
            calls:
              - {tool: bash, args: {command: 'until grep -q green ben.txt && grep -q green cy.txt; do sleep 0.02; done'}}
          - calls:
              - {tool: finish_team, args: {summary: painted}}
      - name: again # mail that came meanwhile refuses an end once
        steps:
          - calls:
              - {tool: finish_team, args: {summary: painted}}
  - match: {name: ann}
    rules:
      - name: ask
        since: 'Ask for the colour'
        steps:
          - calls:
              - {tool: ask_user, args: {question: Which colour?, choices: [red, green]}}
          - await: '<mail from="user"[^>]*in_reply_to="[^"]+"[^>]*>\n(\w+)'
            waiting: I wait for the person.
            calls:
              - {tool: broadcast, args: {content: 'The colour is {{heard "<mail from=.user.[^>]*>\\n(\\w+)"}}.'}}
          - {say: Told., await: delivered_to}
      - {name: rest, say: Nothing to do.}
  - match: {name: "*"}
    rules:
      - name: paint
        since: 'Paint\.'
        steps:
          - calls:
              - {tool: bash, args: {command: 'echo blue > {{.Name}}.txt; until [ -e asked ]; do sleep 0.02; done'}}
          - await: 'The colour is (\w+)'
            waiting: Blue it is.
            calls:
              - {tool: write_file, args: {path: '{{.Name}}.txt', content: '{{heard "The colour is (\\w+)"}}'}}
          - calls:
              - {tool: send_message, args: {to: leader, content: 'painted by {{.Name}}'}}
          - {say: Done., await: delivered_to}
      - {name: rest, say: Nothing to do.}
`

// An agent asks the person, waits as long as that takes, and goes on with the answer. Its
// broadcast changes what two others do, who report by message.
func TestQuestionAndBroadcast(t *testing.T) {
	t.Parallel()
	c := up(t, paintScript, 3)
	goal := c.begin("paint")
	conn := c.connect()
	until(t, "ann waits for the person", func() bool {
		tm, err := conn.Open(t.Context(), team.DefaultTeam)
		if err != nil {
			return false
		}
		a, err := tm.Members().Get(t.Context(), "ann")
		return err == nil && a.State == team.WaitingUser
	})
	if err := os.WriteFile(filepath.Join(c.dir, "asked"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	c.ok("answer", "2")
	if r := goal.end(t); r.Status != "finished" || r.Summary != "painted" {
		t.Fatalf("the goal is %s: %s", r.Status, r.Summary)
	}
	for _, name := range []string{"ben", "cy"} {
		text, err := os.ReadFile(filepath.Join(c.dir, name+".txt"))
		if err != nil || strings.TrimSpace(string(text)) != "green" {
			t.Errorf("%s painted %q, %v", name, text, err)
		}
	}
}
