package client_test

import (
	"errors"
	"slices"
	"testing"

	"agentteam/pkg/client"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/team"
)

func TestSessions(t *testing.T) {
	ctx := t.Context()
	c, err := client.Connect(ctx, client.Options{URL: brokertest.Server(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.OpenSession(ctx, "ann", "1"); !errors.Is(err, team.NotFound) {
		t.Errorf("a session that nobody made: %v", err)
	}
	for _, n := range [][2]string{{"ann", "1"}, {"ann", "zwei 🚀"}, {"ann", ""}, {"", "1"}, {"an", "n1"}, {"ann", "1"}} {
		made, err := c.MakeSession(ctx, n[0], n[1], client.NewTeam{})
		if err != nil {
			t.Fatalf("make %q: %v", n, err)
		}
		opened, err := c.OpenSession(ctx, n[0], n[1])
		if err != nil || opened.ID() != made.ID() {
			t.Errorf("open %q: %v", n, err)
		}
		if _, err := team.ParseTeamID(string(made.ID())); err != nil {
			t.Error(err)
		}
	}
	got, err := c.Sessions(ctx, "ann")
	slices.Sort(got)
	if err != nil || !slices.Equal(got, []string{"", "1", "zwei 🚀"}) {
		t.Errorf("sessions of ann are %q (%v)", got, err)
	}
	if none, err := c.Sessions(ctx, "bob"); err != nil || none == nil || len(none) > 0 {
		t.Errorf("sessions of bob are %q (%v)", none, err)
	}
	if _, err := c.MakeSession(ctx, "a\x00b", "1", client.NewTeam{}); !errors.Is(err, team.InvalidArgument) {
		t.Errorf("a name that no record may hold: %v", err)
	}

	// A team of that name that is no session.
	if _, err := c.AddTeam(ctx, client.NewTeam{ID: team.SessionTeam("bob", "1")}, team.Choices{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.OpenSession(ctx, "bob", "1"); !errors.Is(err, team.NotFound) {
		t.Errorf("open another's team: %v", err)
	}
	if _, err := c.MakeSession(ctx, "bob", "1", client.NewTeam{}); !errors.Is(err, team.Conflict) {
		t.Errorf("make over another's team: %v", err)
	}
	if none, err := c.Sessions(ctx, "bob"); err != nil || len(none) > 0 {
		t.Errorf("sessions of bob are %q (%v)", none, err)
	}
}
