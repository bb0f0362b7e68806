package roster_test

import (
	"context"
	"testing"
	"time"

	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/roster"
	"agentteam/pkg/team"
)

// A vigil knows since when a member is silent: from its own beginning, or from the last beat of
// that incarnation. Of a record that was written since it knows nothing, and what it knew when it
// ended stays.
func TestVigil(t *testing.T) {
	r, bt := open(t)
	silent, beats, later := create(t, r, team.Member{Role: "coder"}), create(t, r, team.Member{Role: "coder"}), create(t, r, team.Member{Role: "coder"})
	v := roster.NewVigil(bt)
	if _, ok := v.Since(silent); ok {
		t.Error("a vigil that has not begun knows something")
	}
	if _, ok := (*roster.Vigil)(nil).Since(silent); ok {
		t.Error("no vigil knows something")
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- v.Keep(ctx) }()
	brokertest.Until(t, "the vigil begins", func() bool { _, ok := v.Since(silent); return ok })
	begun, _ := v.Since(silent)

	heart := roster.NewHeart(r, beats, team.DefaultLease)
	n := 0
	brokertest.Until(t, "a beat is heard", func() bool {
		n++
		heart.Set(func(b *team.Heartbeat) { b.Unseen = n%2 == 0 })
		at, ok := v.Since(beats)
		return ok && at.After(begun)
	})
	if at, ok := v.Since(silent); !ok || !at.Equal(begun) {
		t.Errorf("the silent one: %v, %v, want %v", at, ok, begun)
	}
	other := beats
	other.Incarnation++ // whose record is as old
	if at, ok := v.Since(other); !ok || !at.Equal(begun) {
		t.Errorf("another incarnation: %v, %v, want %v", at, ok, begun)
	}
	later, err := r.Put(t.Context(), later)
	if err != nil {
		t.Fatal(err)
	}
	if at, ok := v.Since(later); ok {
		t.Errorf("of a record that was written since: %v", at)
	}
	v.End()
	v.End()
	if err := brokertest.Receive(t, "the vigil ends", done); err != nil {
		t.Errorf("Keep = %v", err)
	}
	if at, ok := v.Since(silent); !ok || !at.Equal(begun) {
		t.Errorf("after its end: %v, %v, want %v", at, ok, begun)
	}
	cancel()
}

// A vigil whose connection was lost begins again: what it has missed is not known.
func TestVigilCutOff(t *testing.T) {
	t.Parallel()
	r, bt := open(t)
	m := create(t, r, team.Member{Role: "coder"})
	proxy := brokertest.NewProxy(t, bt.Conn.Server())
	far, err := brokertest.Connect(t, proxy.URL).Open(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}
	v := roster.NewVigil(far)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- v.Keep(ctx) }()
	defer func() {
		cancel()
		if err := brokertest.Receive(t, "the vigil ends", done); err != nil {
			t.Errorf("Keep = %v", err)
		}
	}()
	brokertest.Until(t, "the vigil begins", func() bool { _, ok := v.Since(m); return ok })
	begun, _ := v.Since(m)
	proxy.Close()
	brokertest.Until(t, "the vigil knows that it hears nothing", func() bool { _, ok := v.Since(m); return !ok })
	proxy.Open()
	brokertest.Until(t, "the vigil begins again", func() bool { _, ok := v.Since(m); return ok })
	if again, _ := v.Since(m); !again.After(begun.Add(time.Second)) {
		t.Errorf("it counts from %v, as if it had heard all since %v", again, begun)
	}
}
