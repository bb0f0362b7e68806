package roster

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/team"
	"agentteam/pkg/team/codec"
)

// A member whose record takes long to read is not silent meanwhile.
func TestHeartBeatsWhileItsRecordIsRead(t *testing.T) {
	const lease = 30 * time.Second
	synctest.Test(t, func(t *testing.T) {
		h := NewHeart(New(&broker.Storage{ID: "t", Conn: new(broker.Conn)}), team.Member{AgentID: "coder-1", Incarnation: 1}, lease)
		h.conn = stays
		begun := time.Now()
		var beats []time.Duration
		h.send = func([]byte) { beats = append(beats, time.Since(begun)) }
		readings := 0
		h.check = func(ctx context.Context, lived time.Duration) error {
			if readings++; lived != time.Since(begun) {
				t.Errorf("reading %d: lived %v, want %v", readings, lived, time.Since(begun))
			}
			if readings == 6 {
				time.Sleep(time.Second)
				return team.ErrSuperseded
			}
			<-ctx.Done()
			return ctx.Err()
		}
		if err := h.Run(t.Context()); !errors.Is(err, team.ErrSuperseded) {
			t.Errorf("Run = %v", err)
		}
		for i, at := range beats {
			if at != time.Duration(i)*Interval {
				t.Errorf("beat %d came after %v", i+1, at)
			}
		}
		if took := time.Since(begun); took != lease+time.Second || len(beats) != 16 {
			t.Errorf("%d beats in %v, want 16 in 31 s", len(beats), took)
		}
	})
}

// Run ends with its context, also while the record is being read, and not before the
// reading has.
func TestHeartEndsItsReading(t *testing.T) {
	const lease = 30 * time.Second
	synctest.Test(t, func(t *testing.T) {
		h := NewHeart(New(&broker.Storage{ID: "t", Conn: new(broker.Conn)}), team.Member{AgentID: "coder-1", Incarnation: 1}, lease)
		h.conn = stays
		h.send = func([]byte) {}
		reading := false
		h.check = func(ctx context.Context, _ time.Duration) error {
			reading = true
			<-ctx.Done()
			time.Sleep(time.Millisecond)
			reading = false
			return ctx.Err()
		}
		ctx, cancel := context.WithTimeout(t.Context(), lease/6+time.Second)
		defer cancel()
		if err := h.Run(ctx); err != nil || reading {
			t.Errorf("Run = %v, and is reading: %v", err, reading)
		}
	})
}

// The board tells that a member has claimed a task, so the beat that says so may
// wait; the one that asks for the next task does not, and makes it needless.
func TestHeartTellsOfClaims(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHeart(New(&broker.Storage{ID: "t", Conn: new(broker.Conn)}), team.Member{AgentID: "coder-1", Incarnation: 1}, 30*time.Second)
		h.conn = stays
		begun := time.Now()
		type told struct {
			at    time.Duration
			state team.MemberState
			task  team.TaskID
		}
		var got []told
		h.send = func(data []byte) {
			var b team.Heartbeat
			if err := json.Unmarshal(data, &b); err != nil {
				t.Error(err)
			}
			got = append(got, told{time.Since(begun), b.State, b.Task})
		}
		idle := func(b *team.Heartbeat) { b.State, b.Task = team.Idle, "" }
		working := func(b *team.Heartbeat) { b.State, b.Task = team.Running, "T-001" }
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- h.Run(ctx) }()
		for _, step := range []struct {
			change func(*team.Heartbeat)
			then   time.Duration
		}{{idle, 400}, {working, 25}, {idle, 375}, {working, 400}, {working, 400}, {idle, 300}, {working, 10}} {
			synctest.Wait()
			h.Set(step.change)
			time.Sleep(step.then * time.Millisecond)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		want := []told{{0, team.Running, ""}, {0, team.Idle, ""}, {425 * time.Millisecond, team.Idle, ""},
			{900 * time.Millisecond, team.Running, "T-001"}, {1600 * time.Millisecond, team.Idle, ""}}
		if !slices.Equal(got, want) {
			t.Errorf("told %v\nwant %v", got, want)
		}
	})
}

// stays is a connection that is never lost.
func stays(ctx context.Context, _ func(bool)) { <-ctx.Done() }

// A heart beats at once when its connection is back, and that beat says so.
func TestHeartBeatsOnceItsConnectionIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHeart(New(&broker.Storage{ID: "t", Conn: new(broker.Conn)}), team.Member{AgentID: "coder-1", Incarnation: 1}, time.Hour)
		ctx, cancel := context.WithCancel(t.Context())
		h.conn = func(ctx context.Context, f func(bool)) {
			time.Sleep(500 * time.Millisecond)
			f(false)
			time.Sleep(500 * time.Millisecond)
			f(true)
			<-ctx.Done()
		}
		begun := time.Now()
		type told struct {
			at   time.Duration
			back bool
		}
		var beats []told
		h.send = func(data []byte) {
			var b team.Heartbeat
			if err := codec.Unmarshal(data, &b); err != nil {
				t.Error(err)
			}
			if beats = append(beats, told{time.Since(begun), b.Back}); len(beats) == 3 {
				cancel()
			}
		}
		if err := h.Run(ctx); err != nil {
			t.Errorf("Run = %v", err)
		}
		if want := []told{{0, false}, {time.Second, true}, {Interval, false}}; !slices.Equal(beats, want) {
			t.Errorf("beats are %v, want %v", beats, want)
		}
	})
}
