package index

import (
	"testing"

	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

// A beat of another incarnation than the member's record changes nothing, whenever it comes. One
// that came before its record counts once that is there.
func TestForeignBeats(t *testing.T) {
	beat := func(incarnation, n uint64, s team.MemberState) team.Heartbeat {
		return team.Heartbeat{AgentID: "coder-1", Incarnation: incarnation, N: n, Role: "coder", State: s}
	}
	type step any // a beat, or the incarnation of a record
	for name, tt := range map[string]struct {
		steps []step
		state team.MemberState // of the last beat that counts; "" if none does
		taken int              // beats that were news
		late  int              // beats that were news with their record
	}{
		"its own":                          {[]step{1, beat(1, 1, team.Idle)}, team.Idle, 1, 0},
		"a forged one, then its own":       {[]step{1, beat(1, 1, team.Running), beat(99, 1, team.Running), beat(1, 2, team.Idle)}, team.Idle, 2, 0},
		"before the record, forged":        {[]step{beat(99, 1, team.Running), 1, beat(1, 1, team.Idle)}, team.Idle, 2, 0},
		"of its predecessor":               {[]step{2, beat(2, 1, team.Running), beat(1, 7, team.Idle)}, team.Running, 1, 0},
		"early":                            {[]step{1, beat(1, 1, team.Running), beat(2, 1, team.Idle), 2}, team.Idle, 1, 1},
		"early, and a later one of it":     {[]step{1, beat(2, 1, team.Running), beat(2, 2, team.Idle), beat(2, 1, team.Running), 2}, team.Idle, 0, 1},
		"early, between forged ones":       {[]step{1, beat(99, 1, team.Running), beat(2, 1, team.Idle), beat(98, 2, team.Running), 2}, team.Idle, 0, 1},
		"early, before any record of it":   {[]step{beat(2, 1, team.Idle), 1, 2}, team.Idle, 1, 1},
		"too early: its record never came": {[]step{1, beat(2, 1, team.Running), 3, beat(3, 1, team.Idle)}, team.Idle, 1, 0},
		"of who has been replaced":         {[]step{1, beat(1, 1, team.Idle), 2}, "", 1, 0},
		"the next one after a forged one":  {[]step{1, beat(99, 1, team.Running), 2, beat(2, 1, team.Idle)}, team.Idle, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFeed(t)
			taken := 0
			for _, s := range tt.steps {
				switch s := s.(type) {
				case team.Heartbeat:
					if f.hear(s, start) {
						taken++
					}
				case int:
					f.put(subject.KeyMember("coder-1"), team.Member{V: team.Protocol, AgentID: "coder-1", Role: "coder", State: team.Joined, Incarnation: uint64(s)}, true)
				}
			}
			var state team.MemberState
			if a := f.agents["coder-1"]; a != nil {
				state = a.heartbeat.State
			}
			if state != tt.state || taken != tt.taken || len(f.heard) != tt.late {
				t.Errorf("it is %q, %d beats were news, %d with their record; want %q, %d, %d", state, taken, len(f.heard), tt.state, tt.taken, tt.late)
			}
			f.task(1)
			want := ""
			if tt.state == team.Idle {
				want = "T-001:coder-1"
			}
			if got := show(f.match(start)); got != want {
				t.Errorf("offered are %q, want %q", got, want)
			}
		})
	}
}
