package config

import (
	"cmp"
	"slices"
	"strings"

	"agentteam/pkg/team"
)

// switches are the variables that turn agent teams off, here and in Claude Code.
var switches = []string{"CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS", "ENABLE_AGENT_TEAMS"}

var (
	on  = []string{"", "1", "true", "yes", "on"}
	off = []string{"0", "false", "no", "off"}
)

// TeamsAllowed returns nil unless an environment variable turns teams off; if two contradict each other, off holds.
// Errors: InvalidState, with the variables to unset; InvalidArgument for a value that is neither on nor off.
func TeamsAllowed(env func(name string) (string, bool)) error {
	var unclear error
	var set []string
	for _, name := range switches {
		value, _ := env(name)
		switch word := strings.ToLower(strings.TrimSpace(value)); {
		case slices.Contains(off, word):
			set = append(set, name)
		case !slices.Contains(on, word):
			unclear = cmp.Or(unclear, error(team.Errorf(team.InvalidArgument, "%s is %q", name, team.Clean(value, 40)).WithHint("set it to 1 or 0, or unset it")))
		}
	}
	if set != nil {
		return team.Errorf(team.InvalidState, "agent teams are turned off by %s in the environment", strings.Join(set, " and ")).
			WithHint("unset %s", strings.Join(set, " "))
	}
	return unclear
}
