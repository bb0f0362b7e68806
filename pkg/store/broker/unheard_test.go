package broker_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/team"
)

// Whatever was asked of a server that has gone away, its error is one line in our words.
func TestUnheardInPlainWords(t *testing.T) {
	t.Parallel()
	proxy := brokertest.NewProxy(t, brokertest.Server(t))
	c := brokertest.Connect(t, proxy.URL)
	bt, err := c.Make(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}
	proxy.Close()
	for name, ask := range map[string]func(ctx context.Context) error{
		"open":  func(ctx context.Context) error { _, err := c.Open(ctx, "t"); return err },
		"read":  func(ctx context.Context) error { _, err := bt.Bucket.Get(ctx, "graph"); return err },
		"write": func(ctx context.Context) error { _, err := bt.Bucket.Put(ctx, "graph", []byte("x"), 0); return err },
		"publish": func(ctx context.Context) error {
			_, err := bt.Messages.Publish(ctx, "at.t.all.a", "id", []byte("x"))
			return err
		},
		"state": func(ctx context.Context) error { _, err := bt.Messages.State(ctx); return err },
		"make":  func(ctx context.Context) error { _, err := c.Make(ctx, "u"); return err },
		"receive": func(ctx context.Context) error {
			_, err := bt.Messages.Consumer(ctx, "coder-1-1", broker.Mark{}, "at.t.all.>")
			return err
		},
		"consumers": func(ctx context.Context) error { _, err := bt.Messages.Consumers(ctx); return err },
		"file":      func(ctx context.Context) error { _, err := bt.Files.Put(ctx, "f", strings.NewReader("x")); return err },
		"registry":  func(ctx context.Context) error { _, err := c.Registry(ctx); return err },
		"follow": func(ctx context.Context) error {
			return bt.Messages.Read(ctx, 1, func(broker.Msg) error { return nil })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			err := ask(ctx)
			if err == nil || !errors.Is(err, team.Unavailable) {
				t.Fatalf("%v, want unavailable", err)
			}
			for _, raw := range []string{"nats:", "\n", "context deadline", "outbound buffer"} {
				if strings.Contains(err.Error(), raw) {
					t.Errorf("%q has %q in it", err, raw)
				}
			}
		})
	}
}
