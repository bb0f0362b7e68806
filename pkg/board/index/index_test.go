package index_test

import (
	"context"
	"testing"

	"agentteam/pkg/board"
	"agentteam/pkg/board/index"
	"agentteam/pkg/broker/brokertest"
	"agentteam/pkg/team"
)

// On a real feed: a task is offered with the revision at which it can be claimed,
// and its completion makes the next one claimable.
func TestOffers(t *testing.T) {
	bt := brokertest.Team(t, "t")
	ctx, cancel := context.WithCancel(t.Context())
	b := board.New(bt, board.Options{})
	first, err := b.Create(ctx, "leader", team.NewTask{Title: "first"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Create(ctx, "leader", team.NewTask{Title: "second", Dependencies: []team.TaskID{first[0].ID}}); err != nil {
		t.Fatal(err)
	}
	type sent struct {
		to team.AgentID
		o  index.Offer
	}
	offers := make(chan sent, 10)
	x := index.New(index.Options{Team: bt, Send: func(to team.AgentID, o index.Offer) error { offers <- sent{to, o}; return nil }})
	done := make(chan error, 1)
	go func() { done <- x.Run(ctx) }()

	beat := team.Beat{AgentID: "coder-1", Incarnation: 1, State: team.Idle}
	hand := board.NewHand(ctx, b, team.Holder{Agent: "coder-1", Incarnation: 1}, nil)
	for _, title := range []string{"first", "second"} {
		beat.N++
		x.Hear(beat)
		got := <-offers
		if got.to != "coder-1" || got.o.Task.Title != title || got.o.Revision == 0 {
			t.Fatalf("offered %+v, want %s to coder-1", got, title)
		}
		got.o.Task.Revision = got.o.Revision
		if _, err := hand.Take(ctx, got.o.Task); err != nil {
			t.Fatalf("the offered task cannot be claimed: %v", err)
		}
		if _, err := hand.Complete(ctx, got.o.Task.ID, "done"); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Run = %v", err)
	}
	look := x.Look()
	if len(look.Tasks) != 2 || look.Tasks[0].ID != "T-001" || look.Seq == 0 {
		t.Errorf("Look = %+v", look)
	}
}
