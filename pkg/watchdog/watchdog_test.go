package watchdog

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"agentteam/pkg/board/index"
	"agentteam/pkg/team"
	"agentteam/pkg/telemetry/telemetrytest"
)

const allIdle = "tell [All Idle]"

// Rule 8: within two heartbeats of true quiet, once in a quiet spell.
func TestToldOnce(t *testing.T) {
	watch(t, func(t *testing.T, w *fake) {
		w.pass(4 * time.Second)
		w.want(allIdle)
		w.pass(10 * time.Minute)
		w.want()
	})
}

func TestNotToldWhile(t *testing.T) {
	for name, f := range map[string]func(w *fake){
		"there is no goal":       func(w *fake) { w.look.Team.Goal = "" },
		"somebody works":         func(w *fake) { w.beats["coder-1"] = beat("coder-1", team.Running) },
		"mail is unread":         func(w *fake) { w.unread = 1 },
		"the index is behind":    func(w *fake) { w.seq = 10 },
		"somebody cannot answer": func(w *fake) { w.dead["coder-1"] = true },
		"the bucket is unread":   func(w *fake) { w.look.Team.ID = "" },
	} {
		t.Run(name, func(t *testing.T) {
			watch(t, func(t *testing.T, w *fake) {
				w.change(20*time.Second, func() { f(w) })
				w.want()
			})
		})
	}
}

// A leader that only talks is told three times; its next text ends the goal.
func TestTalkEndsTheGoal(t *testing.T) {
	for name, tt := range map[string]struct {
		task team.Task
		want string
	}{
		"nothing is open":                  {team.Task{ID: "T-001", Status: team.Completed}, "end finished: that is all"},
		"something is open":                {team.Task{ID: "T-001", Status: team.Pending, Role: "tester"}, "end failed: that is all"},
		"something has failed":             {team.Task{ID: "T-001", Status: team.Failed, Revision: 8}, "end failed: that is all"},
		"something failed before the goal": {team.Task{ID: "T-001", Status: team.Failed, Revision: 3}, "end finished: that is all"},
	} {
		t.Run(name, func(t *testing.T) {
			watch(t, func(t *testing.T, w *fake) {
				w.change(5*time.Second, func() {
					w.look.Team.GoalSeq = 5
					w.task(tt.task)
					if tt.task.Status == team.Failed {
						w.ends = append(w.ends, index.End{Task: tt.task, Revision: tt.task.Revision})
					}
				})
				w.want(allIdle)
				for range 2 {
					w.change(time.Minute, func() { w.turn(team.Leader) })
					w.want(allIdle)
				}
				w.change(time.Minute, func() { w.turn(team.Leader) })
				w.want(tt.want)
			})
		})
	}
}

// A team that waits for somebody to mend a model is told of once, and that does not
// end its goal, however often the leader answers; without open work it waits for nobody.
func TestParkedTeammate(t *testing.T) {
	for name, tt := range map[string]struct {
		task team.Task
		want []string
	}{
		"with work for it": {team.Task{ID: "T-001", Status: team.Pending}, nil},
		"without":          {team.Task{ID: "T-001", Status: team.Completed}, []string{allIdle, allIdle, "end finished: that is all"}},
	} {
		t.Run(name, func(t *testing.T) {
			watch(t, func(t *testing.T, w *fake) {
				w.change(5*time.Second, func() { w.task(tt.task); w.beats["coder-1"] = parked("coder-1") })
				w.want(allIdle)
				for range 3 {
					w.change(time.Hour, func() { w.turn(team.Leader) })
				}
				w.want(tt.want...)
			})
		})
	}
}

// What a teammate, the board or mail does begins a new spell; what the leader does
// in answer to the notice does not.
func TestNewSpell(t *testing.T) {
	for name, f := range map[string]func(w *fake){
		"a teammate moved": func(w *fake) { w.turn("coder-1") },
		"the board moved":  func(w *fake) { w.task(team.Task{ID: "T-001", Status: team.Completed, Revision: 10}); w.look.Seq = 10 },
		"mail was sent":    func(w *fake) { w.mail++ },
		"a new goal":       func(w *fake) { w.look.Team.GoalNumber++ },
	} {
		t.Run(name, func(t *testing.T) {
			watch(t, func(t *testing.T, w *fake) {
				w.pass(5 * time.Second)
				w.change(5*time.Second, func() { w.turn(team.Leader) })
				w.want(allIdle, allIdle)
				w.change(5*time.Second, func() { f(w) })
				w.want(allIdle) // at once, though the leader has not answered yet
				for range 2 {
					w.change(5*time.Second, func() { w.turn(team.Leader) })
					w.want(allIdle) // not yet the end: it is counted anew
				}
				w.change(5*time.Second, func() { w.turn(team.Leader) })
				w.want("end finished: that is all")
			})
		})
	}
}

func TestDesertedLeader(t *testing.T) {
	watch(t, func(t *testing.T, w *fake) {
		w.change(5*time.Second, func() { w.look.Members[1].State = team.Stopped; delete(w.beats, "coder-1") })
		w.want(allIdle)
		w.change(5*time.Second, func() { w.turn(team.Leader) })
		w.want("end finished: that is all")
	})
}

// NATS may be away for a while: what failed is done later, and once.
func TestTriesAgain(t *testing.T) {
	watch(t, func(t *testing.T, w *fake) {
		w.change(time.Minute, func() { w.broken = errors.New("NATS is away") })
		w.want()
		w.change(time.Minute, func() { w.broken = nil })
		w.want(allIdle)
	})
}

func held() team.Task {
	return team.Task{ID: "T-001", Status: team.InProgress, Assignee: "coder-1", Incarnation: 1, Epoch: 1}
}

// working makes coder-1 work on T-001.
func (w *fake) working(begun bool) {
	w.task(held())
	b := beat("coder-1", team.Running)
	b.Task, b.Epoch, b.Begun = "T-001", 1, begun
	w.beats["coder-1"] = b
}

func TestLostMember(t *testing.T) {
	watch(t, func(t *testing.T, w *fake) {
		w.change(10*time.Minute, func() { w.working(true) })
		w.want()
		w.change(lease-2*time.Second, func() { w.goSilent("coder-1") })
		w.want()
		w.pass(4 * time.Second)
		w.want("reap T-001 attempt=true: coder-1 was not heard for 30s", "respawn coder-1 1")
		w.pass(50 * time.Second)
		w.want() // once for each incarnation
		w.pass(15 * time.Second)
		w.want("respawn coder-1 1") // unless nothing came of it
		w.change(lease-2*time.Second, func() { w.look.Members[1].Incarnation = 2 })
		w.want() // it has had no time yet to be heard
		w.pass(4 * time.Second)
		w.want("respawn coder-1 2")
	})
}

// A host that is gone may have had many members: all are asked at once whether they live.
func TestLostHost(t *testing.T) {
	watch(t, func(t *testing.T, w *fake) {
		var want []string
		w.change(10*time.Minute, func() {
			for n := 2; n <= 41; n++ {
				a := team.AgentID(fmt.Sprint("coder-", n))
				w.look.Members = append(w.look.Members, joined(a, "coder"))
				w.beats[a] = beat(a, team.Running)
			}
		})
		w.want()
		w.change(lease-2*time.Second, func() {
			for n := 2; n <= 20; n++ { // fewer than half
				a := team.AgentID(fmt.Sprint("coder-", n))
				w.goSilent(a)
				w.task(team.Task{ID: team.MakeTaskID(n), Status: team.InProgress, Assignee: a, Incarnation: 1, Epoch: 1})
				want = append(want, fmt.Sprintf("reap T-%03d attempt=false: %s was not heard for 30s", n, a), fmt.Sprintf("respawn %s 1", a))
			}
		})
		w.want()
		w.pass(5 * time.Second)
		w.want(want...)
	})
}

// A task that its holder had not begun is freed without counting an attempt.
func TestLostBeforeItBegan(t *testing.T) {
	watch(t, func(t *testing.T, w *fake) {
		w.change(time.Minute, func() { w.working(false); w.goSilent("coder-1") })
		w.want("reap T-001 attempt=false: coder-1 was not heard for 30s", "respawn coder-1 1")
	})
}

// A member whose process said goodbye is brought back without waiting for the
// lease; its task, should it have kept it, goes to its successor or is freed.
func TestSaidGoodbye(t *testing.T) {
	watch(t, func(t *testing.T, w *fake) {
		w.change(3*time.Second, func() {
			w.working(true)
			w.goSilent("coder-1")
			w.look.Members[1].State = team.Lost
		})
		w.want("respawn coder-1 1")
		w.pass(5 * time.Second)
		w.want("reap T-001 attempt=false: its holder coder-1 has left", allIdle) // in this test nobody comes back
		w.pass(30 * time.Second)
		w.want()
	})
	watch(t, func(t *testing.T, w *fake) {
		w.change(time.Minute, func() {
			w.look.Team.Policies.Respawn = team.RespawnRelease
			w.look.Members[1].State = team.Lost
		})
		w.want(allIdle)
	})
}

// A spawner that died leaves a record that no process has taken.
func TestForgottenSpawn(t *testing.T) {
	watch(t, func(t *testing.T, w *fake) {
		w.change(13*time.Second, func() { w.look.Members[1].State, w.look.Members[1].Revision = team.Created, 5 })
		w.want()
		w.change(13*time.Second, func() { w.look.Members[1].Revision = 6 }) // somebody is at it
		w.want()
		w.pass(time.Minute)
		w.want("respawn coder-1 1")
	})
}

// Silence proves nothing about one that answers when it is asked.
func TestSilentButAlive(t *testing.T) {
	watch(t, func(t *testing.T, w *fake) {
		w.change(10*time.Minute, func() { w.working(true); w.goSilent("coder-1"); w.dead["coder-1"] = false })
		w.want()
	})
}

func TestNoRespawn(t *testing.T) {
	watch(t, func(t *testing.T, w *fake) {
		w.change(10*time.Minute, func() {
			w.look.Team.Policies.Respawn = team.RespawnRelease
			w.working(true)
			w.goSilent("coder-1")
		})
		w.want("reap T-001 attempt=true: coder-1 was not heard for 30s")
	})
}

// Who does not hear itself judges nobody, and not before it has heard itself for a
// whole lease again.
func TestDeafWatchdog(t *testing.T) {
	watch(t, func(t *testing.T, w *fake) {
		w.change(10*time.Minute, func() { w.working(true); w.goSilent("coder-1"); w.silent[team.Leader] = time.Now() })
		w.want()
		w.change(lease-2*time.Second, func() { delete(w.silent, team.Leader) })
		w.want()
		w.pass(5 * time.Second)
		w.want("reap T-001 attempt=true: coder-1 was not heard for 30s", "respawn coder-1 1")
	})
}

// A process that was frozen has heard nobody for as long; that says nothing about
// the others.
func TestFrozenWatchdog(t *testing.T) {
	watch(t, func(t *testing.T, w *fake) {
		w.change(time.Minute, func() { w.working(true) })
		w.change(2*lease+2*time.Second, func() { w.freeze = 2 * lease; w.goSilent("coder-1") })
		w.want()
		w.change(time.Minute, func() { delete(w.silent, "coder-1"); delete(w.dead, "coder-1") })
		w.want()
	})
}

// The silence of more than half is more likely our own trouble.
func TestManyAreSilent(t *testing.T) {
	watch(t, func(t *testing.T, w *fake) {
		w.change(2*lease, func() {
			w.look.Members = append(w.look.Members, joined("coder-2", "coder"))
			w.beats["coder-2"] = beat("coder-2", team.Running)
			w.working(true)
			w.goSilent("coder-1")
			w.goSilent("coder-2")
		})
		w.want()
		w.pass(lease + 2*time.Second)
		w.want("reap T-001 attempt=true: coder-1 was not heard for 30s", "respawn coder-1 1", "respawn coder-2 1")
	})
}

// A claim of an earlier incarnation is left to the later one for five seconds.
func TestSupersededClaim(t *testing.T) {
	restart := func(w *fake) {
		w.task(held())
		w.look.Members[1].Incarnation = 2
		b := beat("coder-1", team.Running)
		b.Incarnation = 2
		w.beats["coder-1"] = b
	}
	watch(t, func(t *testing.T, w *fake) {
		w.change(3*time.Second, func() { restart(w) })
		w.want()
		w.pass(4 * time.Second)
		w.want("reap T-001 attempt=false: its holder coder-1 was restarted and has not taken it over")
	})
	watch(t, func(t *testing.T, w *fake) { // adopted in time
		w.change(3*time.Second, func() { restart(w) })
		w.change(time.Minute, func() { w.tasks[0].Incarnation, w.tasks[0].Epoch = 2, 2 })
		w.want()
	})
}

func TestPersonsAreNotJudged(t *testing.T) {
	watch(t, func(t *testing.T, w *fake) {
		w.change(time.Hour, func() {
			w.look.Members = append(w.look.Members, team.Member{AgentID: "ann", State: team.Joined, Backend: team.Person, Incarnation: 1})
			w.task(team.Task{ID: "T-001", Status: team.InProgress, Assignee: "ann", Incarnation: 1, Epoch: 1})
		})
		w.want(allIdle) // her task is no reason not to tell
	})
}

// The leader is told once of a dependency that failed or was cancelled.
func TestBlockedForGood(t *testing.T) {
	const blocked = "tell [Blocked]"
	plan := func(w *fake) {
		w.beats["coder-1"] = beat("coder-1", team.Running)
		for n := range 6 {
			w.task(team.Task{ID: team.MakeTaskID(n + 1), Status: team.Pending})
		}
		w.tasks[1].Dependencies = []team.TaskID{"T-001"}
		w.tasks[3].Dependencies = []team.TaskID{"T-003"}
	}
	t.Run("by one leader", func(t *testing.T) {
		watch(t, func(t *testing.T, w *fake) {
			w.change(10*time.Second, func() { plan(w) })
			w.want()
			w.change(time.Minute, func() { w.end("T-001", team.Failed) })
			w.want(blocked)
			w.change(time.Minute, func() { w.end("T-006", team.Cancelled) })
			w.want() // nothing depends on it
			w.change(time.Minute, func() { w.end("T-001", team.Failed) })
			w.want() // it was written again
			w.change(time.Minute, func() { w.end("T-003", team.Cancelled); w.end("T-002", team.Cancelled) })
			w.want(blocked)
		})
	})
	t.Run("by its successor", func(t *testing.T) {
		watch(t, func(t *testing.T, w *fake) {
			w.change(10*time.Second, func() { plan(w); w.end("T-001", team.Failed) })
			w.want(blocked)
			w.change(time.Hour, func() { w.end("T-001", team.Failed) })
			w.term(func() {
				w.pass(time.Minute)
				w.want() // it was told before
			})
		})
	})
	t.Run("of what happened while nobody led", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newFake(t)
			plan(w)
			w.end("T-001", team.Failed)
			w.term(func() {
				w.pass(time.Minute)
				w.want(blocked)
			})
		})
	})
	t.Run("though the first died before it noted that", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newFake(t)
			plan(w)
			w.end("T-001", team.Failed)
			for _, want := range [][]string{{blocked}, nil} {
				w.stored = 0
				w.term(func() {
					w.pass(time.Minute)
					w.want(want...)
				})
			}
		})
	})
	t.Run("once NATS is back", func(t *testing.T) {
		watch(t, func(t *testing.T, w *fake) {
			w.change(10*time.Second, func() { plan(w) })
			w.change(time.Minute, func() { w.broken = errors.New("NATS is away"); w.end("T-001", team.Failed) })
			w.want()
			w.change(time.Minute, func() { w.broken = nil })
			w.want(blocked)
		})
	})
}

func TestMetrics(t *testing.T) {
	watch(t, func(t *testing.T, w *fake) {
		w.pass(5 * time.Second)
		telemetrytest.Lint(t, w.reg)
		families, err := w.reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		if len(families) != 5 {
			t.Errorf("%d metrics, want 5", len(families))
		}
	})
}
