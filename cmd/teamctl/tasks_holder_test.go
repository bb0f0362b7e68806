package main

import (
	"testing"

	"agentteam/pkg/team"
)

// What a holder says that it does stands beside its name while it does it.
func TestHolder(t *testing.T) {
	metadata := []byte(`{"activeForm":"Writing"}`)
	for _, tt := range []struct {
		task team.Task
		want string
	}{
		{team.Task{Status: team.InProgress, Assignee: "a", Metadata: metadata}, "a (Writing)"},
		{team.Task{Status: team.InProgress, Assignee: "a"}, "a"},
		{team.Task{Status: team.Completed, Assignee: "a", Metadata: metadata}, "a"},
		{team.Task{Status: team.Pending, Assignee: "a", Metadata: metadata}, ""},
	} {
		if got := holder(tt.task.View(nil, nil)); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.task.Status, got, tt.want)
		}
	}
}
