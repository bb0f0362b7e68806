package broker_test

import (
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

// A stream tells where it begins and ends, also when what stood there is gone, and
// what comes next behind a gap.
func TestState(t *testing.T) {
	bt := brokertest.Team(t, "t")
	s, err := bt.Messages.State(t.Context())
	if err != nil || s.Last != 0 || s.First > 1 || s.Created.IsZero() || s.Now.Before(s.Created) {
		t.Errorf("an empty stream is %+v, %v", s, err)
	}
	if m, err := bt.Messages.Next(t.Context(), 0); !errors.Is(err, team.NotFound) {
		t.Errorf("its next message is %+v, %v", m, err)
	}
	for _, id := range []string{"a", "b", "c", "d"} {
		if _, err := bt.Messages.Publish(t.Context(), subject.Inbox("t", "ann", "bob"), id, []byte(id)); err != nil {
			t.Fatal(err)
		}
	}
	js, err := jetstream.New(bt.Conn.NATS())
	if err != nil {
		t.Fatal(err)
	}
	name, _ := subject.Messages("t")
	stream, err := js.Stream(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	for _, seq := range []uint64{1, 3} {
		if err := stream.DeleteMsg(t.Context(), seq); err != nil {
			t.Fatal(err)
		}
	}
	now, err := bt.Messages.State(t.Context())
	if err != nil || now.First != 2 || now.Last != 4 || !now.Created.Equal(s.Created) || now.Now.Before(s.Now) {
		t.Errorf("then it is %+v, %v", now, err)
	}
	for from, want := range map[uint64]uint64{0: 2, 1: 2, 2: 2, 3: 4, 4: 4} {
		m, err := bt.Messages.Next(t.Context(), from)
		if err != nil || m.Seq != want || m.Subject != "at.t.inbox.ann.bob" || time.Since(m.Time) > time.Minute {
			t.Errorf("from %d on comes %+v, %v; want %d", from, m, err, want)
		}
	}
	if m, err := bt.Messages.Next(t.Context(), 5); !errors.Is(err, team.NotFound) {
		t.Errorf("behind the end is %+v, %v", m, err)
	}
}
