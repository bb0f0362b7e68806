package runtime

import (
	"context"
	"testing"

	"agentteam/pkg/execenv/permission"
	"agentteam/pkg/store/approval"
	"agentteam/pkg/store/board"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/mailbox"
	"agentteam/pkg/store/roster"
	"agentteam/pkg/team"
	"agentteam/pkg/tool"
	"agentteam/pkg/tool/job"
)

// A subagent that waits for a person shows for what, and does not hold its team until that is decided.
func TestSubagentShowsThatItAsks(t *testing.T) {
	t.Parallel()
	bt := brokertest.Team(t, "t")
	m := &member{Options: Options{Team: bt, Member: team.Member{AgentID: "coder-1", Role: "coder", State: team.Joined, Incarnation: 1}}, roster: roster.New(bt), board: board.New(bt.Bucket, board.Options{})}
	if _, err := m.roster.Put(t.Context(), m.Member); err != nil {
		t.Fatal(err)
	}
	m.plans = approval.New(bt.Bucket, approval.Options{Tasks: m.board, Members: m.roster, Post: mailbox.New(bt, mailbox.Options{Members: m.roster})})
	asksForAll := func(context.Context, tool.Request) (approval.Judgement, error) {
		return approval.Judgement{Answer: permission.Ask, Why: "no rule allows it"}, nil
	}
	m.asks = m.plans.Permissions(m.Member, board.NewClaimSlot(t.Context(), m.board, m.Member.Holder()), asksForAll)
	m.jobs = job.New(job.Options{})
	defer m.jobs.Close()
	passed := make(chan error, 2) // the job ends whether or not anything reads them
	go func() {
		_, _ = m.jobs.Begin(team.Job{Kind: team.JobSubagent}, func(ctx context.Context, _ *job.Job) string {
			passed <- m.passOnceDecided(asksForAll)(ctx, tool.Request{Called: "bash", Tool: "bash", Arguments: []byte(`{"command":"git push"}`)})
			passed <- nil
			return "done"
		})
	}()
	var asks team.Job
	brokertest.Until(t, "the job asks", func() bool {
		if all := m.jobs.List(); len(all) == 1 {
			asks = all[0]
		}
		return asks.Asked != ""
	})
	if asks.Holds() || !m.jobs.Waits() {
		t.Errorf("%+v holds the team: %v; its owner waits for it: %v", asks, asks.Holds(), m.jobs.Waits())
	}
	if _, err := m.plans.Decide(t.Context(), asks.Asked, team.Decision{By: team.UserAgent, Approve: true}); err != nil {
		t.Fatal(err)
	}
	if err := brokertest.Receive(t, "the subagent's call passes", passed); err != nil {
		t.Errorf("allowed: %v", err)
	}
	if works := m.jobs.List()[0]; works.Asked != "" || !works.Holds() {
		t.Errorf("it works on: %+v", works)
	}
	brokertest.Receive(t, "the subagent ends", passed)
}
