package control_test

import (
	"errors"
	"testing"
	"time"

	"agentteam/pkg/agent/control"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/brokertest"
)

// What NATS does not store of one process's writes is known to a process that is a member of
// nothing, for as long as it is so; who said it does not hear itself.
func TestShareStorage(t *testing.T) {
	url := brokertest.Server(t)
	writer, standby := brokertest.Connect(t, url), brokertest.Connect(t, url)
	if _, err := writer.Registry(t.Context()); err != nil {
		t.Fatal(err)
	}
	bt, err := writer.Make(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}
	for id, c := range map[string]*broker.Conn{"h/1/a": writer, "h/2/b": standby} {
		stop, err := control.ShareStorage(c, id)
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
		if err := c.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	brokertest.Intercept(t, brokertest.Connect(t, url), "t", "graph", func(int, brokertest.Write) ([]byte, bool) {
		return []byte(`{"error":{"code":503,"err_code":10023,"description":"insufficient resources"}}`), false
	})
	if _, err := bt.Bucket.Put(t.Context(), "graph", []byte("x"), 0); !errors.Is(err, broker.ErrNoRoom) {
		t.Fatal(err)
	}
	said := writer.Refused()
	wait := func(what string, ok func(error) bool) {
		t.Helper()
		for begun := time.Now(); !ok(standby.Stores(t.Context())); time.Sleep(10 * time.Millisecond) {
			if time.Since(begun) > time.Minute {
				t.Fatalf("%s: the standby says %v", what, standby.Stores(t.Context()))
			}
		}
	}
	wait("a write was refused", func(err error) bool { return err != nil && err.Error() == said })
	if _, err := bt.Bucket.Put(t.Context(), "graph", []byte("x"), 0); err != nil {
		t.Fatal(err)
	}
	if err := writer.Stores(t.Context()); err != nil {
		t.Errorf("once a write is stored, its process says %v", err)
	}
	wait("a write was stored", func(err error) bool { return err == nil })
}
