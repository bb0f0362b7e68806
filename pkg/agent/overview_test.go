package agent

import (
	"context"
	"strings"
	"testing"

	"agentteam/pkg/agent/engine"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/team"
	"agentteam/pkg/team/explain"
)

// A leader is told how its team stands as the newest input of a turn, and only if that has
// changed. What it was told before stays as it is: a request begins like the one before.
func TestOverview(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		r.opts.Member.AgentID = team.Leader
		now := explain.Overview{}
		r.team.overview = func(context.Context) (explain.Overview, error) { return now, nil }
		r.says("I look.", "I wait.", "Still.", "Again.")
		r.start()
		r.post(1, team.UserAgent, team.MsgUser, "Do it.")
		r.wantKinds("start mail turn end") // there is no team to tell of
		now = explain.Overview{Members: map[team.MemberState]int{team.Idle: 1}, Claimable: 2}
		r.post(2, "coder-1", team.MsgMessage, "I am here.")
		r.post(3, "coder-1", team.MsgMessage, "I go on.")
		r.wantKinds("start mail turn end mail overview turn end mail turn end")
		const want = "[Team] Teammates: 1 idle. Open tasks: 2 claimable."
		messages := r.asked[1].Messages
		if last := messages[len(messages)-1]; last.Role != "user" || last.Content != want {
			t.Errorf("the newest input is %s: %q, want %q", last.Role, last.Content, want)
		}
		later := r.asked[2].Messages
		for i, m := range messages {
			if later[i].Content != m.Content {
				t.Errorf("message %d was %q and is %q", i, m.Content, later[i].Content)
			}
		}
		now = explain.Overview{}
		r.post(4, "coder-1", team.MsgMessage, "I leave.")
		if last := r.journal[len(r.journal)-3]; last.Kind != journal.Overview || last.Text != "[Team] Teammates: none. Open tasks: none." {
			t.Errorf("an empty team is told as %+v", last)
		}
	})
}

// Without an answer from NATS the turn is made all the same.
func TestOverviewUnknown(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		r.opts.Member.AgentID = team.Leader
		r.team.overview = func(ctx context.Context) (explain.Overview, error) {
			<-ctx.Done()
			return explain.Overview{}, ctx.Err()
		}
		r.says("Done.")
		r.start()
		r.post(1, team.UserAgent, team.MsgUser, "Do it.")
		r.pass(overviewWithin)
		r.wantKinds("start mail turn end")
	})
}

// A context that begins anew has the team's standing told again.
func TestOverviewAfterNewContext(t *testing.T) {
	c := fold(t, mailRecord(1, team.UserAgent, team.MsgUser, "Do it."), journal.Record{Kind: journal.Overview, Text: "[Team] x"}, turnRecord("Yes."))
	for what, n := range map[string]*Conversation{"a goal": c.fresh("", 20_000), "a summary": c.summarized(rigTools{}, "all of it", "", 1), "the work alone": c.shortened(engine.WorkOnly, "", "refused")} {
		told := false
		for _, m := range n.Messages {
			told = told || strings.Contains(m.Content, "[Team]")
		}
		if !told && n.Overview != "" {
			t.Errorf("%s: the team's overview counts as told", what)
		}
	}
	if n := c.marked(rigTools{}, 1000); n.Overview != c.Overview {
		t.Error("a conversation that keeps the line forgets that it was told")
	}
}
