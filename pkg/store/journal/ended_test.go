package journal_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

// A journal that cannot be kept elsewhere stays, and keeps no other from being removed.
func TestRemoveEndedGoesOn(t *testing.T) {
	bt := brokertest.Team(t, "t")
	for _, a := range []team.AgentID{"coder-1.a000001", "coder-1.a000002", "coder-1.a000003"} {
		if _, _, err := journal.Open(t.Context(), bt, a, 1, journal.Options{}); err != nil {
			t.Fatal(err)
		}
	}
	damaged := errors.New("damaged")
	err := journal.RemoveEnded(t.Context(), bt, time.Nanosecond, func(team.AgentID) bool { return true }, func(_ context.Context, a team.AgentID, _ uint64) error {
		if a == "coder-1.a000001" {
			return damaged
		}
		return nil
	})
	if !errors.Is(err, damaged) {
		t.Errorf("%v, want %v", err, damaged)
	}
	var left []team.AgentID
	if err := bt.Logs.Newest(t.Context(), func(m broker.Msg) error { left = append(left, subject.Author(m.Subject)); return nil }, subject.LogsBelow("t", "*")); err != nil {
		t.Fatal(err)
	}
	if len(left) != 1 || left[0] != "coder-1.a000001" {
		t.Errorf("%q are left", left)
	}
}
