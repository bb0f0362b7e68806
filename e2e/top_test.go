package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/charmbracelet/x/ansi"
)

// topScript has ann ask a person, and bob plan. What ann says would clear the screen, turn the
// direction of writing and reach into other lines, if it were more than text.
const topScript = `
agents:
  - match: {role: leader}
    rules:
      - name: finish
        since: '\[All Idle\]'
        unless: 'waits for (your|a person)'
        steps:
          - calls:
              - {tool: finish_team, args: {summary: both are done}}
      - name: begin
        since: 'Port it'
        steps:
          - calls:
              - {tool: create_task, args: {title: Port the tokens}}
              - {tool: create_task, args: {title: "Write down the 今天 grammar"}}
              - {tool: spawn_teammate, args: {role: coder, name: ann}}
              - {tool: spawn_teammate, args: {role: coder, name: bob, plan_mode: true}}
      - name: wait
        say: I wait.
  - match: {name: ann}
    rules:
      - name: ask
        since: 'Port the tokens|grammar'
        steps:
          - say: "\e[2J\e[1;1HGOTCHA \e]0;owned\a \u202Eeltit a\u202C Z\u0300\u0301\u0302\u0303\u0304\u0305 zero\u200Bwidth"
            calls: [{tool: ask_user, args: {question: Which names?, choices: [keep them, rename them]}}]
          - await: 'in_reply_to="'
            calls: [{tool: update_task, args: {task_id: '{{heard "T-00[12]"}}', status: completed, result_summary: 'I {{heard "(rename them|keep them)"}}'}}]
      - name: rest
        say: Nothing to do.
  - match: {name: bob}
    rules:
      - name: approved
        since: '(?s).*type="plan_approval_response"[^>]*approve="true"'
        steps:
          - calls: [{tool: update_task, args: {task_id: '{{heard "T-00[12]"}}', status: completed, result_summary: as planned}}]
      - name: plan
        since: 'Port the tokens|grammar'
        steps:
          - calls: [{tool: submit_plan, args: {plan: First I look.}}]
      - name: rest
        say: Nothing to do.
`

// A person watches a run on the screen, on a window that changes its size, answers and approves
// there, and has the run's result on leaving; the terminal is as it was before.
func TestRunOnTheScreen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "team.yaml"), []byte("policies:\n  approver: human\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	term := openTerminal(t, dir, append(environ(), "OPENAI_MODEL=rehearsal", "OPENAI_API_KEY=none", "OPENAI_BASE_URL="+rehearse(t, topScript)))
	term.types(`teamctl run --top "Port it"`, "done")
	term.shows("2 for you")
	for _, width := range []string{"42", "140"} {
		term.tmux("resize-pane", "-t", term.pane, "-x", width)
		want := strings.Repeat("─", map[string]int{"42": 42, "140": 140}[width])
		until(t, "the screen is "+width+" wide", func() bool { return strings.Contains("\n"+term.text()+"\n", "\n"+want+"\n") })
		if !strings.HasPrefix(term.text(), "default active") {
			t.Errorf("%s cells wide it shows\n%s", width, term.text())
		}
	}
	term.shows("GOTCHA")
	if text := term.text(); text != ansi.Strip(text) || strings.ContainsAny(text, "\u202e\u200b\u0304") {
		t.Errorf("what ann says is more than text:\n%q", text)
	}
	for _, step := range []struct{ keys, sees string }{
		{"4", "[Mail 2]"}, {"Enter", "2 rename them"}, {"2", "> rename them"}, {"Enter", "1 for you"},
		{"y", "approve the plan of bob"}, {"Enter", "finished"}, {"2", "I rename them"},
	} {
		term.tmux("send-keys", "-t", term.pane, step.keys)
		term.shows(step.sees)
	}
	term.shows("q shows the result")
	term.tmux("send-keys", "-t", term.pane, "q")
	if code, text := term.status("done"), term.text(); code != "0" || !strings.Contains(text, "\nboth are done\n") || !strings.Contains(text, "\nfinished: 2 of 2 ") {
		t.Errorf("the run ends with %s and shows\n%s", code, text)
	}
	if is := term.tmux("display-message", "-p", "-t", term.pane, "#{alternate_on} #{cursor_flag} #{mouse_any_flag} #{pane_title}"); !strings.HasPrefix(is, "0 1 0") || strings.Contains(is, "owned") {
		t.Errorf("the terminal is left as %s", is)
	}
}

// shows waits until a text is on the terminal.
func (term *terminal) shows(text string) {
	term.t.Helper()
	until(term.t, "the terminal shows "+text, func() bool { return strings.Contains(term.text(), text) })
}

// While the server is away the screen says so. It continues when a cluster is back, at another
// address, with each entry once. A cluster that is ended in order ends it.
func TestTopSurvivesTheServer(t *testing.T) {
	t.Parallel()
	c := up(t, "", 1)
	c.ok("tasks", "add", "before it is gone")
	term := openTerminal(t, c.dir, c.env)
	term.types("teamctl top", "left")
	term.shows("[Members]")
	term.tmux("send-keys", "-t", term.pane, "3")
	term.shows("before it is gone")
	_ = syscall.Kill(c.file().Owner(), syscall.SIGKILL)
	term.shows("no connection, trying again")
	c.ok("up", "-d", "-n", "1")
	until(t, "the connection is back", func() bool { return !strings.Contains(term.text(), "no connection") })
	c.ok("tasks", "add", "after it is back")
	term.shows("after it is back")
	for _, title := range []string{"before it is gone", "after it is back"} {
		if n := strings.Count(term.text(), title); n != 1 {
			t.Errorf("%q is there %d times:\n%s", title, n, term.text())
		}
	}
	c.ok("down")
	if code, text := term.status("left"), term.text(); code != "5" || !strings.Contains(text, "was ended") {
		t.Errorf("it ends with %s and shows\n%s", code, text)
	}
	c.ok("up", "-d", "-n", "1") // for the end of the test
}
