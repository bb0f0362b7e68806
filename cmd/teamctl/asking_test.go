package main

import (
	"strings"
	"testing"
	"time"

	"agentteam/pkg/broker/brokertest"
	"agentteam/pkg/registry"
	"agentteam/pkg/team"
	"agentteam/pkg/teamtest"
)

const askingScript = `
agents:
  - match: {role: leader}
    rules:
      - name: done
        newest: '"completed_tasks"'
        say: It is done.
      - name: finish
        since: '\[All Idle\]'
        unless: 'waits for'
        steps:
          - calls: [{tool: finish_team, args: {summary: written}}]
      - name: begin
        since: 'Write it'
        steps:
          - calls: [{tool: spawn_teammate, args: {role: coder}}, {tool: create_task, args: {title: Write}}]
      - name: wait
        say: I wait.
  - match: {role: coder}
    rules:
      - name: answered
        since: 'A person has allowed your call|echo two'
        steps:
          - calls: [{tool: bash, args: {command: "echo one"}}, {tool: bash, args: {command: "echo two\u001b[2J"}}]
      - name: refused
        since: 'has refused your call'
        steps:
          - calls: [{tool: update_task, args: {task_id: T-001, status: completed, result_summary: as told}}]
      - name: begin
        since: '<task id="T-001"'
        steps:
          - calls: [{tool: bash, args: {command: "echo one"}}]
      - name: rest
        say: Nothing to do.
`

// A person who watches a goal answers below the stream whether calls may be made: by a word, and
// what is no answer is told. What was typed before a call is asked is no answer to it.
func TestAllowOnATerminal(t *testing.T) {
	c := teamtest.Start(t, askingScript)
	c.Leader()
	c.Teammates(1)
	c.Team("default")
	r, err := registry.Open(t.Context(), brokertest.Connect(t, c.URL))
	if err != nil {
		t.Fatal(err)
	}
	bt, err := r.Storage(t.Context(), "default")
	if err == nil {
		_, err = r.Edit(t.Context(), bt, func(record *team.Team) { record.Hands.Permissions.Ask = []string{"Bash(echo *)"} })
	}
	if err != nil {
		t.Fatal(err)
	}
	s := onTerminal(t, 100, "run", "Write it", "--server", c.URL)
	s.types(t, "task\r") // nothing is asked yet
	s.shows(t, "│ echo one", 1)
	s.shows(t, "of coder-1: once, task, no?", 1)
	typing := func(keys, until string) {
		t.Helper()
		limit := time.After(brokertest.Longest)
		for !strings.Contains(strings.Join(strings.Fields(s.text()), " "), until) {
			s.types(t, keys) // what comes at once is dropped
			select {
			case <-time.After(200 * time.Millisecond):
			case <-limit:
				t.Fatalf("typed %q, and %q is not shown:\n%s", keys, until, s.text())
			}
		}
	}
	typing("\x15maybe\r", "type once, task, no")
	typing("\x15tasx\x7fk\r", "✓ allows for its task the call bash: echo one")
	s.shows(t, "│ echo two⟨U+001B⟩[2J", 1)
	typing("\x15no leave that\r", "leave that")
	if got := s.ends(t); got != 0 || !strings.Contains(s.text(), "✗ refuses the call bash: echo two⟨U+001B⟩[2J") {
		t.Errorf("it ended with %d:\n%s", got, s.text())
	}
}
