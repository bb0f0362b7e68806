package shutdown_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"agentteam/pkg/shutdown"
)

func TestOutlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		longer, done := shutdown.Outlive(ctx, 2*time.Second)
		defer done()
		time.Sleep(time.Hour)
		cancel()
		begun := time.Now()
		time.Sleep(1999 * time.Millisecond)
		if longer.Err() != nil {
			t.Error("it ended too early")
		}
		<-longer.Done()
		if took := time.Since(begun); took != 2*time.Second {
			t.Errorf("it ended %v after its parent, want 2 s", took)
		}
		if over, done := shutdown.Outlive(ctx, time.Hour); over.Err() != nil {
			t.Error("of a context that has ended, it ended at once")
		} else {
			done()
			<-over.Done()
		}
	})
}
