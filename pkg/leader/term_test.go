package leader

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"agentteam/pkg/broker"
	"agentteam/pkg/broker/brokertest"
	"agentteam/pkg/mailbox"
	"agentteam/pkg/roster"
	"agentteam/pkg/spawn"
	"agentteam/pkg/subject"
	"agentteam/pkg/team"
)

// What the leader was told outlives its process: the next leader goes on from
// there, and never behind it.
func TestToldOnce(t *testing.T) {
	bt := brokertest.Team(t, "t")
	ctx := t.Context()
	next := func() *term {
		return &term{team: bt, mailbox: mailbox.New(bt, mailbox.Options{Members: roster.New(bt)})}
	}
	for i, step := range []struct{ set, want uint64 }{{0, 0}, {7, 7}, {5, 7}, {9, 9}} {
		if err := next().SetTold(ctx, step.set); err != nil {
			t.Fatal(err)
		}
		if got, err := next().Told(ctx); err != nil || got != step.want {
			t.Errorf("step %d: told up to %d, %v; want %d", i, got, err, step.want)
		}
	}
	before, err := bt.Messages.LastSeq(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the first leader died before it noted that
		if err := next().Tell(ctx, "blocked-T-001-7", "[Blocked] T-001"); err != nil {
			t.Fatal(err)
		}
	}
	if after, err := bt.Messages.LastSeq(ctx); err != nil || after != before+1 {
		t.Errorf("%d notices were stored, %v", after-before, err)
	}
	e, err := bt.Bucket.Get(ctx, subject.KeyWatchdog)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bt.Bucket.Put(ctx, subject.KeyWatchdog, []byte("{"), e.Revision); err != nil {
		t.Fatal(err)
	}
	if got, err := next().Told(ctx); err != nil || got != 0 {
		t.Errorf("the note is damaged: %d, %v", got, err)
	}
	if err := next().SetTold(ctx, 3); err != nil {
		t.Error(err)
	}
	if got, err := next().Told(ctx); err != nil || got != 3 {
		t.Errorf("the note was mended: %d, %v", got, err)
	}
}

// The leader is told of a member that cannot be brought back, once.
func TestToldOfLost(t *testing.T) {
	bt := brokertest.Team(t, "t")
	ctx := t.Context()
	r := roster.New(bt)
	m, err := r.Create(ctx, team.Member{Role: "coder"}, 10)
	if err != nil {
		t.Fatal(err)
	}
	lead := &term{
		team: bt, log: slog.New(slog.DiscardHandler), mailbox: mailbox.New(bt, mailbox.Options{Members: r}),
		spawner:  spawn.New(spawn.Options{Team: bt, Roster: r, Exec: func(context.Context, spawn.Order) error { return errors.New("no program") }}),
		failures: map[team.AgentID]failures{m.AgentID: {0, time.Now()}},
	}
	for range 3 {
		if err := lead.Respawn(ctx, m); err != nil {
			t.Fatal(err)
		}
		lead.respawns.Wait()
		if m, err = r.Get(ctx, m.AgentID); err != nil {
			t.Fatal(err)
		}
	}
	n := 0
	err = bt.Messages.Read(ctx, 1, func(msg broker.Msg) error {
		if n++; !strings.Contains(string(msg.Data), "[Lost] coder-1") {
			t.Errorf("the leader got %s", msg.Data)
		}
		return nil
	}, subject.Inbox("t", team.Leader, team.Watchdog))
	if err != nil || n != 1 {
		t.Errorf("%d notices after three failures, %v", n, err)
	}
}
