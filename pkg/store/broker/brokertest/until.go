package brokertest

import (
	"context"
	"testing"
	"time"
)

// Longest is the time that a test waits for an expected event: a slow and busy machine needs some.
const Longest = 5 * time.Minute

// Until polls holds, a condition without a signal, until it returns true. It fails the test after Longest.
func Until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	Within(t, Longest, what, holds)
}

// Within is Until with a limit of its own.
func Within(t testing.TB, limit time.Duration, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for late := time.After(limit); !holds(); {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("waited %v in vain: %s", limit, what)
		}
	}
}

// Receive returns the next value from ch, the zero value once ch is closed. It fails the test after Longest without one:
// a bare receive would hold up all tests of the package until their timeout. As it may end the test, call it on the test's
// own goroutine; other goroutines select, with a channel for the end of the test.
func Receive[T any](t testing.TB, what string, ch <-chan T) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(Longest):
		t.Fatalf("waited %v in vain: %s", Longest, what)
		panic("unreachable")
	}
}

// Send sends v to ch, and fails the test unless v is received within Longest.
func Send[T any](t testing.TB, what string, ch chan<- T, v T) {
	t.Helper()
	select {
	case ch <- v:
	case <-time.After(Longest):
		t.Fatalf("waited %v in vain: %s", Longest, what)
	}
}

// Context returns the test's context with a timeout of Longest: for a request whose answer is a stream, which a fault may
// leave open.
func Context(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), Longest)
	t.Cleanup(cancel)
	return ctx
}

// Returns fails the test unless wait, such as that of a sync.WaitGroup, returns within Longest.
func Returns(t testing.TB, what string, wait func()) {
	t.Helper()
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		wait()
	}()
	Receive(t, what, returned)
}
