package client_test

import (
	"testing"

	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

// A leader that had begun its term just before the team is stopped, and joins while the others
// leave, is seen off as they are: the team can be deleted then.
func TestStopOfALeaderThatJoins(t *testing.T) {
	r := newRig(t)
	r.active(t)
	a := r.join(t).AgentID
	r.end(t, "done") // so that the next write is that which stops the member
	conn := brokertest.Connect(t, r.client.Server())
	brokertest.Intercept(t, conn, "t", subject.KeyMember(a), func(_ int, w brokertest.Write) ([]byte, bool) {
		if _, err := r.roster.Put(t.Context(), team.Member{AgentID: team.Leader, Role: "leader", State: team.Joined, Incarnation: 1}); err != nil {
			t.Error(err)
		}
		return w.Store(t, conn), false
	})
	ok(t, r.StopTeam(t.Context(), 0))
	all, err := r.roster.List(t.Context())
	for _, m := range all {
		if m.State != team.Stopped {
			t.Errorf("%s is %s", m.AgentID, m.State)
		}
	}
	if len(all) != 2 || err != nil {
		t.Errorf("the team had %d members, %v", len(all), err)
	}
	if _, err := r.client.DeleteTeam(t.Context(), "t", false, 0); err != nil {
		t.Error(err)
	}
}

// Who stops a team for which another goal is set meanwhile gets to know that.
func TestStopMeetsAnotherGoal(t *testing.T) {
	r := newRig(t)
	r.active(t)
	a := r.join(t).AgentID
	r.end(t, "done")
	conn := brokertest.Connect(t, r.client.Server())
	brokertest.Intercept(t, conn, "t", subject.KeyMember(a), func(_ int, w brokertest.Write) ([]byte, bool) {
		if _, err := r.Goals().Start(t.Context(), "the next", ""); err != nil {
			t.Error(err)
		}
		return w.Store(t, conn), false
	})
	wantCode(t, "a stop", r.StopTeam(t.Context(), 0), team.Conflict)
}
