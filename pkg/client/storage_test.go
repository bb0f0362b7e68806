package client_test

import (
	"errors"
	"testing"

	"agentteam/pkg/agent/control"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/brokertest"
)

// A server that takes the small write of a client, and refuses those of a process, is known to the
// client to store nothing by what that process says, until it stores again.
func TestStorageOfProcesses(t *testing.T) {
	r := newRig(t)
	if err := r.client.Storage(t.Context()); err != nil {
		t.Fatal(err)
	}
	writer := brokertest.Connect(t, r.client.Server())
	stop, err := control.ShareStorage(writer, "h/1/a")
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	bt, err := writer.Open(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}
	brokertest.Intercept(t, brokertest.Connect(t, r.client.Server()), "t", "graph", func(int, brokertest.Write) ([]byte, bool) {
		return []byte(`{"error":{"code":503,"err_code":10023,"description":"insufficient resources"}}`), false
	})
	if _, err := bt.Bucket.Put(t.Context(), "graph", []byte("x"), 0); !errors.Is(err, broker.ErrNoRoom) {
		t.Fatal(err)
	}
	said := writer.Refused()
	brokertest.Until(t, "the client hears of it", func() bool {
		err = r.client.Storage(t.Context())
		return err != nil
	})
	if !errors.Is(err, broker.ErrNoRoom) || err.Error() != said {
		t.Errorf("the client says %v, the process %s", err, said)
	}
	if _, err := bt.Bucket.Put(t.Context(), "graph", []byte("x"), 0); err != nil {
		t.Fatal(err)
	}
	brokertest.Until(t, "the client hears no more of it", func() bool { return r.client.Storage(t.Context()) == nil })
}
