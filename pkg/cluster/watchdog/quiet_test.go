package watchdog

import (
	"strings"
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

// A leader that answers at once is not told again at once: its third answer would end the goal
// before anybody could do anything. One that is alone has nobody to wait for.
func TestToldAgainAfterAWhile(t *testing.T) {
	answers := func(w *fake) { w.turn(team.Leader); w.beat() }
	watch(t, func(t *testing.T, w *fake) {
		w.pass(1500 * time.Millisecond)
		w.want(allIdle)
		for _, want := range []string{allIdle, allIdle, "end finished"} {
			w.change(againAfter/4, func() { answers(w) })
			w.want()
			w.pass(againAfter * 3 / 4)
			w.want(want)
		}
	})
	watch(t, func(t *testing.T, w *fake) {
		w.change(1500*time.Millisecond, func() { w.look.Members = w.look.Members[:1] })
		w.want(allIdle)
		w.change(1100*time.Millisecond, func() { answers(w) })
		w.want("end finished")
	})
}

// The board may move just as a goal is about to end: then it does not end by what was so before.
func TestMovesAtTheEnd(t *testing.T) {
	watch(t, func(t *testing.T, w *fake) {
		w.change(5*time.Second, func() { w.task(team.Task{ID: "T-001", Status: team.Pending, Role: "tester"}) })
		w.want(allIdle)
		for range maxListed - 1 {
			w.change(5*time.Second, func() { w.turn(team.Leader) })
			w.want(allIdle)
		}
		w.change(5*time.Second, func() {
			w.turn(team.Leader)
			w.onUnfinished = func() {
				w.tasks[0].Status, w.tasks[0].Revision = team.Cancelled, 9
				w.look.Seq = 9
			}
		})
		w.want(allIdle)
	})
}

// What a notice says was done is what was completed since the one before, in this goal.
func TestToldWhatIsDone(t *testing.T) {
	watch(t, func(t *testing.T, w *fake) {
		completes := func(id team.TaskID, revision uint64) {
			w.turn("coder-1")
			w.tasks = append(w.tasks, team.Task{ID: id, Title: "Count", Status: team.Completed, Assignee: "coder-1", ResultSummary: "42 lines", Revision: revision})
			w.look.Moved, w.look.Seq = revision, revision
		}
		tells := func(want string) {
			t.Helper()
			w.want("tell [All Idle]")
			if got := strings.Count(w.text, " by coder-1: 42 lines"); !strings.HasPrefix(w.text, want) || got != 1 {
				t.Errorf("told of %d tasks: %s", got, w.text)
			}
		}
		w.look.Team.GoalSeq = 10
		w.tasks = append(w.tasks, team.Task{ID: "T-001", Status: team.Completed, Assignee: "coder-1", ResultSummary: "42 lines", Revision: 9}) // of the goal before
		w.change(5*time.Second, func() { completes("T-002", 11) })
		tells("[All Idle] Done since you were last told:\n- T-002 (Count) by coder-1: 42 lines\n")
		w.change(5*time.Second, func() { w.turn(team.Leader); completes("T-003", 12) })
		tells("[All Idle] Done since you were last told:\n- T-003 (Count) by coder-1: 42 lines\n")
	})
}
