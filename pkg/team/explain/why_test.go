package explain_test

import (
	"testing"

	"agentteam/pkg/team"
	"agentteam/pkg/team/explain"
)

// Why a pending task has no holder follows from the board and from how the members stand.
func TestWhy(t *testing.T) {
	status := func(id team.TaskID) team.TaskStatus {
		return map[team.TaskID]team.TaskStatus{"T-001": team.InProgress, "T-002": team.Cancelled, "T-003": team.Failed}[id]
	}
	pending := func(role string, waits ...team.TaskID) team.TaskView {
		return team.Task{ID: "T-009", Status: team.Pending, Role: role}.View(waits, nil)
	}
	reserved := func(name team.AgentID) team.TaskView {
		return team.Task{ID: "T-009", Status: team.Pending, Role: "nobody", ReservedFor: name}.View(nil, nil)
	}
	standing := func(name team.AgentID, role string, state team.MemberState) explain.Standing {
		return explain.Standing{Member: team.Member{AgentID: name, Role: role, State: team.Joined}, State: state}
	}
	busy, parked := standing("coder-1", "coder", team.Running), standing("coder-2", "coder", team.WaitingModel)
	busy.Task, parked.Member.State = "T-004", team.WaitingModel
	seat := standing("alice", "coder", team.Joined)
	seat.Member.Backend = team.Person
	lead := standing(team.Leader, "leader", team.Idle)
	looker := standing("explorer-1", "explorer", team.Idle)
	back := func(a team.AgentID) team.TaskView {
		return team.Task{ID: "T-009", Status: team.Pending, Declined: []team.Declined{{By: a}}}.View(nil, nil)
	}
	idle, tester := standing("coder-3", "coder", team.Idle), standing("tester-1", "tester", team.WaitingUser)
	at := func(members ...explain.Standing) explain.Situation {
		return explain.Situation{Status: team.Active, Led: true, Roles: map[string]team.Role{"explorer": {Name: "explorer", Tools: []string{"read_file"}}}, Members: append(members, lead, seat, standing("coder-0", "coder", team.Stopped))}
	}
	orphan := at(busy)
	orphan.Led, orphan.Members = false, nil
	down := at(idle)
	down.Down = true
	ended := at(idle)
	ended.Status = team.TeamStopped
	for name, tt := range map[string]struct {
		s    explain.Situation
		v    team.TaskView
		want string
	}{
		"not pending":                 {at(), team.Task{Status: team.Completed}.View(nil, nil), ""},
		"about to be taken":           {at(busy, idle), pending(""), ""},
		"blocked":                     {at(idle), pending("", "T-001"), "T-001"},
		"blocked for good":            {at(idle), pending("", "T-001", "T-002", "T-003", "T-008"), "T-001,T-002 (cancelled),T-003 (failed),T-008 (unknown)"},
		"reserved, about to be taken": {at(busy, idle), reserved("coder-3"), ""},
		"reserved for a busy one":     {at(busy, idle), reserved("coder-1"), "reserved for coder-1, which is busy with T-004"},
		"reserved for one who waits":  {at(tester, idle), reserved("tester-1"), "reserved for tester-1, which waits for a person"},
		"reserved for a lost one":     {at(standing("coder-1", "coder", team.Lost)), reserved("coder-1"), "reserved for coder-1, which is lost, to be brought back"},
		"reserved for who has left":   {at(idle), reserved("coder-0"), "reserved for coder-0, which is stopped"},
		"reserved for a person":       {at(idle), reserved("alice"), "reserved for alice, a person"},
		"reserved for the leader":     {at(idle), reserved(team.Leader), "reserved for the leader"},
		"reserved for nobody":         {at(idle), reserved("bob"), "reserved for bob, who is no member"},
		"no teammate":                 {at(), pending(""), "there is no teammate"},
		"a role that nobody has":      {at(idle), pending("tester"), "nobody has the role tester"},
		"nobody to spawn one":         {orphan, pending("tester"), "nobody has the role tester, and no leader process that could spawn one"},
		"the only one is at work":     {at(busy, tester), pending("coder"), "coder-1: busy with T-004"},
		"the only one waits":          {at(busy, tester), pending("tester"), "tester-1: waits for a person"},
		"the only one is lost":        {at(standing("coder-1", "coder", team.Lost)), pending(""), "coder-1: lost, to be brought back"},
		"the only one is parked":      {at(parked), pending(""), "coder-2: parked, no usable answer from its model"},
		"all are at work":             {at(busy, busy), pending(""), "both teammates: busy"},
		"each for another reason":     {at(parked, busy, busy, tester), pending(""), "4 teammates: 2 busy, 1 parked, no usable answer from its model, 1 waits for a person"},
		"all of the role":             {at(parked, busy, tester), pending("coder"), "2 of role coder: 1 parked, no usable answer from its model, 1 busy"},
		"one is started":              {at(standing("coder-1", "coder", team.Created)), pending(""), "coder-1: not started yet"},
		"one is stalled":              {at(standing("coder-1", "coder", team.Stalled)), pending(""), "coder-1: stalled"},
		"one awaits an answer":        {at(standing("coder-1", "coder", team.WaitingAnswer)), pending(""), "coder-1: waits for an answer"},
		"one has no model":            {at(standing("coder-1", "coder", team.WaitingModel)), pending(""), "coder-1: waits for its model"},
		"an idle one has put it back": {at(busy, idle), back("coder-3"), "2 teammates: 1 busy, 1 put it back, so that others take it"},
		"another idle one has not":    {at(idle, standing("coder-4", "coder", team.Idle)), back("coder-3"), ""},
		"an idle one only looks":      {at(busy, looker), pending(""), "coder-1: busy with T-004"},
		"there is who only looks":     {at(parked, looker), pending(""), ""},
		"the team has been stopped":   {ended, pending(""), "the team is stopped"},
		"no process runs":             {down, pending(""), "the cluster is down"},
		"none runs, it is blocked":    {down, pending("", "T-001"), "T-001"},
	} {
		if got := tt.s.Why(tt.v, status); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// A third that could take a task now is idle, holds none, suits it, has not put it back, and is not left out.
func TestIdle(t *testing.T) {
	at := func(a team.AgentID, role string, state team.MemberState, task team.TaskID) explain.Standing {
		return explain.Standing{Member: team.Member{AgentID: a, Role: role, State: team.Joined, Backend: team.Pool}, State: state, Task: task}
	}
	task := team.Task{ID: "T-001", Role: "coder", Declined: []team.Declined{{By: "coder-5"}}}
	for name, tt := range map[string]struct {
		member explain.Standing
		want   bool
	}{
		"idle":         {at("coder-3", "coder", team.Idle, ""), true},
		"left out":     {at("coder-1", "coder", team.Idle, ""), false},
		"at work":      {at("coder-3", "coder", team.Running, "T-002"), false},
		"holds one":    {at("coder-3", "coder", team.Idle, "T-002"), false},
		"another role": {at("tester-1", "tester", team.Idle, ""), false},
		"put it back":  {at("coder-5", "coder", team.Idle, ""), false},
		"the leader":   {at(team.Leader, "coder", team.Idle, ""), false},
	} {
		s := explain.Situation{Members: []explain.Standing{tt.member}, Roles: map[string]team.Role{"coder": {Name: "coder"}, "tester": {Name: "tester"}}}
		if got := s.Idle(task, "coder-1", "coder-2"); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
