package broker_test

import (
	"fmt"
	"sync"
	"testing"

	"agentteam/pkg/store/broker/brokertest"
)

// A key that is written while the bucket is listed stands in the list once.
func TestLoadWhileWriting(t *testing.T) {
	b := brokertest.Team(t, "t").Bucket
	for i := range 50 {
		if _, err := b.Put(t.Context(), fmt.Sprintf("task.T-%03d", i), []byte("x"), 0); err != nil {
			t.Fatal(err)
		}
	}
	var wg sync.WaitGroup
	stop := make(chan struct{})
	wg.Go(func() {
		for rev := uint64(0); ; {
			var err error
			if rev, err = b.Put(t.Context(), "task.T-100", fmt.Appendf(nil, "%d", rev), rev); err != nil {
				t.Error(err)
				return
			}
			select {
			case <-stop:
				return
			default:
			}
		}
	})
	for range 100 {
		entries, err := b.Load(t.Context(), "task.>")
		if err != nil {
			t.Error(err)
			break
		}
		seen := map[string]bool{}
		for _, e := range entries {
			if seen[e.Key] {
				t.Errorf("%s stands in the list twice", e.Key)
			}
			seen[e.Key] = true
		}
		if len(seen) < 50 {
			t.Errorf("%d keys, want at least 50", len(seen))
		}
	}
	close(stop)
	wg.Wait()
}
