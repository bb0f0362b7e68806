package runtime

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"agentteam/pkg/shutdown"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/roster"
	"agentteam/pkg/team"
)

// The look at what a member that leaves has changed without a task ends in time if its process is to stop, also
// in the middle of the look.
func TestLookInHaste(t *testing.T) {
	const early = shutdown.Part - hurriedWithin/2
	for name, tt := range map[string]struct {
		before, after time.Duration // the signal comes so long before the begin of the look, or after it
		want          time.Duration // how long the look may take
	}{
		"no signal":                    {0, time.Hour, leaveWithin},
		"a signal in the middle of it": {0, time.Second, time.Second + hurriedWithin},
		"a signal before it":           {time.Second, 0, hurriedWithin},
		"a signal long before it":      {early, 0, shutdown.Part - early},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				process, signal := context.WithCancel(t.Context())
				leaving, left := shutdown.Outlive(process, shutdown.Part)
				defer left()
				m := &member{process: process, leaving: leaving}
				time.AfterFunc(tt.after, signal)
				time.Sleep(tt.before)
				ctx, done := m.looking()
				defer done()
				begun := time.Now()
				<-ctx.Done()
				if took := time.Since(begun); took != tt.want {
					t.Errorf("it ends after %v, want %v", took, tt.want)
				}
				signal()
			})
		})
	}
}

// Who waits for a person learns at once that the seat is no more, also if that was before.
func TestLeft(t *testing.T) {
	t.Parallel()
	bt := brokertest.Team(t, "t")
	r := roster.New(bt)
	ann, err := r.Put(t.Context(), team.Member{AgentID: "ann", State: team.Joined, Backend: team.Person, Incarnation: 1})
	if err != nil {
		t.Fatal(err)
	}
	m := &member{Options: Options{Team: bt}, roster: r}
	left := make(chan error, 1)
	go func() { left <- m.left(t.Context(), "ann") }()
	if _, err = r.Put(t.Context(), ann); err != nil { // she still sits
		t.Fatal(err)
	}
	if err := r.Leave(t.Context(), "ann", 1, ""); err != nil {
		t.Fatal(err)
	}
	if err := brokertest.Receive(t, "she has left", left); err != nil {
		t.Errorf("left = %v", err)
	}
	if err := m.left(t.Context(), "ann"); err != nil {
		t.Errorf("left before = %v", err)
	}
}
