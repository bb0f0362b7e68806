package index

import (
	"context"
	"strings"
	"testing"
	"time"

	"agentteam/pkg/store/board"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/brokertest"
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
		want     []string
	}{
		"a beat": {[]team.NewTask{{Title: "1"}, {Title: "2"}}, []team.AgentID{"ann"}, time.Hour,
			func(_ *testing.T, x *Index, _ *board.Board) error {
				x.Hear(idle("bob", ""))
				return nil
			}, []string{"T-002 to bob"}},
		"a new task": {[]team.NewTask{{Title: "1"}}, []team.AgentID{"ann", "bob"}, time.Hour,
			func(t *testing.T, _ *Index, b *board.Board) error {
				_, err := b.Create(t.Context(), team.Leader, team.NewTask{Title: "2"})
				return err
			}, []string{"T-002 to bob"}},
		"the last completion": {[]team.NewTask{{Title: "1"}, {Title: "2", After: []int{0}}}, []team.AgentID{"ann", "bob"}, time.Hour,
			func(t *testing.T, _ *Index, b *board.Board) error {
				held, err := b.Claim(t.Context(), "T-001", ann)
				if err == nil {
					_, err = b.Complete(t.Context(), held.ID, ann, held.Epoch, team.Done{Summary: "done"})
				}
				return err
			}, []string{"T-002 to bob"}},
		"an offer that lapses": {[]team.NewTask{{Title: "1"}}, []team.AgentID{"ann", "bob"}, 10 * time.Millisecond,
			func(*testing.T, *Index, *board.Board) error { return nil },
			[]string{"T-001 to bob", "T-001 to ann", "T-001 to bob"}},
	} {
		t.Run(name, func(t *testing.T) {
			bt := brokertest.Team(t, "t")
			b := board.New(bt.Bucket, board.Options{})
			if _, err := b.Create(t.Context(), team.Leader, tt.tasks...); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			offers := make(chan string, 1)
			x := New(Options{Team: bt, Finish: b.FinishCreate, Send: func(to team.AgentID, task team.Task) error {
				select {
				case offers <- string(task.ID) + " to " + string(to):
				case <-ctx.Done():
				}
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
				if err := brokertest.Receive(t, "the index ends", done); err != nil {
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
				case <-time.After(brokertest.Longest):
					t.Fatalf("waited for %s in vain", want)
				}
			}
			next("T-001 to ann")
			if err := tt.then(t, x, b); err != nil {
				t.Fatal(err)
			}
			for _, want := range tt.want {
				next(want)
			}
		})
	}
}

// The timer is set once for many offers, and always for the first that lapses.
func TestLapseTimer(t *testing.T) {
	x := New(Options{Team: &broker.Storage{ID: "t"}})
	x.open()
	defer x.shut()
	sec := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	match := func(at int, want string, lapses time.Time) {
		t.Helper()
		var made []string
		for _, m := range x.match(sec(at)) {
			made = append(made, string(m.task.ID)+" to "+string(m.to))
		}
		if got := strings.Join(made, ", "); got != want || !x.lapseAt.Equal(lapses) {
			t.Errorf("after %d s: offered %q, the timer is set for %v; want %q, %v", at, got, x.lapseAt, want, lapses)
		}
	}
	x.state.patience = 10 * time.Second
	on(&x.state, task(1), task(2))
	x.state.hear(idle("ann", ""), sec(0))
	match(0, "T-001 to ann", sec(10))
	x.state.hear(idle("bob", ""), sec(4))
	match(4, "T-002 to bob", sec(10)) // that of the first
	on(&x.state, task(1, status(team.Cancelled)))
	match(5, "", sec(10))
	again := func(a team.AgentID, n uint64, at int) {
		b := idle(a, "")
		b.N = n
		x.state.hear(b, sec(at))
	}
	again("ann", 2, 10)
	match(10, "", sec(14)) // the second's turn
	again("bob", 2, 14)
	match(14, "T-002 to ann", sec(24))
	on(&x.state, task(2, status(team.Cancelled)))
	match(24, "", time.Time{})
	on(&x.state, task(3))
	again("bob", 3, 30)
	match(30, "T-003 to bob", sec(40))
}

// An index whose Run has ended, as when another process has taken over, makes no offers
// though it still hears beats.
func TestOffersEndWithRun(t *testing.T) {
	bt := brokertest.Team(t, "t")
	b := board.New(bt.Bucket, board.Options{})
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
	if got := brokertest.Receive(t, "a task is offered", offers); got != "ann" {
		t.Errorf("the first offer goes to %s", got)
	}
	cancel()
	if err := brokertest.Receive(t, "the index ends", done); err != nil {
		t.Error(err)
	}
	x.Hear(idle("bob", ""))
	if len(offers) != 0 {
		t.Errorf("an offer to %s after the end", <-offers)
	}
}
