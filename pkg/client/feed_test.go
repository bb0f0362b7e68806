package client_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"agentteam/pkg/client"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/runlog"
	"agentteam/pkg/team"
)

func told(e client.Entry) string { return fmt.Sprintf("%s %s", e.AgentID, e.Event.Event.Type) }

// What people do is in the feed like what agents do, and a cursor leads on from there.
func TestFeed(t *testing.T) {
	r := newRig(t)
	runlog.New(r.bt, nil).Emit(t.Context(), team.Event{AgentID: "coder-1", Event: team.EventBody{Type: team.RunStarted}})
	r.add(t, 1)
	r.claim(t, "T-001", "alice")
	if _, err := r.Board().Release(t.Context(), "T-001", "alice", ""); err != nil {
		t.Fatal(err)
	}
	r.claim(t, "T-001", "alice")
	if _, err := r.Board().Complete(t.Context(), "T-001", "alice", "done"); err != nil {
		t.Fatal(err)
	}
	read := func(o client.FeedOptions) (got []string, last client.Cursor) {
		t.Helper()
		err := r.Feed(brokertest.Context(t), o, func(e client.Entry) error {
			got, last = append(got, told(e)), e.Cursor
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return got, last
	}
	got, last := read(client.FeedOptions{})
	want := []string{
		"coder-1 RUN_STARTED", "user TASK_CREATED", "alice MEMBER_JOINED", "alice TASK_CLAIMED",
		"alice TASK_RELEASED", "alice MEMBER_UPDATED", "alice TASK_CLAIMED", "alice TASK_COMPLETED",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the feed is\n%q; want\n%q", got, want)
	}
	r.add(t, 1)
	if got, _ := read(client.FeedOptions{After: last}); !slices.Equal(got, []string{"user TASK_CREATED"}) {
		t.Errorf("then comes %q", got)
	}
}

// A goal is followed from where it was set.
func TestGoalFollow(t *testing.T) {
	r := newRig(t)
	r.add(t, 1)
	g, err := r.Goals().Start(t.Context(), "a goal", "")
	if err != nil {
		t.Fatal(err)
	}
	runlog.New(r.bt, nil).Emit(t.Context(), team.Event{AgentID: team.Leader, Event: team.EventBody{Type: team.RunStarted}})
	var got []string
	enough := errors.New("enough")
	err = g.Follow(brokertest.Context(t), g.After(), func(e client.Entry) error {
		if got = append(got, told(e)); len(got) == 2 {
			return enough
		}
		return nil
	})
	if want := []string{"user MAIL_SENT", "leader RUN_STARTED"}; !errors.Is(err, enough) || !slices.Equal(got, want) {
		t.Errorf("the goal's feed is %q, %v; want %q", got, err, want)
	}
}
