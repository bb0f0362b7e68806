package index

import (
	"testing"

	"agentteam/pkg/team"
)

// A member whose role takes nothing unassigned is offered only what is reserved for it, and others
// need not wait for it.
func TestOffersNothingUnassigned(t *testing.T) {
	reserved := func(t *team.Task) { t.ReservedFor = "tester-1" }
	declined := func(t *team.Task) { t.Declined = []team.Declined{{By: "coder-1"}} }
	for name, tt := range map[string]struct {
		tasks []team.Task
		beats []team.Heartbeat
		want  string
	}{
		"nothing for all":        {[]team.Task{task(1)}, []team.Heartbeat{idle("tester-1", "tester")}, ""},
		"nothing for its role":   {[]team.Task{task(1, role("tester"))}, []team.Heartbeat{idle("tester-1", "tester")}, ""},
		"what is reserved":       {[]team.Task{task(1, reserved), task(2)}, []team.Heartbeat{idle("tester-1", "tester"), idle("coder-1", "coder")}, "T-001:tester-1 T-002:coder-1"},
		"others are not held up": {[]team.Task{task(1)}, []team.Heartbeat{idle("tester-1", "tester"), idle("coder-1", "coder")}, "T-001:coder-1"},
		"not what one put back":  {[]team.Task{task(1, declined)}, []team.Heartbeat{idle("tester-1", "tester")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newState()
			s.team.Roles = map[string]team.Role{"tester": {AutoClaim: new(bool)}}
			s.waits = map[string]bool{"tester": true}
			on(&s, tt.tasks...)
			for _, b := range tt.beats {
				s.hear(b, start)
			}
			if got := show(s.match(start)); got != tt.want {
				t.Errorf("offers %q, want %q", got, tt.want)
			}
		})
	}
}
