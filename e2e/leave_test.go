package e2e

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"agentteam/pkg/client"
	"agentteam/pkg/config"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

// leaveScript has coders work until the files NAME-one and NAME-two are there. Asked to leave
// for the reason "first" they refuse, for any other they agree.
const leaveScript = `
agents:
  - match: {role: leader}
    rules:
      - name: rest
        say: I wait.
  - match: {role: coder}
    rules:
      - name: refuse
        since: '(?s)<mail from="(?P<who>[^"]+)" type="shutdown_request"[^>]* request_id="(?P<id>[^"]+)"[^>]*>\nfirst'
        steps:
          - calls:
              - {tool: send_message, args: {to: "{{.Match.who}}", type: shutdown_response, request_id: "{{.Match.id}}", approve: false, content: half of it is written}}
      - name: agree
        since: '(?s)<mail from="(?P<who>[^"]+)" type="shutdown_request"[^>]* request_id="(?P<id>[^"]+)"[^>]*>\nsecond'
        steps:
          - calls:
              - {tool: send_message, args: {to: "{{.Match.who}}", type: shutdown_response, request_id: "{{.Match.id}}", approve: true, content: it can wait}}
      - name: work
        since: '<task id="(?P<task>T-\d+)"'
        steps:
          - calls:
              - {tool: bash, args: {command: "touch {{.Name}}-begins; until [ -e {{.Name}}-one ]; do sleep 0.02; done"}}
          - calls:
              - {tool: bash, args: {command: "until [ -e {{.Name}}-two ]; do sleep 0.02; done"}}
          - calls:
              - {tool: update_task, args: {task_id: "{{.Match.task}}", status: completed, result_summary: "done"}}
          - say: Done.
      - name: rest
        say: Nothing to do.
`

// leaving is a cluster with a coder at work.
type leaving struct {
	*cluster
	tm *client.Team
}

// touch makes a file in the workspace.
func (c leaving) touch(name string) {
	c.t.Helper()
	if err := os.WriteFile(filepath.Join(c.dir, name), nil, 0o644); err != nil {
		c.t.Fatal(err)
	}
}

// atWork waits until a member is in the middle of its first command.
func (c leaving) atWork(name string) client.Agent {
	c.t.Helper()
	until(c.t, name+" is at work", func() bool {
		_, err := os.Stat(filepath.Join(c.dir, name+"-begins"))
		return err == nil
	})
	m, err := c.tm.Members().Get(c.t.Context(), team.AgentID(name))
	if err != nil {
		c.t.Fatal(err)
	}
	return m
}

// stop calls teamctl stop for a member, does meanwhile once the member has the request in its
// inbox, and returns how the command ended.
func (c leaving) stop(name string, meanwhile func(), args ...string) (code int, stdout, stderr string) {
	c.t.Helper()
	before := c.requests(name)
	cmd := c.command(append([]string{"stop", name}, args...)...)
	var out, told bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &told
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	until(c.t, name+" is asked", func() bool { return c.requests(name) > before })
	meanwhile()
	err := cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		c.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), told.String()
}

// requests counts the requests to shut down in a member's inbox.
func (c leaving) requests(name string) int {
	c.t.Helper()
	return strings.Count(c.ok("inbox", name, "-o", "json"), `"shutdown_request"`)
}

// state is that of a member, and of a task.
func (c leaving) state(name team.AgentID, id team.TaskID) (team.MemberState, team.Task) {
	c.t.Helper()
	m, err := c.tm.Members().Get(c.t.Context(), name)
	if err != nil {
		c.t.Fatal(err)
	}
	task, err := c.tm.Board().Task(c.t.Context(), id)
	if err != nil {
		c.t.Fatal(err)
	}
	return m.State, task.Task
}

// cleansUp deletes the team: not while a member lives, and then nothing is left in NATS.
func (c leaving) cleansUp() {
	c.t.Helper()
	c.ok("spawn", "tester")
	cmd := c.command("teams", "rm", "default")
	if out, _ := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != 4 || !strings.Contains(string(out), "tester-1 (joined since") {
		c.t.Errorf("deleted with a member: exit %d, %s", cmd.ProcessState.ExitCode(), out)
	}
	if out := c.ok("teams", "rm", "default", "--force"); !strings.Contains(out, "stopped for it: ") || !strings.Contains(out, "tester-1") {
		c.t.Errorf("deleted by force: %s", out)
	}
	if out := c.ok("teams", "ls", "-o", "name"); out != "" {
		c.t.Errorf("listed after that: %s", out)
	}
	cl, _, err := config.FindCluster(c.dir)
	if err != nil {
		c.t.Fatal(err)
	}
	conn, err := nats.Connect(cl.NATS)
	if err != nil {
		c.t.Fatal(err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		c.t.Fatal(err)
	}
	for name := range js.StreamNames(c.t.Context()).Name() { // buckets, consumers and files are in streams
		if name != "KV_"+subject.Registry {
			c.t.Errorf("left in NATS: %s", name)
		}
	}
}

// A member at work refuses to leave, and agrees when it is asked again. One that is killed
// after it was asked is brought back and answers. One that is drained ends its task first.
// The team is deleted only after its members are gone, and then wholly.
func TestShutdownHandshake(t *testing.T) {
	t.Parallel()
	c := leaving{cluster: up(t, leaveScript, 2)}
	c.tm = newTeam(t, c.connect(), team.DefaultTeam)
	c.ok("spawn", "coder")
	c.ok("tasks", "add", "--title", "a", "--role", "coder")
	c.atWork("coder-1")

	code, _, told := c.stop("coder-1", func() { c.touch("coder-1-one") }, "--reason", "first")
	if m, task := c.state("coder-1", "T-001"); code != 4 || !strings.Contains(told, "coder-1 refuses to leave: half of it is written") || m == team.Stopped || task.Status != team.InProgress {
		t.Fatalf("refused: exit %d, %q; it is %s, its task %s", code, told, m, task.Status)
	}
	code, out, told := c.stop("coder-1", func() { c.touch("coder-1-two") }, "--reason", "second")
	if m, task := c.state("coder-1", "T-001"); code != 0 || out != "coder-1@default is stopped\n" || m != team.Stopped || task.Status != team.Pending || task.Attempts != 0 {
		t.Fatalf("approved: exit %d, %q, %q; it is %s, its task %s after %d attempts", code, out, told, m, task.Status, task.Attempts)
	}

	c.ok("spawn", "coder")
	killed := c.atWork("coder-2")
	c.touch("coder-2-one")
	code, out, told = c.stop("coder-2", func() {
		if err := syscall.Kill(killed.PID, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		c.touch("coder-2-two")
	}, "--reason", "second", "--timeout", limit.String())
	if m, task := c.state("coder-2", "T-001"); code != 0 || out != "coder-2@default is stopped\n" || m != team.Stopped || task.Status != team.Pending {
		t.Fatalf("killed before its answer: exit %d, %q, %q; it is %s, its task %s", code, out, told, m, task.Status)
	}

	c.ok("spawn", "coder")
	c.atWork("coder-3")
	code, _, told = c.stop("coder-3", func() {}, "--drain", "--timeout", "8s") // most of which a busy machine may take to ask
	if m, task := c.state("coder-3", "T-001"); code != 124 || !strings.Contains(told, "coder-3 has not left yet; it takes no other task") || m == team.Stopped || task.Status != team.InProgress {
		t.Fatalf("not drained in time: exit %d, %q; it is %s, its task %s", code, told, m, task.Status)
	}
	c.ok("tasks", "add", "--title", "b", "--role", "coder") // which nobody takes
	code, out, told = c.stop("coder-3", func() { c.touch("coder-3-one"); c.touch("coder-3-two") }, "--drain")
	if m, task := c.state("coder-3", "T-001"); code != 0 || out != "coder-3@default is stopped\n" || m != team.Stopped || task.Status != team.Completed {
		t.Fatalf("drained: exit %d, %q, %q; it is %s, its task %s", code, out, told, m, task.Status)
	}
	if _, task := c.state("coder-3", "T-002"); task.Status != team.Pending || task.Assignee != "" {
		t.Errorf("T-002 was taken: %s by %q", task.Status, task.Assignee)
	}
	c.cleansUp()
}
