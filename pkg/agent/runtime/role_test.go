package runtime

import (
	"strings"
	"testing"

	"agentteam/pkg/team"
	"agentteam/pkg/tool/command"
	"agentteam/pkg/tool/workspace"
)

// The limit of turns that a role states is that of its member.
func TestTurnsOfRole(t *testing.T) {
	dir := t.TempDir()
	r := newRigAs(t, dir, workspace.Shared{Dir: dir, Runner: command.Plain{}}, team.Role{Name: "coder", MaxTurns: 2})
	r.assign(r.add("first")[0])
	r.model.next(t)
	r.model.calls("glob", `{"pattern":"*"}`)
	if heard := r.model.next(t); !strings.Contains(heard, "You have had 1 of 2 turns in this run.") {
		t.Errorf("after a turn it is given\n%s", heard)
	}
}
