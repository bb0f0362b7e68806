package teamtest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"agentteam/pkg/client"
	"agentteam/pkg/cluster/leader"
	"agentteam/pkg/cluster/teammate"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
	"agentteam/pkg/teamtest"
)

// A cluster has one protocol version: a leader, a standby and a client that come to a server of programs of another version,
// earlier or later, end before they have done anything, and name both versions.
func TestMixedClusterIsRefused(t *testing.T) {
	t.Parallel()
	for _, theirs := range []int{1, team.Protocol + 1} {
		c := teamtest.Start(t, alone)
		js, err := jetstream.New(brokertest.Connect(t, c.URL).NATS())
		if err != nil {
			t.Fatal(err)
		}
		s, err := js.Stream(t.Context(), "KV_"+subject.Registry)
		if err != nil {
			t.Fatal(err)
		}
		cfg := s.CachedInfo().Config
		if cfg.Metadata = nil; theirs > 1 {
			cfg.Metadata = map[string]string{"agentteam-protocol": fmt.Sprint(theirs)}
		}
		if _, err := js.UpdateStream(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf("it has protocol version %d, this program speaks %d", theirs, team.Protocol)
		for who, joins := range map[string]func(context.Context) error{
			"a client": func(ctx context.Context) error {
				cl, err := client.Connect(ctx, client.Options{URL: c.URL})
				if err == nil {
					cl.Close()
				}
				return err
			},
			"a leader": func(ctx context.Context) error {
				return leader.Run(ctx, leader.Options{Config: c.Config, Stderr: t.Output()})
			},
			"a standby": func(ctx context.Context) error {
				return teammate.Run(ctx, teammate.Options{Config: c.Config, Stderr: t.Output()})
			},
		} {
			if err := joins(t.Context()); !errors.Is(err, team.InvalidState) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s joins a cluster of version %d: %v, want %q", who, theirs, err, want)
			}
		}
	}
}
