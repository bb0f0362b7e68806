package doctor

import (
	"fmt"
	"strings"
	"testing"

	"agentteam/pkg/client"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/store/roster"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

// The mail of a team has fallen behind what was read of it: doctor names each member that has read
// further, by its journal, its record or its consumer, and a repair has it read on. Without that
// there is nothing to name.
func TestMailThatFellBack(t *testing.T) {
	name, _ := subject.Messages("t")
	srv := brokertest.NewRestorable(t)
	c, err := client.Connect(t.Context(), client.Options{URL: srv.URL()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	tm, err := c.Make(t.Context(), client.NewTeam{ID: "t"})
	if err != nil {
		t.Fatal(err)
	}
	bt, err := brokertest.Connect(t, srv.URL()).Open(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}
	looks := func() Check {
		t.Helper()
		return mail(t.Context(), c, client.Status{Teams: []client.TeamStatus{{ID: "t"}}})
	}
	said := 0
	say := func(n int) {
		t.Helper()
		for range n {
			said++
			if _, err := bt.Messages.Publish(t.Context(), subject.Broadcast("t", team.Leader), fmt.Sprint(said), []byte("{}")); err != nil {
				t.Fatal(err)
			}
		}
	}
	join := func(name team.AgentID) team.Member {
		t.Helper()
		m, err := roster.New(bt).Create(t.Context(), team.Member{AgentID: name, Role: "coder"}, roster.Limit{Team: 10})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	say(2)
	reader, behind := join("reader"), join("behind")
	srv.Keep(name)
	say(4)
	joined := join("joined")
	for m, seq := range map[team.AgentID]uint64{reader.AgentID: 6, behind.AgentID: 2} {
		j, _, err := journal.Open(t.Context(), bt, m, 1, journal.Options{})
		if err == nil {
			_, err = j.Append(t.Context(), journal.Record{Kind: journal.Mail, InboxSeq: seq, Message: &team.Message{ID: "m", Type: team.MsgMessage, From: team.Leader, To: m}})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if got := looks(); got.Status != OK {
		t.Errorf("before: %+v", got)
	}
	srv.Restore(name, nil)
	if _, err := bt.Messages.Consumer(t.Context(), subject.Consumer("other", 1), broker.Mark{}, subject.Mail("t", "other")...); err != nil {
		t.Fatal(err)
	}
	got := looks()
	for _, want := range []string{"inbox.reader of team t", "the team's mail ends at message 2, and reader has read up to 6", "inbox.joined of team t"} {
		if got.Status != Warn || !strings.Contains(got.Detail, want) || !strings.Contains(got.Hint, "teamctl repair --all") {
			t.Errorf("%+v, want a warning with %q", got, want)
		}
	}
	if strings.Contains(got.Detail, "behind") || strings.Contains(got.Detail, "other") {
		t.Errorf("%q names a member that has read no further", got.Detail)
	}
	found, err := tm.Damaged(t.Context(), nil)
	if err != nil || len(found) != 2 {
		t.Errorf("repair finds %+v, %v", found, err)
	}
	for _, d := range found {
		for _, want := range []int{1, 0} { // of the second there is nothing to do
			done, err := tm.Repair(t.Context(), d.Key, nil)
			if err != nil || len(done) != want {
				t.Errorf("repair %s: %+v, %v", d.Key, done, err)
			}
		}
	}
	if got := looks(); got.Status != OK {
		t.Errorf("after the repair: %+v", got)
	}
	if m, err := roster.New(bt).Get(t.Context(), joined.AgentID); err != nil || m.InboxFrom != 3 || m.ObeysFrom != 3 {
		t.Errorf("the one that joined reads from %d and obeys from %d, %v", m.InboxFrom, m.ObeysFrom, err)
	}
	if seq, _, err := journal.Inbox(t.Context(), bt, reader.AgentID); err != nil || seq != 2 {
		t.Errorf("the reader's journal is at %d, %v", seq, err)
	}
}
