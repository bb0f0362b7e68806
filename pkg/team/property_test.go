package team_test

import (
	"testing"

	"pgregory.net/rapid"

	"agentteam/pkg/team"
)

// hold is a claim as its holder remembers it: what it writes with, however late.
type hold struct {
	by    team.Holder
	epoch uint64
}

// Whatever agents and the watchdog try, in whatever order: only the latest hold
// may write, an epoch never comes again, and what is over stays over.
func TestTaskLife(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		task := pending()
		var holds []hold // all that ever were; the last one is the present one if held
		held := false
		over := false

		agent := rapid.SampledFrom([]team.AgentID{"a", "b", "c"})
		incarnation := rapid.Uint64Range(1, 3)
		accept := func(next team.Task, err error, allowed bool, what string) bool {
			if (err == nil) != allowed {
				t.Fatalf("%s of %s (epoch %d): %v, allowed is %v", what, task.Status, task.Epoch, err, allowed)
			}
			if err != nil {
				return false
			}
			if next.Epoch < task.Epoch {
				t.Fatalf("%s: the epoch fell from %d to %d", what, task.Epoch, next.Epoch)
			}
			task = next
			return true
		}
		took := func(h team.Holder) {
			for _, old := range holds {
				if old.epoch >= task.Epoch {
					t.Fatalf("epoch %d was given out before", task.Epoch)
				}
			}
			holds, held = append(holds, hold{h, task.Epoch}), true
		}
		// write tries f for one hold of those that ever were.
		write := func(what string, f func(h hold) (team.Task, error), after func()) {
			if len(holds) == 0 {
				t.Skip("nobody held it yet")
			}
			i := rapid.IntRange(0, len(holds)-1).Draw(t, "hold")
			next, err := f(holds[i])
			if accept(next, err, held && i == len(holds)-1, what) {
				after()
			}
		}
		freed := func() { held, over = false, task.Status != team.Pending }
		ended := func() { held, over = false, true }
		t.Repeat(map[string]func(*rapid.T){
			"claim": func(t *rapid.T) {
				h := team.Holder{Agent: agent.Draw(t, "agent"), Incarnation: incarnation.Draw(t, "incarnation")}
				next, err := task.Claim(h, at)
				if accept(next, err, !held && !over && (task.ReservedFor == "" || task.ReservedFor == h.Agent), "claim") {
					took(h)
				}
			},
			"reserve": func(t *rapid.T) {
				next, err := task.Reserve(rapid.SampledFrom([]team.AgentID{"", "a", "b"}).Draw(t, "member"), leader, at)
				accept(next, err, !held && !over, "reserve")
			},
			"adopt": func(t *rapid.T) {
				h := team.Holder{Agent: agent.Draw(t, "agent"), Incarnation: incarnation.Draw(t, "incarnation")}
				next, err := task.Adopt(h, false, at)
				mine := held && holds[len(holds)-1].by.Agent == h.Agent && holds[len(holds)-1].by.Incarnation < h.Incarnation
				if accept(next, err, mine, "adopt") {
					took(h)
				}
			},
			"reap": func(t *rapid.T) {
				next, err := task.Reap(team.Freed{Reason: "silent", Attempt: rapid.Bool().Draw(t, "attempt")}, at)
				if accept(next, err, held, "reap") {
					freed()
				}
			},
			"complete": func(*rapid.T) {
				write("complete", func(h hold) (team.Task, error) { return task.Complete(h.by, h.epoch, team.Done{Summary: "done"}, at) }, ended)
			},
			"fail": func(*rapid.T) {
				write("fail", func(h hold) (team.Task, error) { return task.Fail(team.Actor{Holder: h.by}, h.epoch, team.Freed{}, at) }, ended)
			},
			"release": func(t *rapid.T) {
				attempt := rapid.Bool().Draw(t, "attempt")
				write("release", func(h hold) (team.Task, error) {
					return task.Release(team.Actor{Holder: h.by}, h.epoch, team.Freed{Attempt: attempt}, at)
				}, freed)
			},
			"cancel": func(*rapid.T) {
				next, err := task.Cancel(leader, "", at)
				if accept(next, err, !over, "cancel") {
					ended()
				}
			},
			"": func(t *rapid.T) {
				if over == task.Status.Open() || held != (task.Status == team.InProgress) {
					t.Fatalf("%s, and over is %v, held is %v", task.Status, over, held)
				}
				if task.ReservedFor != "" && task.Status != team.Pending {
					t.Fatalf("%s, and reserved for %s", task.Status, task.ReservedFor)
				}
				if task.Attempts > team.MaxAttempts || task.Attempts == team.MaxAttempts && task.Status != team.Failed {
					t.Fatalf("%d attempts and %s", task.Attempts, task.Status)
				}
			},
		})
	})
}
