package broker_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

// Streams of an earlier version have no mark, and those of a later version another one. The list of teams and each team
// are refused then, with both versions and a remedy, and nothing is made or changed.
func TestStreamsOfAnotherProtocol(t *testing.T) {
	for name, tt := range map[string]struct {
		mark string
		want int
	}{"version 1": {"", 1}, "a later version": {"7", 7}} {
		t.Run(name, func(t *testing.T) {
			c := brokertest.Connect(t, brokertest.Server(t))
			js, err := jetstream.New(c.NATS())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.Registry(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Make(t.Context(), "t"); err != nil {
				t.Fatal(err)
			}
			for _, stream := range []string{"KV_" + subject.Registry, "KV_" + subject.Bucket("t")} {
				s, err := js.Stream(t.Context(), stream)
				if err != nil {
					t.Fatal(err)
				}
				cfg := s.CachedInfo().Config
				if cfg.Metadata = map[string]string{}; tt.mark != "" {
					cfg.Metadata["agentteam-protocol"] = tt.mark
				}
				if _, err := js.UpdateStream(t.Context(), cfg); err != nil {
					t.Fatal(err)
				}
			}
			_, listed := c.Registry(t.Context())
			_, opened := c.Open(t.Context(), "t")
			_, made := c.Make(t.Context(), "t")
			both := fmt.Sprintf("it has protocol version %d, this program speaks %d", tt.want, team.Protocol)
			for what, err := range map[string]error{"the list of teams": listed, "open": opened, "make": made} {
				var e *team.Error
				if !errors.Is(err, team.InvalidState) || !strings.Contains(err.Error(), both) || !errors.As(err, &e) || !strings.Contains(e.Hint, "--data") {
					t.Errorf("%s: %v, want %q and a hint", what, err, both)
				}
			}
		})
	}
}

// A record of another version among those of this one is refused by its key.
func TestRecordOfAnotherProtocol(t *testing.T) {
	var record struct {
		V int `json:"v"`
	}
	_, err := broker.Entry{Key: "team", Value: []byte(`{"v":1}`)}.Decode(&record, &record.V)
	if want := "record team cannot be read: it has protocol version 1, this program speaks 2"; !errors.Is(err, team.ErrUnreadable) || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
