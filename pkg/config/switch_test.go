package config_test

import (
	"errors"
	"strings"
	"testing"

	"agentteam/pkg/config"
	"agentteam/pkg/team"
)

func TestTeamsAllowed(t *testing.T) {
	for _, tt := range []struct {
		claude, enable string
		code           error
		says           string
	}{
		{"", "", nil, ""}, {"1", "true", nil, ""}, {" ON ", "", nil, ""},
		{"0", "", team.InvalidState, "unset CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS"},
		{"1", "0", team.InvalidState, "unset ENABLE_AGENT_TEAMS"}, // 0 wins
		{"false", "1", team.InvalidState, "unset CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS"},
		{"0", "no", team.InvalidState, "unset CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS ENABLE_AGENT_TEAMS"},
		{"maybe", "0", team.InvalidState, "unset ENABLE_AGENT_TEAMS"},
		{"", "2", team.InvalidArgument, `ENABLE_AGENT_TEAMS is "2"`},
	} {
		err := config.TeamsAllowed(func(name string) (string, bool) {
			v := map[string]string{"CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS": tt.claude, "ENABLE_AGENT_TEAMS": tt.enable}[name]
			return v, v != ""
		})
		if !errors.Is(err, tt.code) || err != nil && (!strings.Contains(team.Line(err), tt.says) || strings.Contains(team.Line(err), "\n")) {
			t.Errorf("%q and %q: %v, want %v with %q", tt.claude, tt.enable, err, tt.code, tt.says)
		}
	}
}
