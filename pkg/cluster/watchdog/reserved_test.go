package watchdog

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"agentteam/pkg/team"
)

const forsaken = "tell [Reserved]"

func reservedFor(id team.TaskID, a team.AgentID) team.Task {
	return team.Task{ID: id, Title: "x", Status: team.Pending, ReservedFor: a, Revision: uint64(id.Number())}
}

// What is reserved for a member that will not come is anybody's again, and the leader is told
// once of each such member. A member that is lost and brought back comes.
func TestForsaken(t *testing.T) {
	t.Parallel()
	stopped := func(w *fake) { w.look.Members[1].State = team.Stopped; delete(w.beats, "coder-1") }
	for name, tt := range map[string]struct {
		change func(w *fake)
		member team.AgentID
		ends   bool
	}{
		"stopped":                  {stopped, "coder-1", true},
		"parked":                   {func(w *fake) { w.look.Members[1].State = team.WaitingModel }, "coder-1", true},
		"no member":                {func(*fake) {}, "coder-9", true},
		"lost for good":            {func(w *fake) { w.look.Members[1].State = team.Lost; w.look.Team.Policies.Respawn = team.RespawnRelease }, "coder-1", true},
		"busy":                     {func(w *fake) { w.beats["coder-1"] = beat("coder-1", team.Running) }, "coder-1", false},
		"outage of its model":      {func(w *fake) { w.beats["coder-1"] = beat("coder-1", team.WaitingModel) }, "coder-1", false},
		"lost, to be brought back": {func(w *fake) { w.look.Members[1].State = team.Created }, "coder-1", false},
	} {
		t.Run(name, func(t *testing.T) {
			watch(t, func(t *testing.T, w *fake) {
				w.change(3*time.Second, func() {
					w.beats[team.Leader] = beat(team.Leader, team.Running)
					w.task(reservedFor("T-001", tt.member))
					w.task(reservedFor("T-002", tt.member))
					tt.change(w)
				})
				if tt.ends {
					w.want(forsaken, "unreserve T-001", "unreserve T-002")
				}
				w.pass(5 * time.Second)
				w.want()
			})
		})
	}
}

// The next leader goes on where the first died, and tells of it no more.
func TestForsakenByTwoLeaders(t *testing.T) {
	t.Parallel()
	watch(t, func(t *testing.T, w *fake) {
		w.change(3*time.Second, func() {
			w.task(reservedFor("T-001", "bob"))
			w.task(reservedFor("T-002", "bob"))
			w.beats["coder-1"] = beat("coder-1", team.Running)
		})
		w.want(forsaken, "unreserve T-001", "unreserve T-002")
		w.term(func() {
			w.change(3*time.Second, func() { w.tasks[1].ReservedFor = "bob" }) // which the first had no time to write
			w.want("unreserve T-002")
		})
	})
}

// A task that is reserved for a person waits as long as it takes, and ends no goal.
func TestReservedForPerson(t *testing.T) {
	t.Parallel()
	watch(t, func(t *testing.T, w *fake) {
		w.change(5*time.Second, func() { w.sit(); w.task(reservedFor("T-001", "ann")) })
		w.want(allIdle)
		for range 4 {
			w.change(time.Hour, func() { w.turn(team.Leader) })
		}
		w.want()
	})
}

func TestForsakenText(t *testing.T) {
	l := quiet()
	l.Members[1].State = team.Stopped
	l.Snapshot = on(l.Snapshot, []team.Task{{ID: "T-001", Title: "Count", Status: team.Pending, ReservedFor: "coder-1", Revision: 9}, {ID: "T-002", Title: "Print", Status: team.Pending, ReservedFor: "coder-1", Revision: 5}})
	const want = "[Reserved] coder-1 has stopped. What was reserved for it may be taken by anybody of its role: T-002 (Print), T-001 (Count)"
	if all := l.UnreachableReservations(); len(all) != 1 || all[0].Text() != want {
		t.Errorf("%+v", all)
	}
}

// A member that lost its task without its doing has the task reserved for five minutes in which a leader acts; after
// that the task is anybody's, and the leader is notified once.
func TestReservationLapses(t *testing.T) {
	t.Parallel()
	kept := func(id team.TaskID, by team.AgentID) team.Task {
		task := reservedFor(id, "coder-1")
		task.Lapses, task.UpdatedBy = true, by
		return task
	}
	synctest.Test(t, func(t *testing.T) { // each leader counts for itself: the reservation outlives a night without any
		w := newFake(t)
		w.beats["coder-1"] = beat("coder-1", team.Running)
		w.task(kept("T-001", "coder-1"))
		for range 2 {
			w.term(func() { w.pass(reserveFor - 10*time.Second) })
			w.want()
			time.Sleep(9 * time.Hour)
		}
	})
	watch(t, func(t *testing.T, w *fake) {
		w.change(time.Second, func() {
			w.beats["coder-1"] = beat("coder-1", team.Running)
			w.task(kept("T-001", "coder-1"))
			w.task(reservedFor("T-002", "coder-1")) // given to it: that does not lapse
		})
		w.pass(reserveFor - 5*time.Second)
		w.want()
		w.pass(10 * time.Second)
		w.want(forsaken, "unreserve T-001")
	})
	for name, tt := range map[string]struct {
		by    team.AgentID // who has freed the task
		state team.MemberState
		why   string
		ends  bool
	}{
		"freed by the watchdog, and no process comes": {team.Watchdog, team.Lost, "no standby", true},
		"freed by the watchdog, and it is started":    {team.Watchdog, team.Created, "", false},
		"given back at a stop, and no process yet":    {"coder-1", team.Lost, "no standby", false},
		"parked":          {"coder-1", team.WaitingModel, "", true},
		"stopped by name": {"coder-1", team.Stopped, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			watch(t, func(t *testing.T, w *fake) {
				w.change(3*time.Second, func() {
					w.beats[team.Leader] = beat(team.Leader, team.Running)
					w.task(kept("T-001", tt.by))
					w.look.Members[1].State, w.look.Members[1].LastError = tt.state, tt.why
				})
				if got := slices.Contains(w.did, "unreserve T-001"); got != tt.ends {
					t.Errorf("the watchdog did %q; it ends: %v, want %v", w.did, got, tt.ends)
				}
			})
		})
	}
}

// While a task is reserved for a member that is to come back, the team is not idle.
func TestReservedForAbsentIsNotQuiet(t *testing.T) {
	l := quiet()
	l.Members[1].State = team.Lost
	l.Missed = map[team.AgentID]bool{"coder-1": true}
	delete(l.Beats, "coder-1")
	task := reservedFor("T-001", "coder-1")
	l.Snapshot = on(l.Snapshot, []team.Task{task})
	if why := l.Activity(); why != "" {
		t.Errorf("given to a member that is missed: %q", why)
	}
	task.Lapses = true
	l.Snapshot = on(l.Snapshot, []team.Task{task})
	if why := l.Activity(); why == "" {
		t.Error("the team counts as idle while a task is reserved for minutes only")
	}
}
