package teamtest

import (
	"context"
	"errors"
	"testing"

	"agentteam/pkg/client"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/team"
)

// Set sets t a goal, which must become the team's.
func Set(t testing.TB, tm *client.Team, goal string) *client.Goal {
	t.Helper()
	g, err := tm.Goals().Start(t.Context(), goal, "")
	if err != nil {
		t.Fatal(err)
	}
	if !g.Started() {
		t.Fatalf("team %s is at work on another goal", tm.ID())
	}
	return g
}

// patience ends a test that waits for what will not come: long, since it is
// nothing that a test measures.
const patience = brokertest.Longest

// Wait waits until the goal has ended and returns the team's record.
func Wait(t testing.TB, g *client.Goal) team.Team {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	record, err := g.Wait(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return record
}

// Tasks returns the team's board.
func Tasks(t testing.TB, tm *client.Team) []team.TaskView {
	t.Helper()
	tasks, err := tm.Board().Tasks(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return tasks
}

// Until returns the first entry of the team's feed, from its beginning on, for
// which ok is true; it waits for one that is yet to come.
func Until(t testing.TB, tm *client.Team, ok func(client.Entry) bool) (found client.Entry) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	stop := errors.New("found")
	err := tm.Feed(ctx, client.FeedOptions{Follow: true}, func(e client.Entry) error {
		if ok(e) {
			found = e
			return stop
		}
		return nil
	})
	if !errors.Is(err, stop) {
		t.Fatalf("what was waited for is not in the feed of %s (%v)", tm.ID(), err)
	}
	return found
}
