package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"agentteam/pkg/agent/control"
	"agentteam/pkg/client"
	"agentteam/pkg/config/role"
	"agentteam/pkg/store/board/boardtest"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/registry"
	"agentteam/pkg/team"
)

// longEnv makes the test with many frozen teammates as many times longer as it says, and
// has the long task its full length (make test-long).
const longEnv = "AGENTTEAM_TEST_LONG"

// stubbornScript has everybody complete a task at once, and insist on that after
// having been told that the task is somebody else's.
const stubbornScript = `
agents:
  - match: {role: leader}
    rules:
      - {name: rest, say: Nothing to do.}
  - match: {role: coder}
    rules:
      - name: insist
        newest: '(?P<task>T-\d+)( was taken from you| \(.*\) is still in progress and yours)'
        since: '<task id='
        steps:
          - calls:
              - {tool: update_task, args: {task_id: "{{.Match.task}}", status: completed, result_summary: "{{.Name}} insists"}}
      - name: work
        since: '<task id="(?P<task>T-\d+)"'
        steps:
          - calls:
              - {tool: update_task, args: {task_id: "{{.Match.task}}", status: completed, result_summary: "done by {{.Name}}"}}
      - {name: rest, say: Nothing to do.}
`

// Teammates are frozen in the middle of completing their tasks and stay so past the
// lease; their tasks are freed and done by others. When they run again, what they had
// begun reaches the server, and is refused; then they try once more, as members that
// they still are, and are refused again: every one of them, every time.
//
// The team does not bring members back: that would make a new incarnation of each, and
// the woken processes would leave before their models could try again.
func TestFrozenTeammates(t *testing.T) {
	t.Parallel()
	// Of the twelve processes, the leader's counted, fewer than half: the watchdog takes
	// the silence of more for a fault of its own.
	const teammates, frozen = 11, 5
	rounds := 1
	if s := os.Getenv(longEnv); s != "" {
		if _, err := fmt.Sscan(s, &rounds); err != nil {
			t.Fatalf("%s: %v", longEnv, err)
		}
	}

	url := brokertest.Server(t)
	g := newGate(t, url)
	bt := makeBrief(t, brokertest.Connect(t, url), teammates)
	recorder := boardtest.Record(t, bt.Bucket)
	conn := dial(t, url)
	tm, err := conn.Open(t.Context(), bt.ID)
	if err != nil {
		t.Fatal(err)
	}
	f := follow(t, tm)
	c := folder(t, rehearse(t, stubbornScript), "NATS_URL="+g.url)
	c.start("leader")
	processes := map[team.AgentID]*os.Process{}
	for n := range teammates {
		name := fmt.Sprintf("coder-%d", n+1)
		processes[team.AgentID(name)] = c.start("teammate", "--team", string(bt.ID), "--name", name, "--role", "coder").Process
	}
	t.Cleanup(func() { // or they would not hear that they are to end
		for _, p := range processes {
			_ = p.Signal(syscall.SIGCONT)
		}
		g.open()
	})

	var late, answered, again int
	for range rounds {
		tasks := make([]team.NewTask, frozen)
		for i := range tasks {
			tasks[i].Title = "to be done once"
		}
		if _, _, err := tm.Board().Add(t.Context(), "", tasks...); err != nil {
			t.Fatal(err)
		}
		held := make([]completion, frozen)
		for i := range held {
			held[i] = g.next(t)
			freeze(t, processes[held[i].task.Assignee])
		}
		for _, h := range held {
			until(t, "another does "+string(h.task.ID), func() bool {
				v, err := tm.Board().Task(t.Context(), h.task.ID)
				return err == nil && v.Status == team.Completed && v.Assignee != h.task.Assignee
			})
		}
		refused := map[team.AgentID]string{} // what the call in the middle of which it was frozen has come to
		for i, h := range held {
			late += arrive(t, bt.Conn, h, processes[h.task.Assignee], i%2 == 0)
			refused[h.task.Assignee] = ""
		}
		if t.Failed() {
			recorder.Judge(t)
			t.FailNow()
		}
		open := len(held)
		f.next("the woken are refused", func(e client.Entry) bool {
			before, ok := refused[e.AgentID]
			if b := e.Event.Event; ok && b.Type == team.ToolCallResult && b.ToolCallName == "update_task" && before != string(team.Conflict) {
				var r struct{ Code string }
				if err := json.Unmarshal([]byte(b.Content), &r); err != nil {
					t.Error(err)
				}
				refused[e.AgentID] = r.Code
				if r.Code == string(team.Conflict) {
					open--
					again++
					if before == "" {
						answered++
					}
				}
			}
			return open == 0
		})
	}

	total := rounds * frozen
	if count := recorder.Judge(t); count[team.Completed] != total {
		t.Errorf("tasks by status: %v, want %d completed", count, total)
	}
	counted := lateWrites(t, conn, teammates)
	t.Logf("%d teammates were frozen while completing; %d of their completions reached the server late and were refused; "+
		"%d were then told conflict (%d by the answer to that completion, the others on trying again); late writes that they counted: %d",
		total, late, again, answered, counted)
	if late != total || again != total || counted < total {
		t.Errorf("of %d late completions %d were refused, of as many tries %d, and %d counted", total, late, again, counted)
	}
}

// makeBrief makes a team with the shortest lease that is allowed, whose lost members
// are not brought back.
func makeBrief(t *testing.T, c *broker.Conn, teammates int) *broker.Storage {
	t.Helper()
	roles, err := role.Load(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	reg, err := registry.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	bt, _, err := reg.Make(t.Context(), team.Team{ID: "brief", Roles: roles.All, LeaseSeconds: 2, MaxTeammates: teammates,
		Policies: team.Policies{Respawn: team.RespawnRelease}, CreatedBy: team.UserAgent})
	if err != nil {
		t.Fatal(err)
	}
	return bt
}

// freeze stops a child and returns once it stands.
func freeze(t *testing.T, p *os.Process) {
	t.Helper()
	var status syscall.WaitStatus
	err := p.Signal(syscall.SIGSTOP)
	if err == nil {
		_, err = syscall.Wait4(p.Pid, &status, syscall.WUNTRACED, nil)
	}
	if err != nil || !status.Stopped() {
		t.Fatalf("%d was not frozen: %v, %v", p.Pid, status, err)
	}
}

// arrive lets a completion reach the server and wakes its writer, first the one or
// first the other. It returns 1 if the server refuses the completion for what was
// written in between.
func arrive(t *testing.T, c *broker.Conn, h completion, writer *os.Process, wakeFirst bool) int {
	t.Helper()
	answers, err := c.NATS().SubscribeSync(h.reply)
	if err == nil {
		err = c.Flush(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	wake := func() {
		if err := writer.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
	}
	if wakeFirst {
		wake()
	}
	close(h.pass)
	m, err := answers.NextMsg(limit)
	if err != nil {
		t.Fatalf("the completion of %s by %s is not answered: %v", h.task.ID, h.task.Assignee, err)
	}
	if !wakeFirst {
		wake()
	}
	var ack struct{ Error *jetstream.APIError }
	if err := json.Unmarshal(m.Data, &ack); err != nil {
		t.Fatal(err)
	}
	if ack.Error == nil || ack.Error.ErrorCode != jetstream.JSErrCodeStreamWrongLastSequence {
		t.Errorf("the late completion of %s by %s was answered with %s", h.task.ID, h.task.Assignee, m.Data)
		return 0
	}
	return 1
}

// lateWrites adds up what all teammates' pages say of late writes.
func lateWrites(t *testing.T, c *client.Client, teammates int) (sum int) {
	t.Helper()
	var processes []control.Process
	until(t, "all tell where their pages are", func() (ok bool) {
		s, err := c.Processes(t.Context())
		processes = append(s.Standbys, s.Members...)
		return err == nil && len(processes) == teammates
	})
	for _, p := range processes {
		resp, err := http.Get(p.Metrics)
		if err != nil {
			t.Fatal(err)
		}
		page, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(page)) {
			if strings.HasPrefix(line, "agentteam_late_writes_total") {
				var n int
				if _, err := fmt.Sscan(line[strings.LastIndexByte(line, ' ')+1:], &n); err != nil {
					t.Fatal(err)
				}
				sum += n
			}
		}
	}
	return sum
}
