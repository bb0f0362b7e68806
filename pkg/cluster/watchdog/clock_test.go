package watchdog

import (
	"testing"
	"time"

	"agentteam/pkg/team"
)

// Only how long ago a beat was heard counts, by the clock of who heard it. What time
// it is where the beat comes from does not.
func TestClocksDiffer(t *testing.T) {
	for name, off := range map[string]time.Duration{"an hour behind": -time.Hour, "an hour ahead": time.Hour} {
		t.Run(name, func(t *testing.T) {
			watch(t, func(t *testing.T, w *fake) {
				w.change(10*time.Minute, func() {
					w.working(true)
					b := w.beats["coder-1"]
					b.ProgressAt = time.Now().Add(off)
					w.beats["coder-1"] = b
					w.dead["coder-1"] = true // and no ping will save it
				})
				w.want()
				w.change(lease+2*time.Second, func() { w.goSilent("coder-1") })
				w.want("reap T-001 attempt=true, kept: coder-1 was not heard for 30s", "respawn coder-1 1")
			})
		})
	}
}

// A predecessor that was frozen and runs again says nothing of its successor.
func TestPredecessorBeats(t *testing.T) {
	watch(t, func(t *testing.T, w *fake) {
		w.change(lease+4*time.Second, func() {
			task := held()
			task.Incarnation, task.Epoch = 2, 2
			w.task(task)
			w.look.Members[1].Incarnation = 2
			w.beats["coder-1"] = beat("coder-1", team.Running) // of incarnation 1, all the time
			w.dead["coder-1"] = true
		})
		w.want("reap T-001 attempt=false, kept: coder-1 was not heard for 30s", "respawn coder-1 2")
	})
}
