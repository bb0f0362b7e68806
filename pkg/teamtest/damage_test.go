package teamtest_test

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"agentteam/pkg/agent"
	"agentteam/pkg/client"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
	"agentteam/pkg/teamtest"
)

// storage is the team's storage, for a client that writes what it likes.
func storage(t *testing.T, c *teamtest.Cluster, id team.TeamID) *broker.Storage {
	t.Helper()
	bt, err := brokertest.Connect(t, c.URL).Open(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return bt
}

// letGo lets the coder of the script alone go on.
func letGo(t *testing.T, tm *client.Team) {
	t.Helper()
	record, err := tm.Record(t.Context())
	if err == nil {
		err = os.WriteFile(filepath.Join(record.Workspace, "go"), nil, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// atWork is a team whose coder bob runs a command until letGo.
func atWork(t *testing.T, c *teamtest.Cluster) (tm *client.Team, g *client.Goal, stopBob func()) {
	t.Helper()
	tm = c.Team("t")
	stopBob = c.Named("bob", "coder", "t")
	joined(t, tm, "bob")
	g = teamtest.Set(t, tm, "Build")
	teamtest.Until(t, tm, func(e client.Entry) bool { return e.Event.Event.ToolCallName == "bash" })
	return tm, g, stopBob
}

func inState(t *testing.T, tm *client.Team, name team.AgentID, typ team.EventType) {
	t.Helper()
	teamtest.Until(t, tm, func(e client.Entry) bool { return e.AgentID == name && e.Event.Event.Type == typ })
}

// waitRepair waits until all members, so many, wait for a repair. On a slow machine a list may not have the answer of each process.
func waitRepair(t *testing.T, tm *client.Team, members int) {
	t.Helper()
	brokertest.Until(t, "all members wait for a repair", func() bool {
		agents, err := tm.Members().List(t.Context(), false)
		return err == nil && len(agents) == members && !slices.ContainsFunc(agents, func(a client.Agent) bool { return a.State != team.WaitingRepair })
	})
}

func damaged(t *testing.T, tm *client.Team) (keys []string) {
	t.Helper()
	all, err := tm.Damaged(t.Context(), agent.Takes)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range all {
		keys = append(keys, d.Key)
	}
	return keys
}

// mend has a record repaired, which must be done.
func mend(t *testing.T, tm *client.Team, key string) {
	t.Helper()
	done, err := tm.Repair(t.Context(), key, agent.Takes)
	if err != nil || len(done) != 1 || !done[0].Repaired {
		t.Fatalf("repair %s: %+v, %v", key, done, err)
	}
}

// looks reads all lists of the team, in which the damaged key must be named.
func looks(t *testing.T, c *teamtest.Cluster, tm *client.Team, key string) {
	t.Helper()
	if _, err := tm.Board().Snapshot(t.Context()); err != nil {
		t.Errorf("the board: %v", err)
	}
	if _, err := tm.Board().List(t.Context(), team.Query{}); err != nil {
		t.Errorf("the list of tasks: %v", err)
	}
	if agents, err := tm.Members().List(t.Context(), true); err != nil || len(agents) != 2 {
		t.Errorf("%d members, %v", len(agents), err)
	}
	teams, err := c.Client.Teams(t.Context())
	if err != nil || len(teams) != 1 || !slices.ContainsFunc(teams[0].Damaged, func(q team.Quarantined) bool { return q.Key == key }) {
		t.Errorf("the teams are %+v, %v; want %s named", teams, err, key)
	}
	if keys := damaged(t, tm); !slices.Equal(keys, []string{key}) {
		t.Errorf("damaged are %v, want %s", keys, key)
	}
}

// A record is damaged while the team works, and another leader takes over: lists, claims,
// the coder and the goal go on. The record is named, and can be put back.
func TestDamageHarmsOneThing(t *testing.T) {
	t.Parallel()
	for _, key := range []string{subject.KeyMember("bob"), subject.KeyMember(team.Leader), subject.KeySequence, subject.KeyGraph, subject.KeyWatchdog} {
		t.Run(key, func(t *testing.T) {
			t.Parallel()
			c := teamtest.Start(t, alone)
			stopLeader := c.Leader()
			tm, g, _ := atWork(t, c)
			if _, _, err := tm.Board().Add(t.Context(), "", team.NewTask{Title: "for ann", Role: "reviewer"}); err != nil {
				t.Fatal(err)
			}
			bt := storage(t, c, "t")
			for _, value := range []string{`{"v":2}`, `{"v":2,"agent_id":`} { // of a key that nobody has written there is one good copy
				if _, err := bt.Bucket.Get(t.Context(), key); err == nil && value == `{"v":2}` {
					continue
				}
				if err := bt.Bucket.Set(t.Context(), key, []byte(value)); err != nil {
					t.Fatal(err)
				}
			}
			looks(t, c, tm, key)
			stopLeader()
			c.Leader()
			until(t, bt, subject.Log("t", team.Leader), func(r journal.Record) bool { return r.Kind == journal.Start && r.Incarnation == 2 })
			if _, err := tm.Board().Seating("ann").Claim(t.Context(), "T-002", "ann"); err != nil {
				t.Errorf("claim: %v", err)
			}
			if _, err := tm.Board().Complete(t.Context(), "T-002", "ann", "done"); err != nil {
				t.Errorf("complete: %v", err)
			}
			letGo(t, tm)
			if record := teamtest.Wait(t, g); record.Status != team.TeamFinished || record.Summary != "it is built" {
				t.Errorf("the goal is %s: %q", record.Status, record.Summary)
			}
			for _, key := range damaged(t, tm) { // the leader's own record was put right by its successor
				mend(t, tm, key)
			}
			if left := damaged(t, tm); len(left) > 0 {
				t.Errorf("left are %v", left)
			}
			if added, _, err := tm.Board().Add(t.Context(), "", team.NewTask{Title: "next"}); err != nil || added[0].ID != "T-003" {
				t.Errorf("a task for the repaired team: %+v, %v", added, err)
			}
		})
	}
}

// Of a team whose own record is damaged the lists are shown, who works goes on, and nobody
// leads it anew until the record was put back.
func TestDamagedTeamRecord(t *testing.T) {
	t.Parallel()
	c := teamtest.Start(t, alone)
	stopLeader := c.Leader()
	tm, g, _ := atWork(t, c)
	bt := storage(t, c, "t")
	if err := bt.Bucket.Set(t.Context(), subject.KeyTeam, []byte("garbage")); err != nil {
		t.Fatal(err)
	}
	looks(t, c, tm, subject.KeyTeam)
	_, err := tm.Members().Spawn(t.Context(), team.Member{Role: "coder"}, 1)
	if !errors.Is(err, team.ErrUnreadable) || !strings.Contains(team.HintOf(err), "teamctl repair") {
		t.Errorf("a spawn: %v (%s)", err, team.HintOf(err))
	}
	stopLeader()
	mend(t, tm, subject.KeyTeam)
	c.Leader()
	letGo(t, tm)
	if record := teamtest.Wait(t, g); record.Status != team.TeamFinished {
		t.Errorf("the goal is %s: %q", record.Status, record.Summary)
	}
}

// until waits for a record of a journal.
func until(t *testing.T, bt *broker.Storage, subj string, ok func(journal.Record) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), brokertest.Longest)
	defer cancel()
	found := errors.New("found")
	err := bt.Logs.Follow(ctx, broker.Mark{}, func(m broker.Msg) error {
		if r, err := journal.Decode(ctx, bt, m); err == nil && ok(r) {
			return found
		}
		return nil
	}, nil, subj)
	if !errors.Is(err, found) {
		t.Fatalf("the record is not in %s: %v", subj, err)
	}
}

// foreign is a turn as another program might record it: in the form of an endpoint.
const foreign = `{"v":2,"id":"x","kind":"turn","incarnation":1,"turn":{"message":{"role":"assistant","content":"","tool_calls":[{"id":"c","type":"function","function":{"name":"bash","arguments":"{}"}}]},"finish_reason":"tool_calls"}}`

// Journals are damaged. Whoever is at work goes on; whoever opens one is parked, tells the
// leader once, has its task put back without an attempt, and comes back by itself once the
// record was set aside.
func TestDamagedJournals(t *testing.T) {
	t.Parallel()
	c := teamtest.Start(t, alone)
	stopLeader := c.Leader()
	tm, g, stopBob := atWork(t, c)
	bt := storage(t, c, "t")
	spoil := func(name team.AgentID, record string) {
		t.Helper()
		if _, err := bt.Logs.Publish(t.Context(), subject.Log("t", name), rand.Text(), []byte(record)); err != nil {
			t.Fatal(err)
		}
	}
	spoil(team.Leader, "garbage")
	spoiled, err := bt.Logs.LastSeq(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := tm.Mail().Send(t.Context(), client.NewMail{To: team.Leader, Text: "How far are you?"}); err != nil { // the leader answers, so it writes
		t.Fatal(err)
	}
	until(t, bt, subject.Log("t", team.Leader), func(r journal.Record) bool { return r.Kind == journal.Turn && r.Seq > spoiled })
	spoil("bob", foreign)
	stopBob()
	stopLeader()
	c.Leader()
	inState(t, tm, team.Leader, team.MemberParked)
	c.Named("bob", "coder", "t")
	inState(t, tm, "bob", team.MemberParked)
	waitRepair(t, tm, 2)
	if keys := damaged(t, tm); !slices.Equal(keys, []string{"log.bob", "log.leader"}) {
		t.Errorf("damaged are %v", keys)
	}
	brokertest.Until(t, "the task is put back", func() bool {
		v, err := tm.Board().Task(t.Context(), "T-001")
		return err == nil && v.Status == team.Pending && v.Attempts == 0
	})
	letGo(t, tm)
	mend(t, tm, "log.bob")
	mend(t, tm, "log.leader")
	if record := teamtest.Wait(t, g); record.Status != team.TeamFinished || record.Summary != "it is built" {
		t.Errorf("the goal is %s: %q", record.Status, record.Summary)
	}
	if v, err := tm.Board().Task(t.Context(), "T-001"); err != nil || v.Attempts != 0 || v.Assignee != "bob" {
		t.Errorf("the task: %+v, %v", v, err)
	}
}

// A member that waits for the repair of its journal leaves as soon as its process is stopped.
func TestDamagedMemberStops(t *testing.T) {
	t.Parallel()
	c := teamtest.Start(t, alone)
	tm := c.Team("t")
	stopBob := c.Named("bob", "coder", "t")
	joined(t, tm, "bob")
	stopBob()
	if _, err := storage(t, c, "t").Logs.Publish(t.Context(), subject.Log("t", "bob"), rand.Text(), []byte(foreign)); err != nil {
		t.Fatal(err)
	}
	for range 6 { // which part of the member ends first is chance
		stopBob = c.Named("bob", "coder", "t")
		waitRepair(t, tm, 1)
		stopBob()
	}
}
