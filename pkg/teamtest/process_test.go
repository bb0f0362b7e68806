package teamtest_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentteam/pkg/client"
	"agentteam/pkg/cluster/leader"
	"agentteam/pkg/cluster/teammate"
	"agentteam/pkg/store/board"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
	"agentteam/pkg/teamtest"
)

// alone is a script in which one coder does one task, which takes until the file
// go is there.
const alone = `
agents:
- match: {role: leader}
  rules:
  - name: finish # also after one that came before the task was done, and is refused
    since: '\[All Idle\]'
    steps:
    - calls:
      - {tool: finish_team, args: {summary: it is built}}
  - name: plan
    since: '<mail from="user"[^>]*>\s*Build'
    steps:
    - calls:
      - {tool: create_task, args: {title: Build it, role: coder}}
  - {name: wait, say: I wait.}
- rules:
  - name: make
    since: '<task id="(?P<id>[^"]+)"'
    steps:
    - calls:
      - {tool: bash, args: {command: 'until [ -e go ]; do sleep 0.02; done'}}
    - calls:
      - {tool: update_task, args: {task_id: '{{.Match.id}}', status: completed, result_summary: built}}
  - {name: idle, say: Nothing to do.}
`

// A member's process stops in the middle of its work. The task is free at once and
// no attempt is counted; the member is brought back by another process, and does it.
func TestMemberIsBroughtBack(t *testing.T) {
	t.Parallel()
	c := teamtest.Start(t, alone)
	c.Leader()
	tm := c.Team("t")
	stop := c.Named("bob", "coder", "t")
	joined(t, tm, "bob")
	g := teamtest.Set(t, tm, "Build")
	teamtest.Until(t, tm, func(e client.Entry) bool { return e.Event.Event.ToolCallName == "bash" })
	stop()
	teamtest.Until(t, tm, func(e client.Entry) bool { return e.Event.Event.Type == "TASK_RELEASED" })

	record, err := tm.Record(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(record.Workspace, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	c.Teammates(1)
	if record = teamtest.Wait(t, g); record.Status != team.TeamFinished || record.Summary != "it is built" {
		t.Errorf("the goal is %s: %q", record.Status, record.Summary)
	}
	task := teamtest.Tasks(t, tm)[0]
	if task.Assignee != "bob" || task.Incarnation != 2 || task.Attempts != 0 || task.Status != team.Completed {
		t.Errorf("the task: %+v", task.Task)
	}
}

func joined(t *testing.T, tm *client.Team, name team.AgentID) {
	t.Helper()
	teamtest.Until(t, tm, func(e client.Entry) bool { return e.AgentID == name && e.Event.Event.Type == "MEMBER_JOINED" })
}

// Each wrong start gives one clear error and changes nothing.
func TestWrongStarts(t *testing.T) {
	t.Parallel()
	c := teamtest.Start(t, alone)
	c.Leader()
	tm := c.Team("t")
	c.Named("bob", "coder", "t")
	joined(t, tm, "bob")
	joined(t, tm, team.Leader)
	before, err := tm.Members().List(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	as := func(id team.TeamID, name team.AgentID, role string) error {
		o := teammate.Options{Config: c.Config, Name: name, Role: role, Stderr: t.Output()}
		o.Config.Team = id
		return teammate.Run(t.Context(), o)
	}
	lead := func(id team.TeamID) error {
		return leader.Run(t.Context(), leader.Options{Config: c.Config, Only: id, Stderr: t.Output()})
	}
	for name, tt := range map[string]struct {
		err  error
		code team.Code
		says string
	}{
		"the name of a live member": {as("t", "bob", "coder"), team.Conflict, "bob@t"},
		"a new name without a role": {as("t", "eve", ""), team.InvalidArgument, "eve"},
		"a role that is not there":  {as("t", "eve", "wizard"), team.NotFound, "wizard"},
		"a member of no team":       {as("u", "eve", "coder"), team.NotFound, `"u"`},
		"a team that is led":        {lead("t"), team.Conflict, "t is led by"},
		"to lead a team not there":  {lead("u"), team.NotFound, `"u"`},
	} {
		if team.CodeOf(tt.err) != tt.code || !strings.Contains(tt.err.Error(), tt.says) || strings.Contains(tt.err.Error(), "\n") || team.HintOf(tt.err) == "" {
			t.Errorf("%s: %v (hint %q), want %s about %q", name, tt.err, team.HintOf(tt.err), tt.code, tt.says)
		}
	}
	after, err := tm.Members().List(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	if len(after) != len(before) {
		t.Fatalf("members before %+v, after %+v", before, after)
	}
	for i := range after {
		if after[i].Revision != before[i].Revision {
			t.Errorf("the record of %s was changed", after[i].AgentID)
		}
	}
}

// A leader is killed after it has closed the board and before it has ended the team:
// the next one opens it again and goes on with the goal.
func TestTermOpensTheBoard(t *testing.T) {
	t.Parallel()
	c := teamtest.Start(t, alone)
	tm := c.Team("t")
	g := teamtest.Set(t, tm, "Build")
	bt, err := brokertest.Connect(t, c.URL).Open(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}
	if err := board.New(bt.Bucket, board.Options{}).Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	record, err := tm.Record(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(record.Workspace, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	c.Leader()
	c.Named("bob", "coder", "t")
	if record = teamtest.Wait(t, g); record.Status != team.TeamFinished || record.Summary != "it is built" {
		t.Errorf("the goal is %s: %q", record.Status, record.Summary)
	}
}

// A team whose record no process can work with is left alone; the process that finds
// it so goes on to lead the others.
func TestBadTeamHarmsNoOther(t *testing.T) {
	t.Parallel()
	c := teamtest.Start(t, alone)
	c.Team("bad")
	tm := c.Team("good")
	bt, err := brokertest.Connect(t, c.URL).Open(t.Context(), "bad")
	if err != nil {
		t.Fatal(err)
	}
	entry, err := bt.Bucket.Get(t.Context(), subject.KeyTeam)
	if err != nil {
		t.Fatal(err)
	}
	bad := bytes.Replace(entry.Value, []byte(`"lease_seconds":5`), []byte(`"lease_seconds":0`), 1)
	if _, err := bt.Bucket.Put(t.Context(), subject.KeyTeam, bad, entry.Revision); err != nil {
		t.Fatal(err)
	}
	c.Leader()
	joined(t, tm, team.Leader)
}

// With the end of its goal the homes of a team become due to go: those of an active team do not, though a member has stopped.
func TestHomesOfEndedTeam(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	c := teamtest.Start(t, alone)
	c.Leader()
	tm := c.Team("t")
	stop := c.Named("bob", "coder", "t")
	joined(t, tm, "bob")
	g := teamtest.Set(t, tm, "Build")
	record, err := tm.Record(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	age := func() time.Duration {
		info, err := os.Stat(filepath.Join(cache, "agentteam", "homes", record.Unique()))
		if err != nil {
			t.Fatal(err)
		}
		return time.Since(info.ModTime())
	}
	teamtest.Until(t, tm, func(e client.Entry) bool { return e.Event.Event.ToolCallName == "bash" })
	stop()
	if got := age(); got > time.Hour {
		t.Errorf("the homes of an active team are %v old", got)
	}
	if err := os.WriteFile(filepath.Join(record.Workspace, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	c.Teammates(1)
	if record = teamtest.Wait(t, g); record.Status != team.TeamFinished {
		t.Fatalf("the goal is %s", record.Status)
	}
	// A process that is stopped at this moment has no time to learn that the team has ended.
	brokertest.Until(t, "the homes of a team that has ended are due", func() bool { return age() > 29*24*time.Hour })
}
