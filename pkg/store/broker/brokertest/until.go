package brokertest

import (
	"context"
	"testing"
	"time"
)

// Longest is how long a test waits for what has to come: a slow and busy machine takes its time.
const Longest = 5 * time.Minute

// Until asks again and again whether something holds that gives no signal. It fails the test if it does not
// within Longest.
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

// Receive returns what comes over ch, the zero value once ch is closed. It fails the test if nothing comes
// within Longest: a bare receive would hold up all tests of the package until their time is over. As any that
// may end a test, it is for the test's own goroutine; others select, with what ends the test.
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

// Send is Receive the other way round: it fails the test unless v is taken within Longest.
func Send[T any](t testing.TB, what string, ch chan<- T, v T) {
	t.Helper()
	select {
	case ch <- v:
	case <-time.After(Longest):
		t.Fatalf("waited %v in vain: %s", Longest, what)
	}
}

// Context is that of the test, and ends after Longest too: for a request whose answer is a stream, which a
// fault may leave open.
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
