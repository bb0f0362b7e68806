package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
)

// loneScript has a leader that makes a task, gives it up and ends the goal, all by
// itself; a goal that says "wait" it leaves as it is.
const loneScript = `
agents:
  - match: {role: leader}
    rules:
      - name: wait
        since: '<mail from="user"[^>]*>\nwait'
        steps:
          - calls:
              - {tool: bash, args: {command: exec sleep 100}}
      - name: go
        since: '<mail from="user"'
        steps:
          - calls:
              - {tool: create_task, args: {title: nothing}}
          - calls:
              - {tool: update_task, args: {task_id: '{{index (result "go" 0) "id"}}', status: cancelled, reason: no need}}
          - calls:
              - {tool: finish_team, args: {summary: done}}
`

// exit runs a command and returns its exit status and what it printed.
func exit(t *testing.T, cmd *exec.Cmd) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return wait(t, cmd), out.String(), errs.String()
}

func wait(t *testing.T, cmd *exec.Cmd) int {
	t.Helper()
	err := cmd.Wait()
	if ended := (*exec.ExitError)(nil); errors.As(err, &ended) {
		return ended.ExitCode()
	}
	if err != nil {
		t.Fatal(err)
	}
	return 0
}

// A run that is interrupted, or whose time is over, says so and that its goal goes
// on; it does not claim an end that the goal did not have.
func TestRunLeftEarly(t *testing.T) {
	c := up(t, loneScript, 0)
	conn := c.connect()
	for _, format := range []string{"table", "json"} {
		f := follow(t, newTeam(t, conn, team.TeamID("left-"+format)))
		cmd := c.command("run", "--team", "left-"+format, "-o", format, "wait for me")
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		f.next("the leader is at work", func(e client.Entry) bool { return e.Event.Event.Type == team.ToolCallChunk })
		if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		code := wait(t, cmd)
		if want := "interrupted; the goal stays active: teamctl stop --team left-" + format + " ends it"; code != 130 || !strings.Contains(errs.String(), want) {
			t.Errorf("%s: exit status %d, stderr %q; want 130 and %q", format, code, errs.String(), want)
		}
		if format == "table" && (strings.Contains(out.String(), "tasks completed") || strings.Contains("\n"+out.String(), "\n\n")) {
			t.Errorf("an interrupted run prints\n%s", out.String())
		}
		if format == "json" && (!strings.Contains(out.String(), `"status":"stopped"`) || !strings.Contains(errs.String(), `"code":"interrupted"`)) {
			t.Errorf("an interrupted run prints %s and %s", out.String(), errs.String())
		}
	}
	code, out, errs := exit(t, c.command("run", "--timeout", "2s", "-o", "json", "wait for me"))
	if code != 124 || !strings.Contains(out, `"status":"timed_out"`) || !strings.Contains(errs, `"code":"timed_out"`) ||
		!strings.Contains(errs, "the goal stays active: teamctl stop ends it") || strings.Contains(errs, "deadline") {
		t.Errorf("a run past its time: exit status %d\n%s\n%s", code, out, errs)
	}
}

// The last line of a run is about its own goal, not about all that the team has
// ever done; with -o name it is the team's name.
func TestRunPrints(t *testing.T) {
	c := up(t, loneScript, 0)
	for range 2 {
		// Nobody has told the price of the scripted endpoint's tokens.
		last := regexp.MustCompile(`\ndone\n\nfinished: 0 of 1 tasks completed, \d+ model calls?, ~?\d+ tokens \(in \d+, .*out \d+.*\), [\d.]+ s\n$`)
		if out := c.ok("run", "go"); !last.MatchString(out) {
			t.Errorf("run prints\n%s", out)
		}
	}
	if out := c.ok("run", "-o", "name", "go"); out != "default\n" {
		t.Errorf("run -o name prints %q", out)
	}
	if r := c.begin("go").end(t); len(r.Tasks) != 4 {
		t.Errorf("the board has %d tasks, want 4", len(r.Tasks))
	}
}

// The limit of --timeout covers the start of a cluster, and what was started is
// ended then.
func TestRunTimeCoversStart(t *testing.T) {
	c := &cluster{t: t, dir: t.TempDir(), env: append(environ(), "OPENAI_MODEL=m", "OPENAI_BASE_URL=http://127.0.0.1:1/v1")}
	code, out, errs := exit(t, c.command("run", "--timeout", "10ms", "a goal"))
	if code != 124 || out != "" || !strings.Contains(errs, "teamctl: the time limit (--timeout) has passed\n") {
		t.Errorf("exit status %d\n%s\n%s", code, out, errs)
	}
	if _, err := os.Stat(filepath.Join(c.dir, ".agentteam", "cluster.json")); !os.IsNotExist(err) {
		t.Errorf("a cluster file is left: %v", err)
	}
}

// Of runs in one folder that all start at once without a cluster, one has it; the
// others find it or say what to do, and none destroys the store.
func TestRunsTogether(t *testing.T) {
	c := &cluster{t: t, dir: t.TempDir()}
	c.env = append(environ(), "OPENAI_MODEL=rehearsal", "OPENAI_BASE_URL="+rehearse(t, loneScript))
	cmds := make([]*exec.Cmd, 4)
	errs := make([]bytes.Buffer, len(cmds))
	for i := range cmds {
		cmds[i] = c.command("run", "-o", "name", "--timeout", "60s", "go")
		cmds[i].Stderr = &errs[i]
		if err := cmds[i].Start(); err != nil {
			t.Fatal(err)
		}
	}
	finished := 0
	for i, cmd := range cmds {
		said := errs[i].String
		switch code := wait(t, cmd); {
		case code == 0:
			finished++
		case code == 1 && (strings.Contains(said(), "teamctl up -d") || strings.Contains(said(), "a cluster runs here already")),
			code == 5 && strings.Contains(said(), "is just being started"):
		default:
			t.Logf("a run ended with %d: %s", code, said())
		}
	}
	if finished == 0 {
		t.Error("no run reached its goal")
	}
	var r result
	_, out, _ := exit(t, c.command("run", "-o", "json", "go"))
	if err := json.Unmarshal([]byte(strings.TrimSpace(out[strings.LastIndex(strings.TrimSpace(out), "\n")+1:])), &r); err != nil || r.Status != "finished" {
		t.Errorf("the next run ended as %q, %v", r.Status, err)
	}
}
