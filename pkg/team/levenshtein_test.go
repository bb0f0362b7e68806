package team_test

import (
	"testing"

	"agentteam/pkg/team"
)

// What was mistyped is known again; what is something else is not guessed at.
func TestSimilar(t *testing.T) {
	names := []string{"coder", "coder-1", "coder-2", "reviewer", "ann", "in_progress", "completed"}
	for word, want := range map[string]string{
		"codr": "coder", "coedr": "coder", "Coder-1": "coder-1", "coder1": "coder", "reviwer": "reviewer", "rev": "reviewer", "anne": "ann",
		"in-progress": "in_progress", "complete": "completed", "bob": "", "an": "", "x": "", "": "", "tester": "",
	} {
		if got := team.Similar(word, names); got != want {
			t.Errorf("Similar(%q) = %q, want %q", word, got, want)
		}
	}
}
