package board

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/nats-io/nats.go"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

// A first reading that was cut short is done anew: what was deleted since is not found,
// and of each task only the newest record is read.
func TestScoutCutShort(t *testing.T) {
	bt := brokertest.Team(t, "t")
	b := New(bt.Bucket, Options{})
	tasks, err := b.Create(t.Context(), team.Leader, slices.Repeat([]team.NewTask{{Title: "x"}}, 40)...)
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		for range 5 {
			if task, err = b.put(t.Context(), task); err != nil {
				t.Fatal(err)
			}
		}
	}
	nc := bt.Conn.NATS()
	enough := errors.New("enough")
	var s *Scout
	for tries, cut := 0, false; !cut; tries++ { // the word to stop may come too late
		if tries == 50 {
			t.Fatal("no reading was cut short")
		}
		s = NewScout(b, "", team.Role{}, nil)
		taken := 0
		err := b.bucket.Each(t.Context(), func(e broker.Entry) error {
			if taken++; taken > 10 {
				return enough
			}
			return s.take(e)
		}, subject.AllTasks)
		if !errors.Is(err, enough) {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		begins, err := nc.Subscribe("$JS.API.CONSUMER.CREATE.>", func(*nats.Msg) { cancel() })
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = s.Find(ctx)
		if cut = errors.Is(err, team.Unavailable); !cut && err != nil {
			t.Fatal(err)
		}
		if err := begins.Unsubscribe(); err != nil {
			t.Fatal(err)
		}
		cancel()
	}
	deleted := nats.NewMsg("$KV." + subject.Bucket("t") + "." + subject.KeyTask("T-001"))
	deleted.Header.Set("KV-Operation", "DEL")
	if _, err := nc.RequestMsgWithContext(t.Context(), deleted); err != nil {
		t.Fatal(err)
	}
	before := nc.Stats().InMsgs
	if id, ok, err := s.Find(t.Context()); err != nil || !ok || id != "T-002" {
		t.Errorf("found %q, %v, %v, want T-002", id, ok, err)
	}
	if got := nc.Stats().InMsgs - before; got > 60 {
		t.Errorf("%d messages were read for 40 tasks", got)
	}
}
