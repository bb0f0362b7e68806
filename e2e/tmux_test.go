package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"agentteam/pkg/teamtest/testenv"
)

// panesScript has a leader that spawns two teammates and goes on once the file go is there,
// or never if the goal says "wait".
const panesScript = `
agents:
  - match: {role: leader}
    rules:
      - name: wait
        since: '<mail from="user"[^>]*>\nwait'
        steps:
          - calls:
              - {tool: spawn_teammate, args: {role: coder, name: c1}}
              - {tool: spawn_teammate, args: {role: coder, name: c2}}
          - calls:
              - {tool: bash, args: {command: exec sleep 100}}
      - name: go
        since: '<mail from="user"'
        steps:
          - calls:
              - {tool: spawn_teammate, args: {role: coder, name: c1}}
              - {tool: spawn_teammate, args: {role: coder, name: c2}}
          - calls:
              - {tool: bash, args: {command: 'until [ -e go ]; do sleep 0.05; done'}}
          - calls:
              - {tool: finish_team, args: {summary: all is well}}
`

// terminal is a window of a tmux server of its own, with a shell in one pane and another
// one beside it.
type terminal struct {
	t      *testing.T
	socket string
	pane   string
}

// openTerminal starts tmux in a folder.
func openTerminal(t *testing.T, dir string, env []string) *terminal {
	t.Helper()
	testenv.Program(t, "tmux")
	short, err := os.MkdirTemp("", "tmux-") // the path of a socket has some 100 characters at most
	if err != nil {
		t.Fatal(err)
	}
	term := &terminal{t: t, socket: filepath.Join(short, "s")}
	cmd := exec.Command("tmux", "-S", term.socket, "-f", os.DevNull, "new-session", "-d", "-x", "200", "-y", "60", "-c", dir, "-P", "-F", "#{pane_id}", "sh")
	cmd.Env = append(env, "PS1=$ ", "TERM=screen", "PATH="+bin+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("tmux: %v\n%s", err, out)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the terminal shows\n%s", term.text())
		}
		term.tmux("kill-server")
		os.RemoveAll(short)
	})
	term.pane = strings.TrimSpace(string(out))
	term.tmux("split-window", "-d", "-h", "-l", "30%", "-t", term.pane, "sh")
	return term
}

func (term *terminal) tmux(args ...string) string {
	term.t.Helper()
	out, err := exec.Command("tmux", append([]string{"-S", term.socket}, args...)...).CombinedOutput()
	if err != nil {
		term.t.Errorf("tmux %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// layout is that of the window, with the ids of its panes.
func (term *terminal) layout() string {
	return term.tmux("display-message", "-p", "-t", term.pane, "#{window_layout}")
}

func (term *terminal) panes() int {
	return len(strings.Split(term.tmux("list-panes", "-t", term.pane), "\n"))
}

func (term *terminal) text() string {
	return term.tmux("capture-pane", "-p", "-J", "-S", "-", "-t", term.pane)
}

// types types a command whose exit status it shows as WORD=STATUS.
func (term *terminal) types(command, word string) {
	term.tmux("send-keys", "-t", term.pane, "-l", command+"; echo "+word+"=$?")
	term.tmux("send-keys", "-t", term.pane, "Enter")
}

// status waits until the exit status under that word is shown, and returns it.
func (term *terminal) status(word string) string {
	term.t.Helper()
	shown := regexp.MustCompile(`(?m)^` + word + `=(\d+)`)
	var found []string
	until(term.t, "the command that ends with "+word, func() bool {
		found = shown.FindStringSubmatch(term.text())
		return found != nil
	})
	return found[1]
}

// Inside tmux a run shows each teammate in a pane of its own. It ends with its answer and
// its status, also by Ctrl-C, and the window is as it was before.
func TestRunInTmux(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	term := openTerminal(t, dir, append(environ(), "OPENAI_MODEL=rehearsal", "OPENAI_API_KEY=none", "OPENAI_BASE_URL="+rehearse(t, panesScript)))
	before := term.layout()

	term.types(`teamctl run "do it"`, "done")
	until(t, "both teammates have a pane", func() bool { return term.panes() == 4 })
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if code, text := term.status("done"), term.text(); code != "0" || !strings.Contains(text, "\nall is well\n") || !strings.Contains(text, "\nfinished: ") {
		t.Errorf("the run ends with %s and shows\n%s", code, text)
	}
	if after := term.layout(); after != before {
		t.Errorf("the window is laid out as %s, before as %s", after, before)
	}

	term.types(`teamctl run "wait for me"`, "left")
	until(t, "both teammates have a pane", func() bool { return term.panes() == 4 })
	term.tmux("send-keys", "-t", term.pane, "C-c")
	if code, text := term.status("left"), term.text(); code != "130" || !strings.Contains(text, "interrupted; its cluster has ended") {
		t.Errorf("the run that was interrupted ends with %s and shows\n%s", code, text)
	}
	if after := term.layout(); after != before {
		t.Errorf("after Ctrl-C the window is laid out as %s, before as %s", after, before)
	}
}
