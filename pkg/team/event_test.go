package team_test

import (
	"errors"
	"strings"
	"testing"

	"agentteam/pkg/team"
)

func TestParseEventType(t *testing.T) {
	for _, typ := range team.EventTypes() {
		for _, s := range []string{string(typ), strings.ToLower(string(typ))} {
			if got, err := team.ParseEventType(s); got != typ || err != nil {
				t.Errorf("ParseEventType(%q) = %q, %v", s, got, err)
			}
		}
	}
	if _, err := team.ParseEventType("TASK_EATEN"); !errors.Is(err, team.InvalidArgument) || !strings.Contains(team.HintOf(err), "TASK_CLAIMED") {
		t.Errorf("an unknown type is %v (%s)", err, team.HintOf(err))
	}
}
