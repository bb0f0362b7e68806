package client_test

import (
	"context"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"agentteam/pkg/agent/spawn"
	"agentteam/pkg/client"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/mailbox"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
	"agentteam/pkg/tool/workspace"
)

// A team is deleted only when nobody is in it, and those who are there are named.
func TestDeleteTeam(t *testing.T) {
	r := newRig(t)
	r.standby(t, func() {})
	refused := func(what string, names ...string) {
		t.Helper()
		_, err := r.client.DeleteTeam(t.Context(), "t", false, 0)
		wantCode(t, what, err, team.Conflict)
		for _, n := range names {
			if err == nil || !strings.Contains(err.Error()+team.HintOf(err), n) {
				t.Errorf("%s: %v does not name %s", what, err, n)
			}
		}
	}
	r.add(t, 2)
	if _, err := r.Members().Spawn(t.Context(), team.Member{Role: "coder"}, 1); err != nil {
		t.Fatal(err)
	}
	refused("while it is active", "coder-1 (joined since 20")
	r.end(t, "done")
	refused("with a member", "coder-1 (joined since 20")
	if _, err := r.Members().Stop(t.Context(), "coder-1", client.StopOptions{}); err != nil {
		t.Fatal(err)
	}
	r.claim(t, "T-001", "alice")
	refused("with a person at work", "alice (joined since 20", "teamctl stop --team t`")
	if _, err := r.Board().Complete(t.Context(), "T-001", "alice", "done"); err != nil {
		t.Fatal(err)
	}
	d, err := r.client.DeleteTeam(t.Context(), "t", false, 0)
	if err != nil || len(d.Ended) != 0 || d.Open != 1 {
		t.Errorf("DeleteTeam = %+v, %v; want one open task, and nobody ended", d, err)
	}
	_, err = r.client.Open(t.Context(), "t")
	wantCode(t, "opening it", err, team.NotFound)
}

// homes notes whose homes are to go.
type homes struct {
	workspace.Source
	of []team.Team
}

func (h *homes) Forget(t team.Team) { h.of = append(h.of, t) }

// With a team go the homes of its members, and not before it is certain that it goes.
func TestDeleteTeamWithHomes(t *testing.T) {
	h := &homes{}
	c, err := client.Connect(t.Context(), client.Options{URL: brokertest.Server(t), Workspaces: h})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	record, err := makeTeam(t, c, client.NewTeam{ID: "t", Roles: roles("coder")}).Record(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.DeleteTeam(t.Context(), "t", false, 0); err == nil || len(h.of) > 0 {
		t.Errorf("%v; homes have gone: %v", err, h.of)
	}
	if _, err := c.DeleteTeam(t.Context(), "t", true, 0); err != nil || len(h.of) != 1 || h.of[0].ID != "t" || !h.of[0].CreatedAt.Equal(record.CreatedAt) {
		t.Errorf("%v; homes that have gone: %+v", err, h.of)
	}
}

func TestDeleteTeamByForce(t *testing.T) {
	r := newRig(t)
	r.standby(t, func() {})
	r.add(t, 2)
	r.claim(t, "T-001", "alice")
	if _, err := r.Members().Spawn(t.Context(), team.Member{Role: "coder"}, 1); err != nil {
		t.Fatal(err)
	}
	d, err := r.client.DeleteTeam(t.Context(), "t", true, 0)
	if err != nil || len(d.Ended) != 2 || d.Open != 2 {
		t.Errorf("DeleteTeam = %+v, %v; want coder-1 and alice ended, and two open tasks", d, err)
	}
	if teams, err := r.client.Teams(t.Context()); err != nil || len(teams) != 0 {
		t.Errorf("Teams = %+v, %v", teams, err)
	}
	js, err := jetstream.New(r.bt.Conn.NATS())
	if err != nil {
		t.Fatal(err)
	}
	for name := range js.StreamNames(t.Context()).Name() { // buckets, consumers and files are in streams
		if name != "KV_"+subject.Registry {
			t.Errorf("left in NATS: %s", name)
		}
	}
}

// A spawn that the deleter cannot see yet sees the deleter.
func TestSpawnIntoDeletedTeam(t *testing.T) {
	r := newRig(t)
	r.standby(t, func() { t.Error("a standby took the member") })
	r.end(t, "done")
	spawner := spawn.New(spawn.Options{Team: r.bt, Roster: r.roster})
	err := r.registry.Delete(t.Context(), "t", false, func(ctx context.Context, _ *broker.Storage) error {
		_, err := spawner.Spawn(ctx, team.Member{Role: "coder"}, 10)
		wantCode(t, "the spawn", err, team.Conflict)
		if left := r.left(t); len(left) > 0 {
			t.Errorf("left are %v", left)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestChoices(t *testing.T) {
	r := newRig(t)
	_, err := r.client.AddTeam(t.Context(), client.NewTeam{ID: "t"}, team.Choices{})
	wantCode(t, "a name that is taken", err, team.Conflict)
	_, err = r.client.AddTeam(t.Context(), client.NewTeam{ID: "u"}, team.Choices{Respawn: new(team.Respawn("never"))})
	wantCode(t, "a policy that nobody knows", err, team.InvalidArgument)
	made, err := r.client.AddTeam(t.Context(), client.NewTeam{ID: "u"}, team.Choices{MaxTeammates: new(0), Create: new(team.CreateLeader)})
	if err != nil || made.MaxTeammates != 0 || made.Policies != (team.Policies{Create: team.CreateLeader, Respawn: team.RespawnAlways, Approver: team.ByLeader}) {
		t.Errorf("AddTeam = %+v, %v", made, err)
	}
	changed, err := r.Choose(t.Context(), team.Choices{Description: new("ours"), MaxTeammates: new(0)})
	if err != nil || changed.Description != "ours" || changed.Policies.Respawn != team.RespawnAlways {
		t.Errorf("Choose = %+v, %v", changed, err)
	}
	r.standby(t, func() {})
	_, err = r.Members().Spawn(t.Context(), team.Member{Role: "coder"}, 1)
	wantCode(t, "a spawn over the limit", err, team.InvalidState)
}

// A team that does nothing is not asked again, and whatever happens to it is seen by the next look.
func TestTeamsThatChange(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	look := func() client.TeamStatus {
		t.Helper()
		all, err := r.client.Teams(t.Context())
		if err != nil || len(all) != 1 {
			t.Fatalf("%d teams, %v", len(all), err)
		}
		return all[0]
	}
	again := func(what string, ok func(client.TeamStatus) bool) {
		t.Helper()
		for range 2 { // also from what was kept
			if s := look(); !ok(s) {
				t.Errorf("%s: %+v", what, s)
			}
		}
	}
	again("new", func(s client.TeamStatus) bool { return len(s.Tasks) == 0 && s.Unread == 0 })
	r.add(t, 2)
	again("with tasks", func(s client.TeamStatus) bool { return s.Tasks[team.Pending] == 2 })
	if _, _, err := mailbox.New(r.bt, mailbox.Options{Members: r.roster}).Send(t.Context(), team.Message{Type: team.MsgMessage, From: team.Leader, To: team.UserAgent, Content: "hello"}); err != nil {
		t.Fatal(err)
	}
	again("with mail", func(s client.TeamStatus) bool { return s.Unread == 1 })
	if _, err := r.board.Claim(t.Context(), "T-001", team.Holder{Agent: "ann", Incarnation: 1}); err != nil {
		t.Fatal(err)
	}
	again("with a task in progress", func(s client.TeamStatus) bool { return s.Tasks[team.InProgress] == 1 })
	if _, err := r.client.DeleteTeam(t.Context(), "t", true, 0); err != nil {
		t.Fatal(err)
	}
	if all, err := r.client.Teams(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("after its end: %+v, %v", all, err)
	}
	makeTeam(t, r.client, client.NewTeam{ID: "t", Roles: roles("coder")})
	again("made again", func(s client.TeamStatus) bool { return len(s.Tasks) == 0 && s.Unread == 0 })
}
