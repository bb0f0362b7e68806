package runtime

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"agentteam/pkg/store/board"
	"agentteam/pkg/team"
)

// What a process is told never waits for the agent: an offer is passed on to one that
// listens a moment later, and forgotten if none does.
func TestToldDoesNotBlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &member{offered: make(chan team.Task, 1), offers: make(chan team.Task), revoked: make(chan struct{}, 1), compacts: make(chan struct{}, 1),
			hand: board.NewClaimSlot(t.Context(), nil, team.Holder{Agent: "coder-1"})}
		h, begun := m.handlers(), time.Now()
		for range 3 {
			h.Offer(team.Task{ID: "T-001"})
			h.Revoked("T-001")
			h.Compact()
		}
		if len(m.revoked) != 0 || len(m.compacts) != 1 {
			t.Errorf("an agent without a task has lost %d, and is to shorten %d times", len(m.revoked), len(m.compacts))
		}
		if d := time.Since(begun); d != 0 {
			t.Errorf("it took %v", d)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- m.passOffers(ctx) }()
		time.Sleep(offerGrace / 2)
		select {
		case task := <-m.offers:
			if task.ID != "T-001" {
				t.Errorf("offered %+v", task)
			}
		default:
			t.Error("the offer did not wait for the agent")
		}
		h.Offer(team.Task{ID: "T-002"})
		time.Sleep(offerGrace + 1)
		select {
		case task := <-m.offers:
			t.Errorf("%s is offered to an agent that did other things meanwhile", task.ID)
		default:
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
