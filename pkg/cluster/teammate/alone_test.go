package teammate_test

import (
	"context"
	"errors"
	"testing"

	"agentteam/pkg/store/board"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/roster"
	"agentteam/pkg/team"
)

// A member that hears no leader takes what is claimable by itself. That it does so
// within 10 s is held where the look is planned, in package agent.
func TestWorksWithoutLeader(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.config.Model, r.config.BaseURL = "none", "http://127.0.0.1:1/v1" // it is away; the task is claimed all the same
	tasks, err := board.New(r.team.Bucket, board.Options{}).Create(t.Context(), team.UserAgent, team.NewTask{Title: "Count"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.roster.Create(t.Context(), team.Member{AgentID: "bob", Role: "coder", Backend: team.Pool}, roster.Limit{Team: 10}); err != nil {
		t.Fatal(err)
	}
	r.run("")
	r.order(1)
	ctx, cancel := context.WithTimeout(t.Context(), brokertest.Longest)
	defer cancel()
	claimed := errors.New("claimed")
	err = r.team.Bucket.Watch(ctx, func(e broker.Entry) error {
		if got, err := board.Decode(e); err == nil && got.ID == tasks[0].ID && got.Status == team.InProgress {
			return claimed
		}
		return nil
	}, nil, ">")
	if !errors.Is(err, claimed) {
		t.Error(err)
	}
}
