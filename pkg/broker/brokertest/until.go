package brokertest

import (
	"testing"
	"time"
)

// Longest is how long a test waits for what has to come: a slow and busy machine takes its time.
const Longest = 2 * time.Minute

// Until asks again and again whether something holds that gives no signal. It fails the test if it does not
// within Longest.
func Until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for late := time.After(Longest); !holds(); {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("waited in vain: %s", what)
		}
	}
}
