package explain

import (
	"slices"
	"strings"
	"testing"

	"agentteam/pkg/team"
)

func TestOverview(t *testing.T) {
	for want, o := range map[string]Overview{
		"Teammates: none. Open tasks: none.":                                                                            {},
		"Teammates: 1 idle, 12 running. Open tasks: 2 in progress, 1 claimable, 3 blocked.":                             {Members: map[team.MemberState]int{team.Running: 12, team.Idle: 1, team.Lost: 0}, Running: 2, Claimable: 1, Blocked: 3},
		"Teammates: 1 waiting_user. Open tasks: none. Also: 2 failed tasks, 1 waiting for a person, 4 unread messages.": {Members: map[team.MemberState]int{team.WaitingUser: 1}, Failed: 2, Questions: 1, Unread: 4},
		"Teammates: none. Open tasks: none. Of earlier goals, to be spawned again by name: anna (coder, last did T-003: Build it), tester-1 (tester).": {
			Away: []Away{{"anna", "coder", team.Task{ID: "T-003", Title: "Build it"}}, {"tester-1", "tester", team.Task{}}}},
		"Teammates: none. Open tasks: none. Of earlier goals, to be spawned again by name: " + strings.Repeat("a (coder), ", 7) + "a (coder) and 2 more.": {
			Away: slices.Repeat([]Away{{"a", "coder", team.Task{}}}, 10)},
	} {
		if got := o.String(); got != want {
			t.Errorf("%+v:\n%s\nwant\n%s", o, got, want)
		}
	}
}
