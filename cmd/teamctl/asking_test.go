package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentteam/pkg/client"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/registry"
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

const questionsScript = `
agents:
  - match: {role: leader}
    rules:
      - name: begin
        since: 'Rename it'
        steps:
          - calls: [{tool: spawn_teammate, args: {role: coder}}]
          - calls: [{tool: create_task, args: {title: Names}}]
      - name: wait
        say: I wait.
  - match: {role: coder}
    rules:
      - name: begin
        since: '<task id="T-001"'
        steps:
          - calls: [{tool: bash, args: {command: "until test -e begin; do sleep 0.1; done"}}]
          - calls: [{tool: ask_user, args: {question: "Shall I keep the names 今天?", choices: [keep them, rename them]}}]
          - await: 'in_reply_to="'
            calls: [{tool: ask_user, args: {question: "And how are they to be called from now on, in all of the files of this very large project?"}}]
          - await: 'in_reply_to="'
            calls: [{tool: update_task, args: {task_id: T-001, status: completed, result_summary: as you said}}]
      - name: rest
        say: Nothing to do.
`

// A person who watches a goal types the answer below the stream: a line goes to the question that stands before it, and
// nowhere if none is open. What comes meanwhile stands above what is typed.
func TestAnswerOnATerminal(t *testing.T) {
	for _, width := range []int{50, 120} {
		c := teamtest.Start(t, questionsScript)
		c.Leader()
		c.Teammates(1)
		tm := c.Team("default")
		edit(t, c, func(record *team.Team) { record.Policy.PermissionMode = team.BypassPermissions })
		s := onTerminal(t, width, "run", "Rename it", "--server", c.URL)
		s.shows(t, "T-001 claimed", 1)
		s.typesUntil(t, "to bob: hello\r", "nothing is asked, so that the line is not sent")
		s.types(t, "\x1a") // a session of one command has no shell to stop it for
		if err := os.WriteFile(filepath.Join(s.cmd.Dir, "begin"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		s.shows(t, "coder-1 asks for T-001: Shall I keep the", 1)
		s.typesUntil(t, "\x15maybe\r", "none of the answers")
		s.typesUntil(t, "\x15re", map[int]string{50: "… re", 120: "> re"}[width])
		if _, _, err := tm.Mail().Send(t.Context(), client.NewMail{To: "leader", Text: "a word in between"}); err != nil {
			t.Fatal(err)
		}
		s.shows(t, "leader: a word in between", 1)
		s.types(t, "\x1b[Dname themm\x7f\r")
		s.shows(t, "coder-1: rename them", 1)
		s.shows(t, "coder-1 asks for T-001: And", 1)
		s.typesUntil(t, "\x15like the words\r", "coder-1: like the words")
		s.shows(t, "as you said", 1)
		s.types(t, "\x03")
		if got := s.ends(t); got != 130 {
			t.Errorf("it ended with %d:\n%s", got, s.text())
		}
		if now := s.settings(t); now != s.before {
			t.Errorf("the terminal is set to %+v, and was to %+v", now, s.before)
		}
		questions, err := tm.Mail().Questions(t.Context(), team.UserAgent)
		if err != nil || len(questions) != 2 || questions[0].Open || questions[1].Open {
			t.Errorf("the questions are %+v, %v", questions, err)
		}
		if strings.Contains(s.text(), "→ bob") {
			t.Errorf("a line without a question was sent:\n%s", s.text())
		}
	}
}

// edit changes the record of the team default.
func edit(t *testing.T, c *teamtest.Cluster, change func(*team.Team)) {
	t.Helper()
	r, err := registry.Open(t.Context(), brokertest.Connect(t, c.URL))
	if err != nil {
		t.Fatal(err)
	}
	bt, err := r.Storage(t.Context(), "default")
	if err == nil {
		_, err = r.Edit(t.Context(), bt, change)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// typesUntil types keys again and again until a text is shown: what is typed just after a matter is asked is dropped.
func (s *seen) typesUntil(t *testing.T, keys, text string) {
	t.Helper()
	limit := time.After(brokertest.Longest)
	for !strings.Contains(strings.Join(strings.Fields(s.text()), " "), text) {
		s.types(t, keys)
		select {
		case <-time.After(200 * time.Millisecond):
		case <-limit:
			t.Fatalf("typed %q, and %q is not shown:\n%s", keys, text, s.text())
		}
	}
}

// A person who watches a goal answers below the stream whether calls may be made: by a word, and
// what is no answer is told. What was typed before a call is asked is no answer to it.
func TestAllowOnATerminal(t *testing.T) {
	c := teamtest.Start(t, askingScript)
	c.Leader()
	c.Teammates(1)
	c.Team("default")
	edit(t, c, func(record *team.Team) { record.Policy.Permissions.Ask = []string{"Bash(echo *)"} })
	s := onTerminal(t, 100, "run", "Write it", "--server", c.URL)
	s.types(t, "task\r") // nothing is asked yet
	s.shows(t, "│ echo one", 1)
	s.shows(t, "of coder-1: once, task, no?", 1)
	s.typesUntil(t, "\x15maybe\r", "type once, task, no")
	s.typesUntil(t, "\x15tasx\x7fk\r", "✓ allows for its task the call bash: echo one")
	s.shows(t, "│ echo two⟨U+001B⟩[2J", 1)
	s.typesUntil(t, "\x15no leave that\r", "leave that")
	if got := s.ends(t); got != 0 || !strings.Contains(s.text(), "✗ refuses the call bash: echo two⟨U+001B⟩[2J") {
		t.Errorf("it ended with %d:\n%s", got, s.text())
	}
}
