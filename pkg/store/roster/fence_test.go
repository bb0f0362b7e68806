package roster

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/team"
)

// Of several servers one that is frozen is left before anybody connected to it pauses, and long
// before it is taken for lost, also under a lease of 10 s.
func TestSilentServerIsLeftInTime(t *testing.T) {
	const lease, reconnect = 10 * time.Second, time.Second
	if gap := lease/6 + broker.Silence + reconnect; gap > lease*2/3 {
		t.Errorf("%v may pass between two confirmations, and new work waits after %v", gap, lease*2/3)
	}
	if gap := Interval + broker.Silence + reconnect; gap > lease {
		t.Errorf("%v may pass between two heartbeats, and the lease is %v", gap, lease)
	}
}

func TestFence(t *testing.T) {
	const lease = 30 * time.Second
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		f := newFence(lease, begun)
		step, release := f.within(t.Context())
		defer release()
		ended := func() bool { synctest.Wait(); return step.Err() != nil }

		time.Sleep(lease*2/3 - time.Second)
		if err := f.wait(t.Context()); err != nil || time.Since(begun) != lease*2/3-time.Second {
			t.Errorf("before two thirds: waited until %v, %v", time.Since(begun), err)
		}
		f.confirm(time.Now())

		time.Sleep(lease * 2 / 3)
		certain := make(chan error, 1)
		go func() { certain <- f.wait(t.Context()) }()
		synctest.Wait()
		select {
		case err := <-certain:
			t.Errorf("after two thirds it began something new: %v", err)
		default:
		}
		time.Sleep(lease*5/6 - lease*2/3 - time.Millisecond)
		if ended() {
			t.Error("what it is at was ended before five sixths")
		}
		time.Sleep(time.Millisecond)
		if !ended() || !errors.Is(context.Cause(step), ErrFenced) {
			t.Errorf("after five sixths: %v", context.Cause(step))
		}
		f.confirm(time.Now())
		if err := <-certain; err != nil {
			t.Errorf("certain again: %v", err)
		}
	})
}

func TestFenceWaitEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFence(time.Second, time.Now().Add(-time.Hour))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := f.wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("wait = %v", err)
		}
	})
}

// A beat tells for how long there was no progress, by this process's clock alone; progress
// itself sends none.
func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		beats := 0
		h := &Heart{moved: time.Now(), send: func([]byte) { beats++ }, store: func() string { return "" }}
		time.Sleep(90 * time.Second)
		if b := h.Now(); b.Still != 90 || !b.ProgressAt.Equal(time.Now().Add(-90*time.Second)) {
			t.Errorf("beat %+v", b)
		}
		h.Progress()
		h.Set(func(b *team.Heartbeat) { b.Tool, b.Trouble = "bash", "the model endpoint failed" })
		if b := h.Now(); b.Still != 0 || b.Tool != "bash" || beats != 0 {
			t.Errorf("after progress: %+v, %d beats sent", b, beats)
		}
	})
}
