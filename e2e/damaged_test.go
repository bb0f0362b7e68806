package e2e

import (
	"bytes"
	"crypto/rand"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentteam/pkg/client"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

// damagedScript has a coder work on its task for as long as the test wants.
const damagedScript = `
agents:
  - match: {role: coder}
    rules:
      - name: work
        since: '<task id="(?P<task>T-\d+)"'
        steps:
          - calls:
              - {tool: bash, args: {command: 'echo $$ > work.pid; until test -e go; do sleep 0.05; done'}}
          - calls:
              - {tool: update_task, args: {task_id: "{{.Match.task}}", status: completed, result_summary: "done"}}
      - {name: rest, say: Nothing to do.}
`

// The record of a task in progress is damaged: its holder's command goes on, since nobody
// has taken the task from it, and then it waits, without a word to its model or its
// journal. Once the record is healed it completes the task, in the same hold.
func TestDamagedTaskOfATeammate(t *testing.T) {
	t.Parallel()
	c := up(t, damagedScript, 1)
	conn := c.connect()
	tm, bt := watched(t, conn, "hurt", 2*time.Second)
	f := follow(t, tm)
	if _, _, err := tm.Board().Add(t.Context(), "", team.NewTask{Title: "long"}); err != nil {
		t.Fatal(err)
	}
	if _, err := tm.Members().Spawn(t.Context(), team.Member{Role: "coder"}, 1); err != nil {
		t.Fatal(err)
	}
	c.pidIn("work.pid")

	key := subject.KeyTask("T-001")
	whole, err := bt.Bucket.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	damaged, err := bt.Bucket.Put(t.Context(), key, []byte("{"), whole.Revision)
	if err != nil {
		t.Fatal(err)
	}
	logged := func(text string) {
		until(t, text, func() bool {
			log, err := os.ReadFile(filepath.Join(c.dir, ".agentteam", "up.log"))
			return err == nil && bytes.Contains(log, []byte(text))
		})
	}
	logged("whether the task is still held is not known")
	if err := os.WriteFile(filepath.Join(c.dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	logged("waiting until the task can be read")
	if _, err := bt.Bucket.Put(t.Context(), key, whole.Value, damaged); err != nil {
		t.Fatal(err)
	}
	f.next("the task is completed", func(e client.Entry) bool { return e.Event.Event.Type == "TASK_COMPLETED" })
	if v, err := tm.Board().Task(t.Context(), "T-001"); err != nil || v.Epoch != 1 || v.Attempts != 0 {
		t.Errorf("it was completed in epoch %d after %d attempts, %v", v.Epoch, v.Attempts, err)
	}
	if err := journal.Each(t.Context(), bt, 0, func(r journal.Record) error {
		if r.Kind == journal.Note || r.Kind == journal.Result && r.Result.IsError {
			t.Errorf("meanwhile a journal got %+v", r)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// Somebody writes garbage into the leader's journal, and the leader is killed: its successor
// says that it cannot read it, while the team works on. After a repair the goal is finished.
func TestRepairOfTheLeadersJournal(t *testing.T) {
	t.Parallel()
	c := up(t, "", 3)
	conn := c.connect()
	tm, bt := watched(t, conn, team.DefaultTeam, shortLease)
	f := follow(t, tm)
	done := c.begin(survey(tree(t))...)
	f.next("a survey is complete", func(e client.Entry) bool { return e.Event.Event.Type == "TASK_COMPLETED" })
	leader, err := tm.Members().Get(t.Context(), team.Leader)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bt.Logs.Publish(t.Context(), subject.Log(team.DefaultTeam, team.Leader), rand.Text(), []byte(`{"v":2,"kind":"turn","incarn`)); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(leader.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	of := func(typ team.EventType) func(client.Entry) bool {
		return func(e client.Entry) bool { return e.AgentID == team.Leader && e.Event.Event.Type == typ }
	}
	f.next("the leader is parked", of(team.MemberParked))
	if s := c.ok("status"); !strings.Contains(s, "1 waiting_repair") {
		t.Errorf("status says nothing of the leader:\n%s", s)
	}
	if s := c.ok("repair"); !strings.Contains(s, "log.leader") || !strings.Contains(s, "is to be set aside") {
		t.Errorf("repair lists:\n%s", s)
	}
	if s := c.ok("repair", "--all"); !strings.Contains(s, "was set aside, kept as damaged/leader/") {
		t.Errorf("repair --all says:\n%s", s)
	}
	f.next("the leader goes on", of(team.MemberResumed))
	if r := done.end(t); r.Status != "finished" || !strings.Contains(r.Summary, "Files: 4") {
		t.Errorf("run ended as %s: %s", r.Status, r.Summary)
	}
}

// The team's record is damaged while a goal is under way: who follows the goal reads which record it
// is and the command that repairs it. With that the goal ends.
func TestDamagedTeamIsTold(t *testing.T) {
	t.Parallel()
	c := up(t, `
agents:
  - match: {role: leader}
    rules:
      - name: go
        steps:
          - calls:
              - {tool: bash, args: {command: 'until test -e go; do sleep 0.05; done'}}
          - calls:
              - {tool: finish_team, args: {summary: done}}
`, 0)
	stream := c.follow("run", "go")
	conn := c.connect()
	until(t, "the goal is set", func() bool {
		tm, err := conn.Open(t.Context(), team.DefaultTeam)
		if err != nil {
			return false
		}
		record, err := tm.Record(t.Context())
		return err == nil && record.AtWork()
	})
	bt, err := brokertest.Connect(t, conn.Server()).Open(t.Context(), team.DefaultTeam)
	if err != nil {
		t.Fatal(err)
	}
	if err := bt.Bucket.Set(t.Context(), subject.KeyTeam, []byte("{")); err != nil {
		t.Fatal(err)
	}
	until(t, "who follows the goal is told", func() bool {
		return strings.Contains(stream.errs.String(), "record team cannot be read") && strings.Contains(stream.errs.String(), "before the record is repaired: teamctl repair --all")
	})
	c.ok("repair", "--all")
	if err := os.WriteFile(filepath.Join(c.dir, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if code := wait(t, stream.Cmd); code != 0 || strings.Count(stream.errs.String(), "before the record is repaired") != 1 {
		t.Errorf("run ends with %d and says\n%s", code, stream.errs.String())
	}
}
