package broker_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/subject"
)

// A reading whose end is removed while it reads ends all the same, although messages
// came before and no other comes after.
func TestEndRemoved(t *testing.T) {
	t.Parallel()
	bt := brokertest.Team(t, "t")
	js, err := jetstream.New(bt.Conn.NATS())
	if err != nil {
		t.Fatal(err)
	}
	name, _ := subject.Logs("t")
	s, err := js.Stream(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	const all = 600 // more than a reader asks for at once: the last one is not yet on its way to it
	for last := range uint64(all) {
		if _, err := bt.Logs.Append(t.Context(), subject.Log("t", "ann"), []byte("x"), last); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), brokertest.Longest)
	defer cancel()
	read := 0
	err = bt.Logs.Read(ctx, 1, func(broker.Msg) error {
		if read++; read == 1 {
			return s.DeleteMsg(ctx, all)
		}
		return nil
	})
	if err != nil || read != all-1 {
		t.Errorf("read %d of %d messages: %v", read, all-1, err)
	}
}

// A follower gives what a stream that fell back holds since its reader's place, also if the stream did so before the following began.
func TestFollowBehindRestored(t *testing.T) {
	t.Parallel()
	bt := brokertest.Team(t, "t")
	store := func(after uint64) {
		t.Helper()
		if _, err := bt.Logs.Append(t.Context(), subject.Log("t", "ann"), []byte("x"), after); err != nil {
			t.Fatal(err)
		}
	}
	store(0)
	first, err := bt.Logs.Next(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	before := first.Time.Add(-time.Hour)
	store(1)
	store(2)
	for _, after := range []broker.Mark{{Seq: 3, At: before}, {Seq: 9, At: before}} {
		var got []uint64
		err = bt.Logs.Follow(brokertest.Context(t), after, func(m broker.Msg) error {
			if got = append(got, m.Seq); len(got) == 3 {
				return broker.ErrEnough
			}
			return nil
		}, nil)
		if !errors.Is(err, broker.ErrEnough) || !slices.Equal(got, []uint64{1, 2, 3}) {
			t.Errorf("behind %v: %v, %v", after, got, err)
		}
	}
}
