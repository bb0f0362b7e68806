package mailbox_test

import (
	"slices"
	"testing"

	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/mailbox"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

// Word of urgent mail comes at once to those whom it is for, also while earlier mail is in
// their hands. Only the leader and people may send it.
func TestUrgent(t *testing.T) {
	_, bt := open(t)
	b := mailbox.New(bt, mailbox.Options{Members: append(slices.Clone(crew), team.Member{AgentID: "alice", Backend: team.Person, State: team.Joined})})
	heard := map[team.AgentID]chan uint64{}
	for _, a := range []team.AgentID{"coder-1", "tester-1", team.Leader} {
		heard[a] = make(chan uint64, 10)
		stop, err := b.Urgent(a, func(seq uint64) { heard[a] <- seq })
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
	}
	in := receive(t, b, "coder-1", 1, 1)
	send(t, b, "tester-1", "coder-1", "one")
	one := in.take("one")
	urgent := func(from, to team.AgentID, want error) uint64 {
		t.Helper()
		typ := team.MsgUser
		if to == team.Everyone {
			typ = team.MsgBroadcast
		}
		_, _, err := b.Send(t.Context(), team.Message{Type: typ, From: from, To: to, Content: "stop", Urgent: true})
		if err != want && team.CodeOf(err) != want {
			t.Errorf("urgent mail from %s: %v, want %v", from, err, want)
		}
		last, err := bt.Messages.LastSeq(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return last
	}
	urgent("tester-1", "coder-1", team.PermissionDenied)
	urgent("nobody", "coder-1", team.PermissionDenied)
	first := urgent(team.UserAgent, "coder-1", nil)
	seat := urgent("alice", "coder-1", nil)
	all := urgent(team.Leader, team.Everyone, nil)
	if err := bt.Conn.NATS().Publish(subject.UrgentAll("t"), []byte("nonsense")); err != nil {
		t.Fatal(err)
	}
	var got []uint64
	for range 3 {
		got = append(got, brokertest.Receive(t, "coder-1 hears of urgent mail", heard["coder-1"]))
	}
	slices.Sort(got) // two subscriptions
	if alsoHeard := brokertest.Receive(t, "tester-1 hears of urgent mail", heard["tester-1"]); !slices.Equal(got, []uint64{first, seat, all}) || alsoHeard != all {
		t.Errorf("coder-1 heard of %v, tester-1 of %d, want %d, %d and %d", got, alsoHeard, first, seat, all)
	}
	last := urgent(team.UserAgent, team.Everyone, nil)
	if got := brokertest.Receive(t, "the leader hears of urgent mail", heard[team.Leader]); got != last {
		t.Errorf("the leader heard of %d, want %d; its own broadcast is %d", got, last, all)
	}
	one.Ack()
	if d := in.next("stop"); d.Seq != first || !d.Urgent {
		t.Errorf("received %+v", d)
	}
	in.next("stop")
	in.next("stop")
	in.next("stop")
	in.end()
}

// What is read is still delivered, and a delivery tells how much stands behind it.
func TestRead(t *testing.T) {
	b, bt := open(t)
	send(t, b, team.Leader, "tester-1", "not for coder-1")
	send(t, b, team.Leader, "coder-1", "one")
	if _, err := bt.Messages.Publish(t.Context(), subject.Inbox("t", "coder-1", "tester-1"), "x", []byte("nonsense")); err != nil {
		t.Fatal(err)
	}
	send(t, b, "coder-1", team.Everyone, "its own")
	send(t, b, "tester-1", team.Everyone, "two")
	read := func(from uint64) (texts []string) {
		t.Helper()
		if err := b.Read(t.Context(), "coder-1", from, func(d mailbox.Delivery) error { texts = append(texts, d.Content); return nil }); err != nil {
			t.Fatal(err)
		}
		return texts
	}
	if got := read(1); !slices.Equal(got, []string{"one", "two"}) {
		t.Errorf("read %q", got)
	}
	if got := read(3); !slices.Equal(got, []string{"two"}) {
		t.Errorf("behind the first: %q", got)
	}
	in := receive(t, b, "coder-1", 1, 1)
	if d := in.next("one"); d.Pending != 3 {
		t.Errorf("%d stand behind the first, want 3", d.Pending)
	}
	if d := in.next("two"); d.Pending != 0 {
		t.Errorf("%d stand behind the last", d.Pending)
	}
	in.end()
}
