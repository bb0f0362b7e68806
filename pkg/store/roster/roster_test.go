package roster_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/roster"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

func open(t *testing.T) (*roster.Roster, *broker.Storage) {
	t.Helper()
	bt := brokertest.Team(t, "t")
	return roster.New(bt), bt
}

func create(t *testing.T, r *roster.Roster, m team.Member) team.Member {
	t.Helper()
	m, err := r.Create(t.Context(), m, roster.Limit{Team: 100})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func leave(t *testing.T, r *roster.Roster, m team.Member) {
	t.Helper()
	if err := r.Leave(t.Context(), m.AgentID, m.Incarnation, ""); err != nil {
		t.Fatal(err)
	}
}

func names(t *testing.T, r *roster.Roster) (all []team.AgentID) {
	t.Helper()
	members, err := r.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range members {
		all = append(all, m.AgentID)
	}
	return all
}

// Counting goes on behind the highest number that was ever given, stopped members
// included.
func TestNamesAreNotReused(t *testing.T) {
	r, _ := open(t)
	coder := team.Member{Role: "coder"}
	leave(t, r, create(t, r, coder))
	second := create(t, r, coder)
	create(t, r, team.Member{AgentID: "coder-9", Role: "coder"})
	create(t, r, team.Member{AgentID: "coder-x", Role: "coder"})
	create(t, r, team.Member{Role: "tester"})
	leave(t, r, second)
	create(t, r, coder)
	want := []team.AgentID{"coder-1", "coder-2", "coder-9", "coder-x", "tester-1", "coder-10"}
	if got := names(t, r); !slices.Equal(got, want) {
		t.Errorf("members are %v, want %v", got, want)
	}
}

func TestCreate(t *testing.T) {
	r, bt := open(t)
	if _, err := bt.Messages.Publish(t.Context(), subject.Broadcast("t", "leader"), "x", []byte("{}")); err != nil {
		t.Fatal(err)
	}
	for i, colour := range []string{"cyan", "yellow", "magenta"} {
		m := create(t, r, team.Member{Role: "coder", Prompt: "请写 🚀"})
		if m.Color != colour || m.State != team.Created || m.Incarnation != 1 || m.Revision == 0 || m.InboxFrom != 2 {
			t.Errorf("member %d is %+v", i+1, m)
		}
		if stored, err := r.Get(t.Context(), m.AgentID); err != nil || stored.Revision != m.Revision || stored.Prompt != m.Prompt {
			t.Errorf("stored is %+v, %v", stored, err)
		}
	}
	if _, err := r.Create(t.Context(), team.Member{AgentID: "coder-1", Role: "coder"}, roster.Limit{Team: 100}); team.CodeOf(err) != team.Conflict {
		t.Errorf("the name of a member that is there: %v, want conflict", err)
	}
	if _, err := r.Get(t.Context(), "nobody"); team.CodeOf(err) != team.NotFound {
		t.Errorf("unknown member: %v, want not_found", err)
	}
}

func TestStoppedComesBack(t *testing.T) {
	r, bt := open(t)
	first := create(t, r, team.Member{Role: "coder"})
	create(t, r, team.Member{Role: "coder"})
	leave(t, r, first)
	leave(t, r, first) // stopping a stopped member is no error
	if _, err := bt.Messages.Publish(t.Context(), subject.Broadcast("t", "leader"), "x", []byte("{}")); err != nil {
		t.Fatal(err)
	}
	back := create(t, r, team.Member{AgentID: first.AgentID, Role: "coder"})
	if back.Incarnation != 2 || back.State != team.Created || back.Color != first.Color || back.InboxFrom != first.InboxFrom || !back.JoinedAt.Equal(first.JoinedAt) {
		t.Errorf("came back as %+v, was %+v", back, first)
	}
	for what, err := range map[string]error{
		"check of the old incarnation": r.Check(t.Context(), first.AgentID, 1),
		"leave of the old incarnation": r.Leave(t.Context(), first.AgentID, 1, ""),
		"check of a stranger":          r.Check(t.Context(), "nobody", 1),
	} {
		if !errors.Is(err, team.ErrSuperseded) {
			t.Errorf("%s: %v, want team.ErrSuperseded", what, err)
		}
	}
	if err := r.Check(t.Context(), back.AgentID, 2); err != nil {
		t.Errorf("check of the present incarnation: %v", err)
	}
	leave(t, r, back)
	if err := r.Check(t.Context(), back.AgentID, 2); !errors.Is(err, team.ErrSuperseded) {
		t.Errorf("check after leaving: %v, want team.ErrSuperseded", err)
	}
}

// A name whose creation came to nothing is not given out as if it had never been: a
// process that took it unseen must find itself superseded.
func TestTakenBack(t *testing.T) {
	r, _ := open(t)
	first := create(t, r, team.Member{Role: "coder"})
	slow := first
	slow.State = team.Joined
	if _, err := r.Put(t.Context(), slow); err != nil {
		t.Fatal(err)
	}
	leave(t, r, first)
	if m := create(t, r, team.Member{Role: "coder"}); m.AgentID != "coder-2" {
		t.Errorf("the next name by counting is %s, want coder-2", m.AgentID)
	}
	if m := create(t, r, team.Member{AgentID: "coder-1", Role: "coder"}); m.Incarnation != 2 {
		t.Errorf("created again: %+v, want incarnation 2", m)
	}
	if err := r.Check(t.Context(), "coder-1", 1); !errors.Is(err, team.ErrSuperseded) {
		t.Errorf("the slow process: %v, want team.ErrSuperseded", err)
	}
}

// A name made of a role's is a valid one, however long the role's is.
func TestLongRole(t *testing.T) {
	r, _ := open(t)
	for _, end := range []string{"-1", "-2"} {
		m := create(t, r, team.Member{Role: strings.Repeat("r", 63)})
		if _, err := team.ParseAgentID(string(m.AgentID)); err != nil || !strings.HasSuffix(string(m.AgentID), end) {
			t.Errorf("named %s, %v", m.AgentID, err)
		}
	}
}

func TestLimit(t *testing.T) {
	r, _ := open(t)
	create(t, r, team.Member{AgentID: team.Leader, Role: "leader"})
	create(t, r, team.Member{AgentID: "ann", Backend: team.Person})
	leave(t, r, create(t, r, team.Member{Role: "coder"}))
	for range 2 { // leader, seat and stopped members count for nothing
		if _, err := r.Create(t.Context(), team.Member{Role: "coder"}, roster.Limit{Team: 2}); err != nil {
			t.Fatal(err)
		}
	}
	lost := create(t, r, team.Member{AgentID: "zoe", Role: "coder"})
	if err := r.Lose(t.Context(), lost.AgentID, lost.Incarnation, "killed"); err != nil {
		t.Fatal(err)
	}
	for respawn, room := range map[team.Respawn]bool{team.RespawnAlways: false, team.RespawnAsk: true, team.RespawnRelease: true} {
		all, err := r.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		record := team.Team{Roles: map[string]team.Role{"coder": {Name: "coder", MaxInstances: 3}}, Policies: team.Policies{Respawn: respawn}}
		if err := roster.LimitOf(record, "coder", 3).Check(all, "coder"); (err == nil) != room {
			t.Errorf("%s: beside a lost member: %v", respawn, err)
		}
	}
	leave(t, r, lost)
	before := names(t, r)
	for _, m := range []team.Member{{Role: "coder"}, {AgentID: "coder-1", Role: "coder"}} {
		if _, err := r.Create(t.Context(), m, roster.Limit{Team: 2}); team.CodeOf(err) != team.InvalidState {
			t.Errorf("a third: %v, want invalid_state", err)
		}
	}
	if got := names(t, r); !slices.Equal(got, before) {
		t.Errorf("refused creations left %v, before it was %v", got, before)
	}
}

// A role has a limit too, for those of it that live.
func TestLimitOfRole(t *testing.T) {
	r, bt := open(t)
	one := roster.LimitOf(team.Team{Roles: map[string]team.Role{"tester": {MaxInstances: 1}}}, "tester", 10)
	leave(t, r, create(t, r, team.Member{Role: "tester"}))
	first, err := r.Create(t.Context(), team.Member{Role: "tester"}, one)
	if err != nil {
		t.Fatal(err)
	}
	const want = "1 of role tester are there, the limit of the role is 1 (max_instances)"
	if _, err := r.Create(t.Context(), team.Member{Role: "tester"}, one); team.CodeOf(err) != team.InvalidState || err.Error() != want {
		t.Errorf("a second: %v, want %s", err, want)
	}
	create(t, r, team.Member{Role: "coder"})
	leave(t, r, first)
	var wg sync.WaitGroup
	var mu sync.Mutex
	made := 0
	for range 6 {
		wg.Go(func() {
			if _, err := roster.New(bt).Create(t.Context(), team.Member{Role: "tester"}, one); err == nil {
				mu.Lock()
				made++
				mu.Unlock()
			} else if team.CodeOf(err) != team.InvalidState {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if made > 1 {
		t.Errorf("%d were made together, the limit is 1", made)
	}
}

// The role's colour goes before that by the order of joining.
func TestColourOfRole(t *testing.T) {
	r, _ := open(t)
	record := team.Team{Roles: map[string]team.Role{"tester": {Color: "pink"}}}
	if m := create(t, r, record.Joining(team.Member{Role: "tester"})); m.Color != "pink" {
		t.Errorf("the tester is %s", m.Color)
	}
	if m := create(t, r, record.Joining(team.Member{Role: "coder"})); m.Color != team.Colour(1) {
		t.Errorf("the coder is %s", m.Color)
	}
}

// However many create at once, there are never more than the limit; and names are
// given out once.
func TestLimitRace(t *testing.T) {
	r, bt := open(t)
	const limit, racers = 3, 12
	var wg sync.WaitGroup
	var mu sync.Mutex
	got := map[team.AgentID]int{}
	for i := range racers {
		wg.Go(func() {
			m, err := roster.New(bt).Create(t.Context(), team.Member{Role: fmt.Sprintf("role%d", i%2)}, roster.Limit{Team: limit})
			switch {
			case err == nil:
				mu.Lock()
				got[m.AgentID]++
				mu.Unlock()
			case team.CodeOf(err) != team.InvalidState:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if len(got) > limit {
		t.Errorf("%d members were made, the limit is %d", len(got), limit)
	}
	for a, n := range got {
		if n != 1 {
			t.Errorf("%s was made %d times", a, n)
		}
	}
	all, err := r.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all { // one that gave way stays behind as a stopped one
		if (m.State == team.Created) != (got[m.AgentID] == 1) {
			t.Errorf("%s is %s; made were %v", m.AgentID, m.State, got)
		}
	}
}

func TestPutConflict(t *testing.T) {
	r, _ := open(t)
	m := create(t, r, team.Member{Role: "coder"})
	m.State = team.Joined
	var wg sync.WaitGroup
	won := make(chan int, 8)
	for i := range 8 { // as processes that all got the order
		wg.Go(func() {
			m := m
			m.PID = i
			if _, err := r.Put(t.Context(), m); err == nil {
				won <- i
			} else if team.CodeOf(err) != team.Conflict {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if len(won) != 1 {
		t.Errorf("%d took the record, want 1", len(won))
	}
}

// Before a new member of a role is made, one that has stopped before the goal comes back: the
// lowest number first. Who was stopped since, was given up, has another role or a name of its
// own does not.
func TestRecalled(t *testing.T) {
	r, _ := open(t)
	var all []team.Member
	for _, m := range []team.Member{{Role: "coder"}, {Role: "coder"}, {Role: "coder"}, {Role: "coder"}, {AgentID: "coder-0x", Role: "coder"}, {Role: "tester"}, {AgentID: "coder-5", Role: "tester"}} {
		all = append(all, create(t, r, m))
	}
	for _, i := range []int{2, 4, 5, 6} {
		leave(t, r, all[i])
	}
	crashed := all[0]
	crashed.PID = 7
	if _, err := r.Put(t.Context(), crashed); err != nil {
		t.Fatal(err)
	}
	if err := r.Leave(t.Context(), crashed.AgentID, 1, "it was lost 5 times in a row"); err != nil {
		t.Fatal(err)
	}
	last, err := r.Get(t.Context(), crashed.AgentID)
	if err != nil {
		t.Fatal(err)
	}
	goal := team.Team{Goal: "build it", Status: team.Active, GoalSeq: last.Revision + 1}
	leave(t, r, all[1]) // during the goal
	recalled := func(want team.AgentID, g team.Team) {
		t.Helper()
		if got, err := r.Recalled(t.Context(), g, "coder"); err != nil || got != want {
			t.Errorf("%s comes back, %v; want %q", got, err, want)
		}
	}
	recalled("coder-3", goal)
	recalled("", team.Team{})
	create(t, r, team.Member{AgentID: "coder-3", Role: "coder"})
	recalled("", goal)
	goal.GoalSeq += 100
	recalled("coder-2", goal)
}
