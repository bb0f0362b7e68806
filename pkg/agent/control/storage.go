package control

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"agentteam/pkg/shutdown"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/subject"
)

// storageEvery is the interval at which a process repeats that its writes are not stored. A report
// of another process counts for more than two intervals ([broker.Conn.Reported]).
const storageEvery = 2 * time.Second

// unstored is the message that a process publishes on [subject.Storage].
type unstored struct {
	Process string `json:"process"` // its ID, as in leases
	Storage string `json:"storage"` // as [broker.Conn.Refused] has it
}

// ShareStorage reports to all processes, until stop is called, why NATS has refused recent writes
// of this process, and records such reports of other processes. While all writes are stored,
// nothing is sent. No process repeats the reports of others, so that they end with their cause.
func ShareStorage(c *broker.Conn, process string) (stop func(), err error) {
	sub, err := c.NATS().Subscribe(subject.Storage, func(m *nats.Msg) {
		var u unstored
		if json.Unmarshal(m.Data, &u) == nil && u.Process != process && u.Storage != "" {
			c.Reported(u.Storage)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("follow what others say of the storage: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var sharing sync.WaitGroup
	sharing.Go(func() {
		shutdown.Every(ctx, storageEvery, func(context.Context) {
			if why := c.Refused(); why != "" {
				data, _ := json.Marshal(unstored{process, why})
				_ = c.NATS().Publish(subject.Storage, data) // what cannot be sent now is sent again
			}
		})
	})
	return func() {
		_ = sub.Unsubscribe()
		cancel()
		sharing.Wait()
	}, nil
}
