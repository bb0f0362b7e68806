package watchdog

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"agentteam/pkg/store/board/index"
	"agentteam/pkg/team"
)

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
		w.want("reap T-001 attempt=true, kept: coder-1 was not heard for 30s", "respawn coder-1 1")
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

// In a team whose members have trees, the record of a lost member's task names the host that may have its files.
func TestLostMemberHasATree(t *testing.T) {
	watch(t, func(t *testing.T, w *fake) {
		w.change(10*time.Minute, func() {
			w.working(true)
			w.look.Team.GoalNumber, w.look.Team.Branch = 1, &team.GoalBranch{Goal: 1}
			w.look.Members[1].Host = "alpha"
		})
		w.change(lease-2*time.Second, func() { w.goSilent("coder-1") })
		w.pass(4 * time.Second)
		w.want("reap T-001 attempt=true, kept, files on alpha: coder-1 was not heard for 30s", "respawn coder-1 1")
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
				want = append(want, fmt.Sprintf("reap T-%03d attempt=false, kept: %s was not heard for 30s", n, a), fmt.Sprintf("respawn %s 1", a))
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
		w.want("reap T-001 attempt=false, kept: coder-1 was not heard for 30s", "respawn coder-1 1")
	})
}

// What ends a process at once leaves no beat that tells of it; the journal does.
func TestLostAtOnce(t *testing.T) {
	watch(t, func(t *testing.T, w *fake) {
		w.change(time.Minute, func() { w.working(false); w.answered["T-001"] = true; w.goSilent("coder-1") })
		w.want("reap T-001 attempt=true, kept: coder-1 was not heard for 30s", "respawn coder-1 1")
	})
}

// A member that is lost again and again is given up.
func TestGivenUp(t *testing.T) {
	for losses, want := range map[int][]string{
		4: {"give up coder-1 1: its process was lost 5 times in a row, each time within 2 minutes", allIdle},
		3: {"respawn coder-1 1"},
	} {
		t.Run(strconv.Itoa(losses), func(t *testing.T) {
			watch(t, func(t *testing.T, w *fake) {
				w.change(time.Minute, func() { w.look.Members[1].PID, w.look.Members[1].Losses = 7, losses; w.turn("coder-1") })
				w.change(lease+5*time.Second, func() { w.did = nil; w.goSilent("coder-1") })
				w.want(want...)
			})
		})
	}
}

// Members that an end of the team has dismissed meet no later goal, whether their processes
// are known to be gone or not; persons and who came since stay.
func TestDismissed(t *testing.T) {
	watch(t, func(t *testing.T, w *fake) {
		w.change(2*time.Second, func() {
			w.look.Team.EndSeq = 5
			w.look.Members[1].Revision = 5
			w.look.Members = append(w.look.Members,
				team.Member{AgentID: "coder-2", State: team.Lost, Revision: 4, Incarnation: 3},
				team.Member{AgentID: "ann", State: team.Joined, Backend: team.Person, Revision: 3},
				team.Member{AgentID: "coder-3", State: team.Lost, Revision: 6, Incarnation: 1})
			w.goSilent("coder-1")
		})
		w.want("dismiss coder-1 1", "dismiss coder-2 3", "respawn coder-3 1")
	})
}

// The leader is told of a task whose holders were lost at work on it until it failed.
func TestTaskThatKills(t *testing.T) {
	watch(t, func(t *testing.T, w *fake) {
		w.change(2*time.Second, func() {
			w.beats["coder-1"] = beat("coder-1", team.Running)
			w.ends = []index.End{{Revision: 3, Task: team.Task{ID: "T-001", Status: team.Failed, UpdatedBy: team.Watchdog, Attempts: 3}},
				{Revision: 4, Task: team.Task{ID: "T-002", Status: team.Failed, UpdatedBy: "coder-1"}}}
		})
		w.want("tell [Failed]")
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
		w.want("reap T-001 attempt=false, kept: its holder coder-1 has left")
		w.pass(30 * time.Second)
		w.want() // in this test nobody comes back, and nothing is written of that
	})
	watch(t, func(t *testing.T, w *fake) {
		w.change(time.Minute, func() {
			w.look.Team.Policies.Respawn = team.RespawnRelease
			w.look.Members[1].State = team.Lost
		})
		w.want(allIdle)
	})
}

// A member that cannot be brought back holds the team up until several tries have failed. Then
// the leader is told, once, and the goal of one that only talks ends, though the tries go on.
func TestCannotBeBroughtBack(t *testing.T) {
	watch(t, func(t *testing.T, w *fake) {
		w.change(time.Second, func() {
			w.task(team.Task{ID: "T-001", Status: team.Pending, Role: "coder"})
			w.goSilent("coder-1")
			w.look.Members[1].State, w.poolless = team.Lost, true
		})
		w.want("respawn coder-1 1")
		w.pass(time.Second)
		w.want("respawn coder-1 2")
		w.pass(time.Second)
		w.want("respawn coder-1 3")
		w.pass(time.Second)
		w.want("tell [Lost]", "respawn coder-1 4", allIdle)
		for range 3 {
			w.change(3*time.Second, func() { w.turn(team.Leader) })
		}
		told := slices.DeleteFunc(w.did, func(did string) bool { return strings.HasPrefix(did, "respawn") })
		if want := []string{allIdle, allIdle, "end failed: the leader ended its turn 4 times with open tasks: T-001"}; !slices.Equal(told, want) {
			t.Errorf("then the watchdog did %q, want %q", told, want)
		}
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

// absence proves nothing about one that answers when it is asked.
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
		w.want("reap T-001 attempt=true: coder-1 was not heard for 30s", "lose coder-1 was not heard for 30s", allIdle) // nobody waits for it
	})
}

func TestRespawnAsks(t *testing.T) {
	watch(t, func(t *testing.T, w *fake) {
		w.change(10*time.Minute, func() {
			w.look.Team.Policies.Respawn = team.RespawnAsk
			w.working(true)
			w.goSilent("coder-1")
		})
		w.want("reap T-001 attempt=true: coder-1 was not heard for 30s", "lose coder-1 was not heard for 30s", allIdle, "ask for coder-1 1")
		w.pass(10 * time.Minute)
		w.want() // nothing happens to it before a person has decided
		w.change(4*time.Second, func() { w.returns = true })
		w.want("respawn coder-1 1")
	})
}

func TestKeptReady(t *testing.T) {
	watch(t, func(t *testing.T, w *fake) {
		w.change(4*time.Second, func() {
			w.working(true)
			w.look.Team.Roles = map[string]team.Role{"coder": {Name: "coder", Ready: 3}, "tester": {Name: "tester"}}
		})
		w.want("ready 2 coder") // coder-1 is there
		w.change(10*time.Minute, func() { w.look.Members = append(w.look.Members, joined("coder-2", "coder")) })
		w.want("ready 1 coder", "ready 1 coder") // three in a row bring none
		w.change(4*time.Second, func() { w.look.Members = append(w.look.Members, joined("coder-3", "coder")) })
		w.want()
		w.change(4*time.Second, func() { w.look.Members[len(w.look.Members)-1].State = team.Stopped })
		w.want("ready 1 coder")
		w.change(10*time.Minute, func() { w.look.Team.Goal = "" })
		w.want()
	})
}

// A member that came and left between two checks is replaced at the next one, as often as that happens.
func TestKeptReadyLeaves(t *testing.T) {
	watch(t, func(t *testing.T, w *fake) {
		w.change(4*time.Second, func() {
			w.working(true)
			w.look.Team.Roles = map[string]team.Role{"coder": {Name: "coder", Ready: 2}}
		})
		w.want("ready 1 coder")
		for n := range 5 {
			w.change(4*time.Second, func() {
				m := joined("coder-2", "coder")
				m.State, m.Incarnation, m.Revision = team.Stopped, uint64(n+1), uint64(n+2)
				w.look.Members = append(w.look.Members[:2:2], m)
			})
			w.want("ready 1 coder")
		}
	})
}

// A member that is being spawned is none that has come: where each spawn fails, three are tried.
func TestKeptReadyInVain(t *testing.T) {
	watch(t, func(t *testing.T, w *fake) {
		w.change(4*time.Second, func() {
			w.working(true)
			w.look.Team.Roles = map[string]team.Role{"coder": {Name: "coder", Ready: 2}}
		})
		for n := range 5 {
			w.change(4*time.Second, func() {
				m := joined(team.AgentID(fmt.Sprintf("coder-%d", n+2)), "coder")
				m.State = team.Created
				w.look.Members = append(w.look.Members, m)
			})
			w.change(time.Minute, func() {
				m := &w.look.Members[len(w.look.Members)-1]
				m.State, m.TakenBack, m.Revision = team.Stopped, true, uint64(n+2)
			})
		}
		w.want("ready 1 coder", "ready 1 coder", "ready 1 coder")
	})
}

// Who is lost is one of those that are kept ready only if it is brought back.
func TestReadyWithLost(t *testing.T) {
	lost := joined("coder-1", "coder")
	lost.State = team.Lost
	for respawn, want := range map[team.Respawn]int{"": 1, team.RespawnAlways: 1, team.RespawnAsk: 2, team.RespawnRelease: 2} {
		of := team.Team{Policies: team.Policies{Respawn: respawn}}
		if got := of.Missing(team.Role{Name: "coder", Ready: 2}, []team.Member{lost}); got != want {
			t.Errorf("%q: %d are missing beside one that is lost, want %d", respawn, got, want)
		}
	}
}

// A member that another program plays is not continued by ours.
func TestPlayedByAnotherProgram(t *testing.T) {
	watch(t, func(t *testing.T, w *fake) {
		w.change(time.Minute, func() {
			w.look.Members[1].Program = "rob"
			w.working(false)
			w.goSilent("coder-1")
		})
		w.want("reap T-001 attempt=false: coder-1 was not heard for 30s", "lose coder-1 was not heard for 30s", allIdle)
	})
}
