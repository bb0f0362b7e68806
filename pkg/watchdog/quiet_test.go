package watchdog

import (
	"testing"
	"time"

	"agentteam/pkg/team"
)

// goIdle has an agent become idle; its beat tells at once.
func (w *fake) goIdle(a team.AgentID) {
	b := w.beats[a]
	b.State = team.Idle
	w.beats[a] = b
	w.beat()
}

// The leader is told as soon as the last member is idle, not when the watchdog looks next.
func TestToldSoon(t *testing.T) {
	watch(t, func(t *testing.T, w *fake) {
		w.change(1500*time.Millisecond, func() { w.beats["coder-1"] = beat("coder-1", team.Running) })
		w.want()
		w.change(2*settleTime, func() { w.goIdle("coder-1") })
		w.want("tell [All Idle]")
	})
}

// What an idle member has read since its last beat, as the leader reads the notes of those
// that become idle, is known from what it answers; nobody waits for its next beat.
func TestReadSinceItsBeat(t *testing.T) {
	watch(t, func(t *testing.T, w *fake) {
		w.change(1500*time.Millisecond, func() { w.beats["coder-1"] = beat("coder-1", team.Running) })
		w.change(2*settleTime, func() {
			w.goIdle("coder-1")
			w.silent["coder-1"] = true
			b := w.beats["coder-1"]
			b.InboxSeq += 3
			w.beats["coder-1"] = b
		})
		w.want("tell [All Idle]")
	})
}

// A team of which somebody moves between any two rounds is not quiet, and is asked no more
// than a few times for each look.
func TestMovesBetweenRounds(t *testing.T) {
	watch(t, func(t *testing.T, w *fake) {
		w.change(10500*time.Millisecond, func() { w.restless = "coder-1" })
		w.want()
		if w.pings > 11*2*maxRounds {
			t.Errorf("%d questions to two members in 10 s", w.pings)
		}
		w.change(2*time.Second, func() { w.restless = "" })
		w.want("tell [All Idle]")
	})
}

// A team whose leader knows that all are idle is not asked again and again.
func TestToldTeamIsNotAsked(t *testing.T) {
	watch(t, func(t *testing.T, w *fake) {
		w.pass(3 * time.Second)
		w.want("tell [All Idle]")
		asked := w.pings
		w.pass(time.Minute)
		w.want()
		if w.pings != asked {
			t.Errorf("%d more questions", w.pings-asked)
		}
	})
}
