package runtime

import (
	"slices"
	"testing"

	"agentteam/pkg/store/board"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/roster"
	"agentteam/pkg/team"
)

// Members without work stay, as many as their role keeps ready while there is a goal: else others would be
// spawned in their place, which leave in turn.
func TestReadyMembersStay(t *testing.T) {
	t.Parallel()
	bt := brokertest.Team(t, "t")
	r := roster.New(bt)
	for _, m := range []team.Member{{AgentID: "coder-1", Role: "coder"}, {AgentID: "coder-2", Role: "coder"}, {AgentID: "tester-1", Role: "tester"}} {
		m.State, m.Incarnation = team.Joined, 1
		if _, err := r.Put(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	for name, tt := range map[string]struct {
		goal  string
		ready int
		want  []team.AgentID // that stay
	}{
		"as many as are kept ready": {"a goal", 2, []team.AgentID{"coder-1", "coder-2"}},
		"fewer":                     {"a goal", 3, []team.AgentID{"coder-1", "coder-2"}},
		"more":                      {"a goal", 1, []team.AgentID{"coder-1"}},
		"none is kept ready":        {"a goal", 0, nil},
		"without a goal":            {"", 2, nil},
	} {
		var stay []team.AgentID
		for _, a := range []team.AgentID{"coder-1", "coder-2"} {
			m := &member{Options: Options{Team: bt, Member: team.Member{AgentID: a, Role: "coder"}}, roster: r, board: board.New(bt.Bucket, board.Options{})}
			m.newest.Store(&team.Team{ID: "t", Status: team.Active, Goal: tt.goal, Roles: map[string]team.Role{"coder": {Name: "coder", Ready: tt.ready}}})
			if (surroundings{member: m}).Expected(t.Context()) {
				stay = append(stay, a)
			}
		}
		if !slices.Equal(stay, tt.want) {
			t.Errorf("%s: %v stay, want %v", name, stay, tt.want)
		}
	}
}
