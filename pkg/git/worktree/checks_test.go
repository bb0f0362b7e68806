package worktree_test

import (
	"errors"
	"strings"
	"testing"

	"agentteam/pkg/team"
)

// Work that merges without a conflict must pass the team's check, and the checks of the tasks whose files it changes.
func TestChecksOfOthers(t *testing.T) {
	for check, tt := range map[string]struct{ same, other bool }{ // whether it is merged: work on the same file, and on another
		"":                  {false, true},
		"test ! -e new.txt": {false, false},
	} {
		t.Run(check, func(t *testing.T) {
			t.Parallel()
			r := setUp(t)
			m := r.mate("coder-1", 1)
			m.merges()
			_, err := m.completes(m.does(r.add("First", "grep -qx 17 numbers.txt && test ! -e new.txt"), "sed -i 's/^3$/three/' numbers.txt"))
			r.must(err)
			r.record.Policies.Check = check
			for script, merged := range map[string]bool{"sed -i 's/^17$/seventeen/' numbers.txt": tt.same, "echo new > new.txt": tt.other} {
				if _, err := m.completes(m.does(r.add("Next", ""), script)); (err == nil) != merged || err != nil && !errors.Is(err, team.InvalidState) {
					t.Errorf("%s: %v, want it merged: %v", script, err, merged)
				}
			}
		})
	}
}

// A check of an earlier task whose record cannot be read is left out, and the leader is notified of which: what merges meanwhile may break it.
func TestChecksOfUnreadableTasks(t *testing.T) {
	r := setUp(t)
	notices := r.sends()
	m := r.mate("coder-1", 1)
	m.merges()
	for _, check := range []string{"true", "grep -qx 17 numbers.txt"} {
		_, err := m.completes(m.does(r.add("Earlier", check), "echo >> numbers.txt"))
		r.must(err)
	}
	r.damage("T-001")
	r.damage("T-002")
	done, err := m.completes(m.does(r.add("Next", ""), "sed -i 's/^17$/seventeen/' numbers.txt"))
	if err != nil || done.Status != team.Completed {
		t.Errorf("it is %s, %v", done.Status, err)
	}
	for _, id := range []string{"T-001", "T-002"} {
		if n := r.next(notices); n.to != team.Leader || n.id != "unchecked-T-003-1-"+id ||
			!strings.Contains(n.text, "The work of coder-1 on T-003 (Next) is merged without the check of "+id+", if that has one, whose files it changes: record") {
			t.Errorf("%s reads as %s: %s", n.to, n.id, n.text)
		}
	}
}
