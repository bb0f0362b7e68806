package broker_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/brokertest"
)

// A message that its reader takes long over is not handed out again meanwhile, nor
// is the one after it.
func TestConsumerHolds(t *testing.T) {
	t.Parallel()
	bt := brokertest.Team(t, "t")
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for _, text := range []string{"one", "two"} {
		if _, err := bt.Messages.Publish(ctx, "at.t.inbox.coder-1.leader", text, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	c, err := bt.Messages.Consumer(ctx, "coder-1-1", broker.Mark{})
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	err = c.Run(ctx, func(d broker.Delivery) error {
		got += fmt.Sprintf("%s ", d.Data)
		if len(got) == len("one ") {
			<-time.After(3 * time.Second) // half as long again as the server waits for a sign of life
		} else {
			cancel()
		}
		return d.Ack()
	})
	if err != nil || got != "one two " {
		t.Errorf("Run = %v after %q, want \"one two \"", err, got)
	}
}
