package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

// hearingScript has a leader that answers mail, while a coder works for as long as the test.
const hearingScript = `
agents:
  - match: {role: leader}
    rules:
      - name: go
        since: 'Listen to me'
        steps:
          - calls:
              - {tool: create_task, args: {title: long, role: coder}}
              - {tool: spawn_teammate, args: {role: coder}}
          - {say: I listen.}
      - {name: hear, say: I hear.}
  - match: {role: coder}
    rules:
      - name: work
        since: '<task id="T-001"'
        steps:
          - calls:
              - {tool: bash, args: {command: 'sleep 300'}}
      - {name: rest, say: Nothing to do.}
`

// The messages of a team's mail fall back behind what the leader has read, as after a power cut or
// from a partial backup. What is sent from then on is heard, and doctor and repair find nothing
// that would keep it from being heard.
func TestRestoredMail(t *testing.T) {
	t.Parallel()
	c := folder(t, rehearse(t, hearingScript), "AGENTTEAM_LEASE=5s")
	data := filepath.Join(c.dir, ".agentteam", "data")
	stream, _ := subject.Messages(team.DefaultTeam)
	begun := func() { c.ok("up", "-d", "-n", "2") }
	t.Cleanup(func() { _ = c.command("down").Run() })
	said := 0
	send := func(n int) {
		for range n {
			said++
			c.ok("send", "leader", fmt.Sprintf("message number %d.", said))
		}
	}
	hears := func() {
		t.Helper()
		last := fmt.Sprintf("message number %d.", said)
		bt, err := brokertest.Connect(t, c.connect().Server()).Open(t.Context(), team.DefaultTeam)
		if err != nil {
			t.Fatal(err)
		}
		var journal strings.Builder
		until(t, "the leader hears "+last, func() bool {
			journal.Reset()
			err := bt.Logs.Read(t.Context(), 1, func(m broker.Msg) error {
				journal.Write(m.Data)
				return nil
			}, subject.Log(team.DefaultTeam, team.Leader))
			return err == nil && strings.Contains(journal.String(), last)
		})
		for n := range said {
			if text := fmt.Sprintf("message number %d.", n+1); !strings.Contains(journal.String(), text) {
				t.Errorf("the leader has not heard %q", text)
			}
		}
	}
	begun()
	c.ok("run", "--detach", "Listen to me")
	send(2)
	hears()
	c.ok("down")
	brokertest.KeepMessages(t, data, stream)
	begun()
	send(5)
	hears()
	c.ok("down")
	brokertest.RestoreMessages(t, data, stream)
	begun()
	send(2)
	hears()
	for cmd, want := range map[string]string{"doctor": "holds what its members have read", "repair": "nothing is damaged"} {
		if out, _ := c.command(cmd).CombinedOutput(); !strings.Contains(string(out), want) {
			t.Errorf("%s:\n%s", cmd, out)
		}
	}
}
