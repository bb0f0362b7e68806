package membership

import (
	"testing"

	"agentteam/pkg/broker/brokertest"
	"agentteam/pkg/roster"
	"agentteam/pkg/team"
)

// Who waits for a person learns at once that the seat is no more, also if that was before.
func TestLeft(t *testing.T) {
	t.Parallel()
	bt := brokertest.Team(t, "t")
	r := roster.New(bt)
	ann, err := r.Put(t.Context(), team.Member{AgentID: "ann", State: team.Joined, Backend: team.Person, Incarnation: 1})
	if err != nil {
		t.Fatal(err)
	}
	m := &member{Options: Options{Team: bt}, roster: r}
	left := make(chan error, 1)
	go func() { left <- m.left(t.Context(), "ann") }()
	if _, err = r.Put(t.Context(), ann); err != nil { // she still sits
		t.Fatal(err)
	}
	if err := r.Leave(t.Context(), "ann", 1, ""); err != nil {
		t.Fatal(err)
	}
	if err := brokertest.Receive(t, "she has left", left); err != nil {
		t.Errorf("left = %v", err)
	}
	if err := m.left(t.Context(), "ann"); err != nil {
		t.Errorf("left before = %v", err)
	}
}
