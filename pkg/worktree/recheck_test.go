package worktree_test

import (
	"errors"
	"testing"

	"agentteam/pkg/team"
)

// The team's policy decides whose checks work must pass that merges without a conflict and breaks them.
func TestRecheck(t *testing.T) {
	for policy, tt := range map[team.Recheck]struct{ same, other bool }{ // whether it is merged: work on the same file, and on another
		"":                  {false, true},
		team.RecheckTouched: {false, true},
		team.RecheckOwn:     {true, true},
		team.RecheckAll:     {false, false},
	} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			r := setUp(t)
			r.record.Policies.Recheck = policy
			m := r.mate("coder-1", 1)
			m.merges()
			_, err := m.completes(m.does(r.add("First", "grep -qx 17 numbers.txt && test ! -e new.txt"), "sed -i 's/^3$/three/' numbers.txt"))
			r.must(err)
			for script, merged := range map[string]bool{"sed -i 's/^17$/seventeen/' numbers.txt": tt.same, "echo new > new.txt": tt.other} {
				if _, err := m.completes(m.does(r.add("Next", ""), script)); (err == nil) != merged || err != nil && !errors.Is(err, team.InvalidState) {
					t.Errorf("%s: %v, want it merged: %v", script, err, merged)
				}
			}
		})
	}
}
