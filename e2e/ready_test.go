package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
)

const readyScript = `
agents:
- match: {role: leader}
  rules:
  - name: lead
    since: '<mail from="user"[^>]*>\s*go'
    steps:
    - calls: [{tool: ask_user, args: {question: 'Go on?'}}]
    - await: 'Go on, yes'
      waiting: I wait.
      calls: [{tool: finish_team, args: {summary: done}}]
- match: {role: coder}
  rules:
  - {name: idle, say: Nothing to do.}
`

// What team.yaml says holds for the team of its folder: members are kept ready, also in place of one
// that a person has stopped or that is lost; that one comes back only once a person allows it, and
// there is room.
func TestTeamOfItsFile(t *testing.T) {
	t.Parallel()
	c := folder(t, rehearse(t, readyScript), "AGENTTEAM_LEASE=3s")
	settings := "roles: {coder: 2}\npolicies: {respawn: ask}\nlimits: {max_teammates: 2}\n"
	if err := os.WriteFile(filepath.Join(c.dir, "team.yaml"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	c.ok("trust", "--yes", "team.yaml")
	c.upWith(3)
	c.ok("run", "--detach", "go")
	tm, err := c.connect().Open(t.Context(), team.DefaultTeam)
	if err != nil {
		t.Fatal(err)
	}
	coders := func() (here []client.Agent) {
		all, err := tm.Members().List(t.Context(), false)
		if err != nil {
			return nil
		}
		for _, a := range all {
			if a.Role == "coder" && a.State == team.Idle {
				here = append(here, a)
			}
		}
		return here
	}
	until(t, "two coders are ready", func() bool { return len(coders()) == 2 })
	was := coders()
	c.ok("stop", string(was[0].AgentID))
	until(t, "another one is ready in its place", func() bool {
		now := coders()
		return len(now) == 2 && (now[0].AgentID != was[0].AgentID || now[0].Incarnation > was[0].Incarnation)
	})

	lost := coders()[1]
	halt(t, lost.PID)
	if err := syscall.Kill(lost.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	var asked client.Plan
	until(t, "a person is asked", func() bool {
		plans, err := tm.Plans().List(t.Context())
		for _, p := range plans {
			if p.Kind == team.OfRespawn && p.Waits() {
				asked = p
			}
		}
		return err == nil && asked.ID != ""
	})
	if m, err := tm.Members().Get(t.Context(), lost.AgentID); err != nil || asked.AgentID != lost.AgentID || m.Member.State != team.Lost {
		t.Fatalf("asked about %s; %s is %s, %v", asked.AgentID, lost.AgentID, m.Member.State, err)
	}
	until(t, "another one is ready meanwhile: what is lost has no place", func() bool { return len(coders()) == 2 })
	c.ok("approvals", "approve", asked.ID)
	c.ok("teams", "set", string(team.DefaultTeam), "--max-teammates", "3")
	until(t, "it is back, since there is room", func() bool {
		m, err := tm.Members().Get(t.Context(), lost.AgentID)
		return err == nil && m.Member.State == team.Joined && m.Incarnation > lost.Incarnation
	})
	c.ok("answer", "Go on, yes")
	until(t, "the goal is met", func() bool {
		record, err := tm.Record(t.Context())
		return err == nil && record.Status == team.TeamFinished
	})
}

// A member that had nothing to do for as long as team.yaml lets it be idle leaves, and its record
// states why.
func TestLeavesIdle(t *testing.T) {
	t.Parallel()
	c := folder(t, rehearse(t, readyScript), "AGENTTEAM_LEASE=3s")
	write(t, filepath.Join(c.dir, "team.yaml"), "roles: {coder: {idle_timeout: 1s}}\n")
	c.ok("trust", "--yes", "team.yaml")
	c.upWith(2)
	c.ok("run", "--detach", "go")
	c.ok("spawn", "coder", "--name", "bob")
	tm, err := c.connect().Open(t.Context(), team.DefaultTeam)
	if err != nil {
		t.Fatal(err)
	}
	var bob client.Agent
	until(t, "bob leaves", func() bool {
		bob, err = tm.Members().Get(t.Context(), "bob")
		return err == nil && bob.Member.State == team.Stopped
	})
	if !bob.Idled || !strings.Contains(bob.LastError, "1s") {
		t.Errorf("it has left, idle: %v, since %q", bob.Idled, bob.LastError)
	}
	if listed := c.ok("agents", "--all", "-o", "json"); !strings.Contains(listed, bob.LastError) {
		t.Errorf("the reason is not shown:\n%s", listed)
	}
}
