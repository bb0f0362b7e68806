package broker_test

import (
	"errors"
	"strings"
	"testing"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/team"
)

// A key is deleted if it is as it was read, also if the answer is lost; then it is as
// if it had never been.
func TestDelete(t *testing.T) {
	bt := brokertest.Team(t, "t")
	put := func(value string, revision uint64) uint64 {
		t.Helper()
		rev, err := bt.Bucket.Put(t.Context(), "k", []byte(value), revision)
		if err != nil {
			t.Fatal(err)
		}
		return rev
	}
	old := put("one", 0)
	rev := put("two", old)
	if err := bt.Bucket.Delete(t.Context(), "k", old); !errors.Is(err, team.Conflict) {
		t.Errorf("of an old revision: %v, want conflict", err)
	}
	others := brokertest.Connect(t, bt.Conn.Server())
	tries := 0
	brokertest.Intercept(t, others, "t", "k", func(n int, w brokertest.Write) ([]byte, bool) {
		tries = n
		w.Store(t, others)
		return nil, false
	})
	if err := bt.Bucket.Delete(t.Context(), "k", rev); err != nil || tries != 1 {
		t.Errorf("with a lost answer: %v after %d tries that were lost", err, tries)
	}
	if e, err := bt.Bucket.Get(t.Context(), "k"); !errors.Is(err, team.NotFound) {
		t.Errorf("deleted it is %+v, %v", e, err)
	}
	if all, err := bt.Bucket.Load(t.Context(), "k"); err != nil || len(all) != 0 {
		t.Errorf("deleted it is listed: %+v, %v", all, err)
	}
	if err := bt.Bucket.Delete(t.Context(), "k", rev); err != nil {
		t.Errorf("again: %v", err)
	}
	rev = put("three", 0)
	if err := bt.Bucket.Delete(t.Context(), "k", rev-1); !errors.Is(err, team.Conflict) {
		t.Errorf("of the one before: %v, want conflict", err)
	}
	if err := bt.Bucket.Delete(t.Context(), "k", rev); err != nil {
		t.Error(err)
	}
}

// Whoever is at work on a team that somebody deletes is told so, and waits for nothing.
func TestTeamIsDeleted(t *testing.T) {
	bt := brokertest.Team(t, "t")
	following := make(chan error, 1)
	caughtUp := make(chan struct{})
	go func() {
		following <- bt.Messages.Follow(t.Context(), broker.Mark{}, func(broker.Msg) error { return nil }, func() { close(caughtUp) }, ">")
	}()
	brokertest.Receive(t, "the follower has caught up", caughtUp)
	if err := bt.Conn.Remove(t.Context(), "t"); err != nil {
		t.Fatal(err)
	}
	_, last := bt.Bucket.LastSeq(t.Context())
	_, state := bt.Messages.State(t.Context())
	_, get := bt.Bucket.Get(t.Context(), "k")
	_, next := bt.Messages.Next(t.Context(), 1)
	for what, err := range map[string]error{"LastSeq": last, "State": state, "Get": get, "Next": next, "Follow": brokertest.Receive(t, "the follower ends", following)} {
		if !errors.Is(err, team.Unavailable) || !strings.Contains(err.Error(), "is gone") || !strings.Contains(team.HintOf(err), "deleted") {
			t.Errorf("%s: %v (hint %q)", what, err, team.HintOf(err))
		}
	}
}
