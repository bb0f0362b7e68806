package watchdog

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

// What the leader was told outlives its process: the next leader's watchdog goes on from
// there, and never behind it.
func TestNote(t *testing.T) {
	b := brokertest.Team(t, "t").Bucket
	ctx := t.Context()
	want := func(what string, told uint64, tasks ...team.TaskID) {
		t.Helper()
		if n, _, err := readNote(ctx, b); err != nil || n.Notified != told || !slices.Equal(n.Tasks, tasks) {
			t.Errorf("%s: told up to %d and of %q, %v; want %d and %q", what, n.Notified, n.Tasks, err, told, tasks)
		}
	}
	want("nothing noted", 0)
	for _, step := range []struct {
		set         uint64
		tasks       []team.TaskID
		want        uint64
		wantOfTasks []team.TaskID
	}{
		{0, nil, 0, nil},
		{7, []team.TaskID{"T-002"}, 7, []team.TaskID{"T-002"}},
		{5, []team.TaskID{"T-003"}, 7, []team.TaskID{"T-002"}},
		{9, []team.TaskID{"T-001", "T-002"}, 9, []team.TaskID{"T-002", "T-001"}}, // another watchdog has noted some
	} {
		if err := storeNote(ctx, b, step.set, step.tasks); err != nil {
			t.Fatal(err)
		}
		want("noted", step.want, step.wantOfTasks...)
	}
	e, err := b.Get(ctx, subject.KeyWatchdog)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Put(ctx, subject.KeyWatchdog, []byte("{"), e.Revision); err != nil {
		t.Fatal(err)
	}
	want("damaged", 0)
	if err := storeNote(ctx, b, 3, nil); err != nil {
		t.Error(err)
	}
	want("mended", 3)
	many := make([]team.TaskID, maxNoted+2)
	for i := range many {
		many[i] = team.MakeTaskID(i + 1)
	}
	if err := storeNote(ctx, b, 4, many); err != nil {
		t.Error(err)
	}
	want("of many, the newest", 4, many[2:]...)
}

// The leader is told once of a dependency that failed or was cancelled.
func TestBlockedForGood(t *testing.T) {
	const blocked = "tell [Blocked]"
	plan := func(w *fake) {
		w.beats["coder-1"] = beat("coder-1", team.Running)
		for n := range 6 {
			w.task(team.Task{ID: team.MakeTaskID(n + 1), Status: team.Pending})
		}
		w.tasks[1].Dependencies = []team.TaskID{"T-001"}
		w.tasks[3].Dependencies = []team.TaskID{"T-003"}
	}
	t.Run("by one leader", func(t *testing.T) {
		watch(t, func(t *testing.T, w *fake) {
			w.change(10*time.Second, func() { plan(w) })
			w.want()
			w.change(time.Minute, func() { w.end("T-001", team.Failed) })
			w.want(blocked)
			w.change(time.Minute, func() { w.end("T-006", team.Cancelled) })
			w.want() // nothing depends on it
			w.change(time.Minute, func() { w.end("T-001", team.Failed) })
			w.want() // it was written again
			w.change(time.Minute, func() { w.end("T-003", team.Cancelled); w.end("T-002", team.Cancelled) })
			w.want(blocked)
		})
	})
	t.Run("by its successor", func(t *testing.T) {
		watch(t, func(t *testing.T, w *fake) {
			w.change(10*time.Second, func() { plan(w); w.end("T-001", team.Failed) })
			w.want(blocked)
			w.change(time.Hour, func() { w.end("T-001", team.Failed) })
			w.term(func() {
				w.pass(time.Minute)
				w.want() // it was told before
			})
		})
	})
	// As when the files of its former holder are stored.
	t.Run("though the task is written again while nobody leads", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newFake(t)
			plan(w)
			w.end("T-003", team.Cancelled)
			for _, want := range [][]string{{blocked}, nil} {
				w.term(func() {
					w.pass(time.Minute)
					w.want(want...)
				})
				time.Sleep(time.Hour)
				w.end("T-003", team.Cancelled)
			}
		})
	})
	t.Run("though it is written again before the first noted that", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newFake(t)
			plan(w)
			for _, want := range [][]string{{blocked}, nil} {
				w.note = nil
				w.end("T-003", team.Cancelled)
				w.ends = w.ends[len(w.ends)-1:] // as the index shows it
				w.term(func() {
					w.pass(time.Minute)
					w.want(want...)
				})
			}
		})
	})
	t.Run("of what happened while nobody led", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newFake(t)
			plan(w)
			w.end("T-001", team.Failed)
			w.term(func() {
				w.pass(time.Minute)
				w.want(blocked)
			})
		})
	})
	t.Run("though the first died before it noted that", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newFake(t)
			plan(w)
			w.end("T-001", team.Failed)
			for _, want := range [][]string{{blocked}, nil} {
				w.note = nil
				w.term(func() {
					w.pass(time.Minute)
					w.want(want...)
				})
			}
		})
	})
	t.Run("once NATS is back", func(t *testing.T) {
		watch(t, func(t *testing.T, w *fake) {
			w.change(10*time.Second, func() { plan(w) })
			w.change(time.Minute, func() { w.broken = errors.New("NATS is away"); w.end("T-001", team.Failed) })
			w.want()
			w.change(time.Minute, func() { w.broken = nil })
			w.want(blocked)
		})
	})
}
