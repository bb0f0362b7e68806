package index

import (
	"context"
	"testing"
	"time"

	"agentteam/pkg/board"
	"agentteam/pkg/broker/brokertest"
	"agentteam/pkg/team"
)

// What makes an offer possible makes it at once: an index whose tick never comes finds
// everything too.
func TestWakes(t *testing.T) {
	ann := team.Holder{Agent: "ann", Incarnation: 1}
	for name, tt := range map[string]struct {
		tasks    []team.NewTask
		idle     []team.AgentID // from the start; the first of them is offered the first task
		patience time.Duration
		then     func(t *testing.T, x *Index, b *board.Board) error
		want     string
	}{
		"a beat": {[]team.NewTask{{Title: "1"}, {Title: "2"}}, []team.AgentID{"ann"}, time.Hour,
			func(_ *testing.T, x *Index, _ *board.Board) error {
				x.Hear(idle("bob", ""))
				return nil
			}, "T-002 to bob"},
		"a new task": {[]team.NewTask{{Title: "1"}}, []team.AgentID{"ann", "bob"}, time.Hour,
			func(t *testing.T, _ *Index, b *board.Board) error {
				_, err := b.Create(t.Context(), team.Leader, team.NewTask{Title: "2"})
				return err
			}, "T-002 to bob"},
		"the last completion": {[]team.NewTask{{Title: "1"}, {Title: "2", After: []int{0}}}, []team.AgentID{"ann", "bob"}, time.Hour,
			func(t *testing.T, _ *Index, b *board.Board) error {
				held, err := b.Claim(t.Context(), "T-001", ann)
				if err == nil {
					_, err = b.Complete(t.Context(), held.ID, ann, held.Epoch, team.Done{Summary: "done"})
				}
				return err
			}, "T-002 to bob"},
		"an offer that lapses": {[]team.NewTask{{Title: "1"}}, []team.AgentID{"ann", "bob"}, 10 * time.Millisecond,
			func(*testing.T, *Index, *board.Board) error { return nil }, "T-001 to bob"},
	} {
		t.Run(name, func(t *testing.T) {
			bt := brokertest.Team(t, "t")
			b := board.New(bt, board.Options{})
			if _, err := b.Create(t.Context(), team.Leader, tt.tasks...); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			offers := make(chan string, 10)
			x := New(Options{Team: bt, Finish: b.FinishCreate, Send: func(to team.AgentID, task team.Task) error {
				offers <- string(task.ID) + " to " + string(to)
				return nil
			}})
			x.tick, x.state.patience = nil, tt.patience
			for _, a := range tt.idle {
				x.Hear(idle(a, ""))
			}
			done := make(chan error, 1)
			go func() { done <- x.Run(ctx) }()
			defer func() {
				cancel()
				if err := <-done; err != nil {
					t.Error(err)
				}
			}()
			next := func(want string) {
				t.Helper()
				select {
				case got := <-offers:
					if got != want {
						t.Fatalf("offered is %s, want %s", got, want)
					}
				case <-time.After(10 * time.Second):
					t.Fatalf("waited for %s in vain", want)
				}
			}
			next("T-001 to ann")
			if err := tt.then(t, x, b); err != nil {
				t.Fatal(err)
			}
			next(tt.want)
		})
	}
}

// An index whose Run has ended, as when another process has taken over, makes no offers
// though it still hears beats.
func TestOffersEndWithRun(t *testing.T) {
	bt := brokertest.Team(t, "t")
	b := board.New(bt, board.Options{})
	if _, err := b.Create(t.Context(), team.Leader, team.NewTask{Title: "1"}, team.NewTask{Title: "2"}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	offers := make(chan team.AgentID, 10)
	x := New(Options{Team: bt, Finish: b.FinishCreate, Send: func(to team.AgentID, _ team.Task) error {
		offers <- to
		return nil
	}})
	x.Hear(idle("ann", "")) // before it has read the board: offered once it has
	done := make(chan error, 1)
	go func() { done <- x.Run(ctx) }()
	if got := <-offers; got != "ann" {
		t.Errorf("the first offer goes to %s", got)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	x.Hear(idle("bob", ""))
	if len(offers) != 0 {
		t.Errorf("an offer to %s after the end", <-offers)
	}
}
