package broker_test

import (
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"agentteam/pkg/store/broker"
)

// undecided answers the requests of JetStream's API as several servers may, of which one has
// been told by somebody else to make a stream: the name is taken, and the stream is not
// there before it was asked for a few times.
func undecided(t *testing.T, url string) {
	nc, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	var config atomic.Pointer[jetstream.StreamConfig]
	var asked atomic.Int32
	refuse := func(status, code int, text string) map[string]any {
		return map[string]any{"error": map[string]any{"code": status, "err_code": code, "description": text}}
	}
	_, err = nc.Subscribe("$JS.API.>", func(m *nats.Msg) {
		answer := map[string]any{}
		switch api := strings.TrimPrefix(m.Subject, "$JS.API."); {
		case api == "STREAM.NAMES":
			answer["streams"] = []string{}
		case strings.HasPrefix(api, "STREAM.CREATE."):
			var c jetstream.StreamConfig
			if err := json.Unmarshal(m.Data, &c); err != nil {
				t.Error(err)
			}
			config.Store(&c)
			answer = refuse(400, 10058, "stream name already in use")
		case strings.HasPrefix(api, "STREAM.INFO.") && (config.Load() == nil || asked.Add(1) < 4):
			answer = refuse(404, 10059, "stream not found")
		case strings.HasPrefix(api, "STREAM.INFO."):
			answer["config"] = config.Load()
		}
		data, err := json.Marshal(answer)
		if err == nil {
			err = m.Respond(data)
		}
		if err != nil {
			t.Error(err)
		}
	})
	if err == nil {
		err = nc.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// The list of all teams that somebody is just making is waited for: no team is there that
// would have lost it.
func TestRegistryIsJustMade(t *testing.T) {
	url := bare(t)
	undecided(t, url)
	c, err := broker.Connect(t.Context(), broker.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Registry(t.Context()); err != nil {
		t.Errorf("Registry: %v", err)
	}
}
