package watchdog

import (
	"strings"
	"testing"
	"time"

	"agentteam/pkg/team"
)

// The leader is told of a stall once in a spell, also across leaders, and again when the
// member has moved and stalls anew.
func TestStalledIsToldOnce(t *testing.T) {
	const stalled = "tell [Stalled]"
	watch(t, func(t *testing.T, w *fake) {
		hangs := func(a team.AgentID, state team.MemberState, still time.Duration) {
			b := beat(a, state)
			b.Still, b.ProgressAt = int(still/time.Second), time.Now().Add(-still).UTC()
			b.N = w.beats[a].N
			w.beats[a] = b
		}
		w.change(5*time.Second, func() { hangs("coder-1", team.Running, team.DefaultStall-time.Minute) })
		w.want()
		w.change(5*time.Second, func() { hangs("coder-1", team.Running, team.DefaultStall) })
		w.want(stalled)
		w.pass(10 * time.Minute)
		w.want()
		w.change(5*time.Second, func() { hangs("coder-1", team.Running, 0) })
		w.change(5*time.Second, func() { hangs("coder-1", team.Running, team.DefaultStall) })
		w.want(stalled)
		w.change(5*time.Second, func() { hangs(team.Leader, team.Running, time.Hour) }) // it cannot read it
		w.want()
		w.term(func() { w.pass(time.Minute) }) // another leader's watchdog: the same notice under the same id
		w.want()
	})
}

func TestStalledText(t *testing.T) {
	for want, b := range map[string]team.Heartbeat{
		"for 15 minutes":                                                {},
		"Its model has not answered.":                                   {},
		"Its call of bash has not returned.":                            {Tool: "bash", Trouble: "of before"},
		"gives no answer: status 503.":                                  {Trouble: "status 503"},
		"It holds T-003; update_task with status \"pending\" puts that": {Task: "T-003"},
	} {
		b.AgentID, b.Still = "coder-1", 900
		if got := stalledText(b); !strings.HasPrefix(got, "[Stalled] coder-1 ") || !strings.Contains(got, want) {
			t.Errorf("%q, want %q in it", got, want)
		}
	}
}
