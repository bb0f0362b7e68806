package brokertest

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// judged keeps how a test has failed.
type judged struct {
	testing.TB
	failed string
}

func (j *judged) Helper() {}

func (j *judged) Fatalf(format string, args ...any) {
	j.failed = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// Each wait for what never comes fails its test, and does not when it comes.
func TestWaitsEnd(t *testing.T) {
	came, taken := make(chan int, 1), make(chan int, 1)
	came <- 7
	for what, tt := range map[string]struct {
		wait  func(t testing.TB)
		fails bool
	}{
		"held":     {func(t testing.TB) { Until(t, "held", func() bool { return true }) }, false},
		"came":     {func(t testing.TB) { _ = [1]struct{}{}[Receive(t, "came", came)-7] }, false},
		"taken":    {func(t testing.TB) { Send(t, "taken", taken, 1) }, false},
		"returned": {func(t testing.TB) { Returns(t, "returned", func() {}) }, false},
		"holds":    {func(t testing.TB) { Until(t, "holds", func() bool { return false }) }, true},
		"comes":    {func(t testing.TB) { Receive(t, "comes", make(chan int)) }, true},
		"is taken": {func(t testing.TB) { Send(t, "is taken", make(chan int), 1) }, true},
		"returns":  {func(t testing.TB) { Returns(t, "returns", func() { <-t.Context().Done() }) }, true},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := &judged{TB: t}
				var waiting sync.WaitGroup
				waiting.Go(func() { tt.wait(j) })
				waiting.Wait()
				if want := map[bool]string{true: fmt.Sprintf("waited %v in vain: %s", Longest, what)}[tt.fails]; j.failed != want {
					t.Errorf("it fails with %q, want %q", j.failed, want)
				}
			})
		})
	}
}

// A connection ends with its test, and before that only once its server has been away for too long.
func TestBound(t *testing.T) {
	for name, tt := range map[string]struct {
		states []bool // of the connection, one after the other
		ends   bool
	}{
		"connected": {nil, false}, "back in time": {[]bool{false, true}, false}, "away": {[]bool{false, true, false}, true},
	} {
		t.Run(name, func(t *testing.T) {
			var ended atomic.Int32
			synctest.Test(t, func(t *testing.T) { // at whose end its cleanups run
				Bound(t, func() { ended.Add(1) }, func(ctx context.Context, f func(bool)) {
					for _, connected := range tt.states {
						f(connected)
						time.Sleep(away - 1)
					}
					<-ctx.Done()
				})
				time.Sleep(10 * away)
				if (ended.Load() > 0) != tt.ends {
					t.Errorf("ended %d times, want so: %v", ended.Load(), tt.ends)
				}
			})
			if ended.Load() == 0 {
				t.Error("it outlives its test")
			}
		})
	}
}
