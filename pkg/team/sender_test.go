package team_test

import (
	"slices"
	"strings"
	"testing"

	"agentteam/pkg/team"
)

// Who may send which type, and no other.
func TestMaySend(t *testing.T) {
	may := map[team.Sender][]team.MessageType{
		team.FromLeader:   {"message", "broadcast", "shutdown_request", "plan_approval_response"},
		team.FromTeammate: {"message", "broadcast", "shutdown_response"},
		team.FromPerson:   {"message", "broadcast", "user_message", "shutdown_request", "plan_approval_response"},
		team.FromRuntime:  {"shutdown_response", "plan_approval_request", "task_assigned", "idle_notification", "watchdog", "task_notification"},
	}
	for sender, want := range may {
		var got []team.MessageType
		for _, kind := range team.MessageTypes() {
			switch err := sender.MaySend(kind); {
			case err == nil:
				got = append(got, kind)
			case team.CodeOf(err) != team.PermissionDenied || !strings.Contains(team.HintOf(err), string(want[0])):
				t.Errorf("%s, %s: %v, hint %q", sender, kind, err, team.HintOf(err))
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s may send %v, want %v", sender, got, want)
		}
		if err := sender.MaySend("shut\x1bdown"); team.CodeOf(err) != team.InvalidArgument || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%s, a type that is none: %v", sender, err)
		}
	}
}
