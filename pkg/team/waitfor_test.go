package team_test

import (
	"testing"

	"agentteam/pkg/team"
)

func TestWaitsFor(t *testing.T) {
	for want, beats := range map[team.WaitFor][]team.Heartbeat{
		"":                 {{State: team.Running, Tool: "bash"}, {State: team.Idle}, {}},
		team.ForPerson:     {{State: team.WaitingUser, Awaits: "ann"}},
		team.ForAnswer:     {{State: team.WaitingAnswer, Awaits: "coder-2"}},
		team.ForJob:        {{State: team.WaitingAnswer, About: "coder-1.a1b2c3d"}},
		team.ForPlan:       {{State: team.WaitingApproval, Awaits: team.Leader}},
		team.ForModel:      {{State: team.Running, Trouble: "429"}, {State: team.WaitingModel, RetryAt: &at}, {State: team.WaitingRepair}},
		team.ForMerge:      nil, // which only the line's records show
		team.ForPermission: nil,
	} {
		for _, b := range beats {
			if got := b.WaitsFor(); got != want {
				t.Errorf("%+v waits for %q, want %q", b, got, want)
			}
		}
	}
}
