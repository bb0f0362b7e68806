package broker_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"

	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/team"
)

// Who opens one team at the same time shares the requests, and a caller that gives up takes
// nothing from the others.
func TestOpenAtOnce(t *testing.T) {
	url := brokertest.Server(t)
	c := brokertest.Connect(t, url)
	if _, err := c.Make(t.Context(), "t"); err != nil {
		t.Fatal(err)
	}
	watch, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Close()
	asked, err := watch.SubscribeSync("$JS.API.STREAM.INFO.>")
	if err != nil {
		t.Fatal(err)
	}
	if err := watch.Flush(); err != nil {
		t.Fatal(err)
	}
	const many = 400
	begin := make(chan struct{})
	var wg sync.WaitGroup
	for i := range many {
		wg.Go(func() {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if i%2 == 1 {
				cancel()
			}
			<-begin
			bt, err := c.Open(ctx, "t")
			switch {
			case i%2 == 1 && err != nil:
				if !errors.Is(err, team.Unavailable) || !errors.Is(err, context.Canceled) {
					t.Errorf("a caller that gives up: %v", err)
				}
			case err != nil:
				t.Error(err)
			case bt.ID != "t":
				t.Errorf("opened %+v", bt)
			}
		})
	}
	close(begin)
	wg.Wait()
	if err := watch.Flush(); err != nil {
		t.Fatal(err)
	}
	if n, _, err := asked.Pending(); err != nil || n == 0 || n >= many {
		t.Errorf("%d requests for %d callers, %v", n, many, err)
	}
	if _, err := c.Open(t.Context(), "absent"); !errors.Is(err, team.InvalidState) {
		t.Errorf("a team that is not there: %v", err)
	}
}
