package watchdog

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"agentteam/pkg/store/board/index"
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
		"there is no goal":     func(w *fake) { w.look.Team.Goal = "" },
		"somebody works":       func(w *fake) { w.beats["coder-1"] = beat("coder-1", team.Running) },
		"mail is unread":       func(w *fake) { w.unread = 1 },
		"the index is behind":  func(w *fake) { w.seq = 10 },
		"the bucket is unread": func(w *fake) { w.look.Team.ID = "" },
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
		"nothing is open":                  {team.Task{ID: "T-001", Status: team.Completed}, "end finished"},
		"something is open":                {team.Task{ID: "T-001", Status: team.Pending, Role: "tester"}, "end failed: the leader ended its turn 4 times with open tasks: T-001"},
		"something has failed":             {team.Task{ID: "T-001", Status: team.Failed, Revision: 8}, "end failed: the leader ended its turn 4 times without finish_team, and tasks have failed: T-001"},
		"something failed before the goal": {team.Task{ID: "T-001", Status: team.Failed, Revision: 3}, "end finished"},
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
	t.Parallel()
	for name, tt := range map[string]struct {
		task team.Task
		want []string
	}{
		"with work for it": {team.Task{ID: "T-001", Status: team.Pending}, nil},
		"without":          {team.Task{ID: "T-001", Status: team.Completed}, []string{allIdle, allIdle, "end finished"}},
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

// Members that ended with an earlier cluster are known to be gone, however many they are:
// no lease is waited for. Those of this cluster, and of none, are judged by their silence.
func TestEndedWithTheirCluster(t *testing.T) {
	t.Parallel()
	watch(t, func(t *testing.T, w *fake) {
		w.change(3*time.Second, func() {
			for i, cluster := range []string{"before", "now", ""} {
				a := team.AgentID(fmt.Sprintf("tester-%d", i+1))
				w.look.Members = append(w.look.Members, team.Member{AgentID: a, Role: "tester", State: team.Joined, Incarnation: 1, Cluster: cluster})
				w.dead[a] = true
			}
			w.task(team.Task{ID: "T-001", Status: team.InProgress, Assignee: "tester-1", Incarnation: 1, Epoch: 1})
		})
		w.want("reap T-001 attempt=false, kept: tester-1 ended with its cluster", "respawn tester-1 1")
		w.change(3*time.Second, func() { // its spawner ended with the cluster: nobody waits for a process
			m := &w.look.Members[1]
			m.State, m.Cluster, m.Revision = team.Created, "before", 5
		})
		w.want("respawn coder-1 1")
	})
}

// What waits for a person may take hours: the leader is told once, no goal ends by it, and
// the leader is told anew when the person has done it.
func TestPersonIsWaitedFor(t *testing.T) {
	t.Parallel()
	held := team.Task{ID: "T-001", Status: team.InProgress, Assignee: "ann", Incarnation: 1, Epoch: 1}
	for name, tt := range map[string]struct {
		begin, end func(w *fake)
	}{
		"a task": {
			func(w *fake) { w.task(held) },
			func(w *fake) { w.tasks[0].Status, w.tasks[0].Revision, w.look.Seq = team.Completed, 10, 10 },
		},
		"an answer": {
			func(w *fake) { w.ask("coder-1", "ann") },
			func(w *fake) {
				b := w.beats["coder-1"]
				b.State = team.Idle
				w.beats["coder-1"] = b
				w.turn("coder-1")
			},
		},
		"a decision on what a subagent asks for": {
			func(w *fake) {
				b := w.beats["coder-1"]
				b.Jobs = []team.Job{{ID: "a1b2c3d", Kind: team.JobSubagent, Background: true, Asked: "7a1e"}}
				w.beats["coder-1"] = b
			},
			func(w *fake) {
				b := w.beats["coder-1"]
				b.Jobs = nil
				w.beats["coder-1"] = b
				w.turn("coder-1")
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			watch(t, func(t *testing.T, w *fake) {
				w.change(5*time.Second, func() {
					w.sit()
					tt.begin(w)
				})
				w.want(allIdle)
				for range 4 { // the leader answers with text
					w.change(time.Hour, func() { w.turn(team.Leader) })
				}
				w.want()
				w.change(time.Minute, func() { tt.end(w) })
				w.want(allIdle)
				for range 2 {
					w.change(time.Minute, func() { w.turn(team.Leader) })
					w.want(allIdle)
				}
				w.change(time.Minute, func() { w.turn(team.Leader) })
				w.want("end finished")
			})
		})
	}
}

// A leader that asked a person is not told what it knew when it asked: that would cost a
// model call. It is told, once, of what moved since, and of a person who has left.
func TestLeaderWaitsForPerson(t *testing.T) {
	t.Parallel()
	watch(t, func(t *testing.T, w *fake) {
		w.change(3*time.Second, func() {
			w.sit()
			w.working(true)
			w.beats[team.Leader] = beat(team.Leader, team.Running)
		})
		w.change(10*time.Minute, func() { w.ask(team.Leader, "ann") })
		w.change(10*time.Minute, func() {
			w.tasks[0].Status, w.tasks[0].Revision, w.look.Seq = team.Failed, 10, 10
			b := w.beats["coder-1"]
			b.State, b.Task = team.Idle, ""
			w.beats["coder-1"] = b
			w.turn("coder-1")
		})
		w.want(allIdle)
		w.change(10*time.Minute, func() { w.turn(team.Leader) }) // it waits on
		w.want()
		w.change(3*time.Second, func() { // ann answers, and is asked again
			b := w.beats[team.Leader]
			b.State, b.HeardSeq = team.Running, 8
			w.beats[team.Leader] = b
		})
		w.change(10*time.Minute, func() { w.ask(team.Leader, "ann") })
		w.want()
		w.change(time.Minute, w.stand)
		w.want(allIdle)
	})
}

// Who has left does not answer: the goal ends as if nobody were waited for.
func TestPersonHasLeft(t *testing.T) {
	t.Parallel()
	watch(t, func(t *testing.T, w *fake) {
		w.change(5*time.Second, func() { w.sit(); w.ask("coder-1", "ann") })
		w.want(allIdle)
		w.change(5*time.Second, w.stand)
		for range 3 {
			w.change(time.Hour, func() { w.turn(team.Leader) })
		}
		w.want(allIdle, allIdle, allIdle, "end finished")
	})
}

// What a teammate, the board or mail does begins a new spell; what the leader does
// in answer to the notice does not.
func TestNewSpell(t *testing.T) {
	for name, f := range map[string]func(w *fake){
		"a teammate moved": func(w *fake) { w.turn("coder-1") },
		"the board moved":  func(w *fake) { w.task(team.Task{ID: "T-001", Status: team.Completed, Revision: 10}); w.look.Seq = 10 },
		"the leader got mail": func(w *fake) {
			b := w.beats[team.Leader]
			b.HeardSeq++
			w.beats[team.Leader] = b
		},
		"a new goal": func(w *fake) { w.look.Team.GoalNumber++ },
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
				w.want("end finished")
			})
		})
	}
}

// Mail that is held wakes its reader not, and so it makes no other spell: the leader's mail to members that
// only thank would be answered with a notice again and again.
func TestHeldMailIsNoSpell(t *testing.T) {
	watch(t, func(t *testing.T, w *fake) {
		w.pass(5 * time.Second)
		for range 2 {
			w.change(5*time.Second, func() {
				w.turn(team.Leader)
				for a, b := range w.beats {
					b.InboxSeq++
					w.beats[a] = b
				}
			})
		}
		w.want(allIdle, allIdle, allIdle)
		w.change(5*time.Second, func() { w.turn(team.Leader) })
		w.want("end finished")
	})
}

func TestDesertedLeader(t *testing.T) {
	watch(t, func(t *testing.T, w *fake) {
		w.change(5*time.Second, func() { w.look.Members[1].State = team.Stopped; delete(w.beats, "coder-1") })
		w.want(allIdle)
		w.change(5*time.Second, func() { w.turn(team.Leader) })
		w.want("end finished")
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

// A member that beats and answers no ping, has no inbox or takes no offer holds the team up for a
// while only: then it is named, once, and the leader is told when all others are idle.
func TestSilentMembers(t *testing.T) {
	t.Parallel()
	for why, change := range map[string]func(w *fake){
		noPing:  func(w *fake) { w.dead["coder-1"] = true },
		noInbox: func(w *fake) { w.inboxless = "coder-1" },
		noOffer: func(w *fake) {
			w.task(team.Task{ID: "T-001", Status: team.Pending})
			w.look.Deaf = []team.AgentID{"coder-1"}
		},
	} {
		t.Run(why, func(t *testing.T) {
			watch(t, func(t *testing.T, w *fake) {
				w.change(20*time.Second, func() { change(w) })
				w.want("mark coder-1: "+why, allIdle)
			})
		})
	}
}

// The limit of teammates holds for those that join by themselves too: the last is stopped. A
// limit that was lowered sends nobody away, and whoever comes back has its place.
func TestCrowd(t *testing.T) {
	t.Parallel()
	watch(t, func(t *testing.T, w *fake) {
		join := func(a team.AgentID, revision uint64) {
			m := joined(a, "coder")
			m.Revision = revision
			w.look.Members, w.beats[a] = append(w.look.Members, m), beat(a, team.Running)
		}
		w.change(3*time.Second, func() {
			w.beats[team.Leader] = beat(team.Leader, team.Running)
			join("coder-2", 5)
			w.look.Team.MaxTeammates = 1
		})
		w.want() // as it was before
		w.change(3*time.Second, func() { w.look.Team.MaxTeammates = 3; join("coder-4", 9); join("coder-3", 7) })
		w.want("refuse coder-4 1")
		w.change(3*time.Second, func() { w.look.Team.MaxTeammates = 1; w.look.Members[1].State = team.Created }) // brought back
		w.change(3*time.Second, func() {
			w.look.Members[1].State, w.look.Members[1].Incarnation = team.Joined, 2
			b := w.beats["coder-1"]
			b.Incarnation = 2
			w.beats["coder-1"] = b
		})
		w.want()
	})
}

// Who does not hear itself judges nobody, and not before it has heard itself for a
// whole lease again.
func TestDeafWatchdog(t *testing.T) {
	watch(t, func(t *testing.T, w *fake) {
		w.change(10*time.Minute, func() { w.working(true); w.goSilent("coder-1"); w.silent[team.Leader] = true })
		w.want()
		w.change(lease-2*time.Second, func() { delete(w.silent, team.Leader) })
		w.want()
		w.pass(5 * time.Second)
		w.want("reap T-001 attempt=true, kept: coder-1 was not heard for 30s", "respawn coder-1 1")
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
		w.want("reap T-001 attempt=true, kept: coder-1 was not heard for 30s", "respawn coder-1 1", "respawn coder-2 1")
	})
}

// A process that has listened before it led does not wait again for members that were silent all
// that time. One that was heard late in it has its lease.
func TestSilentBeforeTheTerm(t *testing.T) {
	for name, tt := range map[string]struct {
		before time.Duration // silent for so long when the term begins
		want   []string
	}{
		"for a lease":        {lease, []string{"reap T-001 attempt=true, kept: coder-1 was not heard for 30s", "respawn coder-1 1"}},
		"for half of one":    {lease / 2, nil},
		"it did not listen":  {0, nil},
		"for several leases": {4 * lease, []string{"reap T-001 attempt=true, kept: coder-1 was not heard for 30s", "respawn coder-1 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newFake(t)
				w.working(true)
				w.answered["T-001"] = true
				w.silent["coder-1"], w.dead["coder-1"] = true, true
				time.Sleep(10 * lease)
				if tt.before > 0 {
					w.since = time.Now().Add(-tt.before)
				}
				w.term(func() {
					w.pass(4 * time.Second) // a few looks
					w.want(tt.want...)
				})
			})
		})
	}
}

// Members that fell with their NATS server, known by another id of it, are waited for a lease, as
// one alone is. Who was heard since it was started again has not fallen with it.
func TestServerRestarted(t *testing.T) {
	for name, tt := range map[string]struct {
		heard bool // after the restart
		want  []string
	}{
		"with it":    {false, []string{"reap T-001 attempt=true, kept: coder-1 was not heard for 30s", "respawn coder-1 1", "respawn coder-2 1"}},
		"after that": {true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			watch(t, func(t *testing.T, w *fake) {
				w.change(5*time.Second, func() {
					w.look.Members = append(w.look.Members, joined("coder-2", "coder"))
					w.beats["coder-2"] = beat("coder-2", team.Running)
					for i := range w.look.Members {
						w.look.Members[i].Server = "first"
					}
					w.server = "first"
					w.working(true)
				})
				fall := func() { w.goSilent("coder-1"); w.goSilent("coder-2") }
				if tt.heard {
					w.change(5*time.Second, func() { w.server = "second" })
					w.change(lease+3*time.Second, fall)
				} else {
					w.change(lease+3*time.Second, func() { fall(); w.server = "second" })
				}
				w.want(tt.want...)
			})
		})
	}
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
		w.want("reap T-001 attempt=false, kept: its holder coder-1 was restarted and has not taken it over")
	})
	watch(t, func(t *testing.T, w *fake) { // adopted in time
		w.change(3*time.Second, func() { restart(w) })
		w.change(time.Minute, func() { w.tasks[0].Incarnation, w.tasks[0].Epoch = 2, 2 })
		w.want()
	})
}

func TestPersonsAreNotJudged(t *testing.T) {
	t.Parallel()
	watch(t, func(t *testing.T, w *fake) {
		w.change(time.Hour, func() {
			w.look.Members = append(w.look.Members, team.Member{AgentID: "ann", State: team.Joined, Backend: team.Person, Incarnation: 1})
			w.task(team.Task{ID: "T-001", Status: team.InProgress, Assignee: "ann", Incarnation: 1, Epoch: 1})
		})
		w.want(allIdle) // her task is no reason not to tell
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
		if len(families) != 6 {
			t.Errorf("%d metrics, want 6", len(families))
		}
	})
}
