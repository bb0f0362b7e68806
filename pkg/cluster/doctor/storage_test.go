package doctor

import (
	"strings"
	"testing"

	"agentteam/pkg/client"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/team"
)

// A server that stores a small write, and nothing in the streams of a member, is no healthy one:
// the check has what the member says of those.
func TestStorageOfMembers(t *testing.T) {
	c, err := client.Connect(t.Context(), client.Options{URL: brokertest.Server(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got := storage(t.Context(), c, client.Status{}); got.Status != OK {
		t.Errorf("%+v", got)
	}
	const why = "the NATS server stores nothing in the stream KV_at-t (then restart it)"
	if got := storage(t.Context(), c, client.Status{Storage: why}); got.Status != Fail || got.Code != team.Unavailable || !strings.Contains(got.Detail, why) {
		t.Errorf("%+v, want a failure with %q", got, why)
	}
}
